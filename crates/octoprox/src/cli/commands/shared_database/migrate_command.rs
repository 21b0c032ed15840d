//! `octoprox migrate`: creates and upgrades the tables of the shared database.

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::settings::{Environment, Flags};
use crate::stores::postgres_options;
use crate::terminal::console;
use clap::Args;
use octo_postgres::{Migrated, PostgresOptions};

/// Create or upgrade the tables of `store.postgres`. Run it once before hubs of a new version start. Hubs of the previous
/// version keep running, unless the upgrade says otherwise.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox migrate\n  OCTOPROX_STORE_POSTGRES=postgres://… octoprox migrate --json"
)]
pub struct Migrate {
    /// Print the result as JSON: {schema, from, to}
    #[arg(long)]
    json: bool,
}

impl Migrate {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let options = database(flags)?;
        let migrated = block_on_current_thread(async { Ok(octo_postgres::migrate(&options).await?) })?;
        let schema = options.schema.as_str();
        let Migrated { from, to } = migrated;
        let text = match (self.json, from) {
            (true, _) => serde_json::json!({"schema": schema, "from": from, "to": to}).to_string(),
            (false, 0) => format!("Created the tables of schema `{schema}`, version {to}."),
            (false, _) if from == to => {
                format!("The tables of schema `{schema}` are up to date, version {to}.")
            }
            (false, _) => format!("Upgraded the tables of schema `{schema}` from version {from} to {to}."),
        };
        Ok(console::print(&text)?)
    }
}

/// The database in the settings.
pub fn database(flags: &Flags) -> Result<PostgresOptions, AppError> {
    let loaded = load_settings(flags)?;
    postgres_options(&loaded.settings, &Environment::current())?.ok_or_else(|| {
        AppError::invalid(
            "store.postgres: not set. Set it, or OCTOPROX_STORE_POSTGRES, to the connection string of a PostgreSQL database.",
        )
    })
}

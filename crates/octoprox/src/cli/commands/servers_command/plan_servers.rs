//! `octoprox servers plan`.

use crate::app_context::load_settings;
use crate::app_error::AppError;
use crate::settings::reload::server_plan::{Action, Servers, plan};
use crate::settings::{AppliedServers, Environment, Flags, load_for_comparison};
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::two_columns;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Show what a reload of the settings would change: which servers are connected, removed or replaced, and why.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox servers plan\n  octoprox servers plan --from octoprox.yaml.bak-1 --all"
)]
pub struct Plan {
    /// Compare with this settings file instead of the applied settings
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// List unchanged servers, too
    #[arg(long)]
    all: bool,
    /// Print the plan as JSON: {changes: [{server, action, reason}]}
    #[arg(long)]
    json: bool,
}

impl Plan {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let new = &loaded.settings.servers;
        let applied = loaded.settings.state_dir.as_deref().and_then(AppliedServers::read);
        let mut changes = match (&self.from, applied) {
            (Some(from), _) => {
                let old = Flags { config: Some(from.clone()), ..Flags::default() };
                plan(&load_for_comparison(&Environment::current(), &old)?.servers, new)
            }
            (None, Some(applied)) => applied.plan(new),
            (None, None) => {
                console::print_err(
                    "No hub has run with these settings yet. The plan is for the first start.",
                );
                plan(&Servers::new(), new)
            }
        };
        changes.retain(|change| self.all || change.action != Action::Unchanged);
        if self.json {
            return Ok(console::print(&json!({"changes": changes}).to_string())?);
        }
        if changes.is_empty() {
            console::print_err("Nothing would change.");
            return Ok(());
        }
        let row = |change: &crate::settings::reload::server_plan::ServerChange| {
            (format!("{:9}  {}", change.action, change.server), change.reason.clone())
        };
        Ok(console::print(&two_columns(&changes.iter().map(row).collect::<Vec<_>>(), columns()))?)
    }
}

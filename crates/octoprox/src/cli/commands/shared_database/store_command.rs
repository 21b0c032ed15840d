//! `octoprox store`: copies the state.

use crate::app_context::{block_on_multi_thread, load_settings};
use crate::app_error::AppError;
use crate::settings::{Environment, Flags};
use crate::stores::store_copy::{CopyTarget, StoreCopy};
use crate::terminal::console;
use clap::{Args, Subcommand};
use octo_ports::transfer::{StateKind, TransferCounts};
use serde_json::{Map, Value, json};

/// Copy the state between the state directory and a shared database.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox store copy --to postgres")]
pub struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Copy(CopyState),
}

/// Copy all state between `state_dir` and the database of `store.postgres`. Stop all hubs first. The target must be empty;
/// the source stays as it is. Everything is copied or nothing.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox store copy --to postgres\n  octoprox store copy --to sqlite --json"
)]
struct CopyState {
    /// Where to copy the state to
    #[arg(long, value_enum)]
    to: CopyTarget,
    /// Print the result as JSON: {to, schema, state_dir, counts}
    #[arg(long)]
    json: bool,
}

impl Store {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            Command::Copy(copy) => copy.run(flags),
        }
    }
}

impl CopyState {
    fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let copy = StoreCopy::new(&loaded.settings, &Environment::current(), self.to)?;
        let counts = block_on_multi_thread(copy.run())?;
        let text = if self.json { render_json(&copy, &counts) } else { render_text(&copy, &counts) };
        Ok(console::print(&text)?)
    }
}

fn render_json(copy: &StoreCopy, counts: &TransferCounts) -> String {
    let to = match copy.target {
        CopyTarget::Postgres => "postgres",
        CopyTarget::Sqlite => "sqlite",
    };
    let count = |kind: StateKind| (kind.as_str().to_owned(), json!(counts.get(kind)));
    let counts: Map<String, Value> = StateKind::ALL.into_iter().map(count).collect();
    let (schema, dir) = (copy.database.schema.as_str(), copy.dir.display().to_string());
    json!({"to": to, "schema": schema, "state_dir": dir, "counts": counts}).to_string()
}

fn render_text(copy: &StoreCopy, counts: &TransferCounts) -> String {
    let (dir, schema) = (copy.dir.display(), copy.database.schema.as_str());
    let title = match copy.target {
        CopyTarget::Postgres => format!("Copied {dir} to schema `{schema}`:"),
        CopyTarget::Sqlite => format!("Copied schema `{schema}` to {dir}:"),
    };
    let line = |kind: StateKind| format!("  {:<15}{:>9}", kind.as_str().replace('_', " "), counts.get(kind));
    std::iter::once(title).chain(StateKind::ALL.into_iter().map(line)).collect::<Vec<_>>().join("\n")
}

//! `octoprox servers plan`.

use crate::cli::failure::Failure;
use crate::cli::out;
use crate::cli::session::settings;
use crate::cli::table::table;
use crate::cli::width::columns;
use crate::settings::plan::{Action, Servers, plan};
use crate::settings::{Applied, Flags, World, load_to_compare};
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
    /// Print the plan as JSON: {changes: [{server, action, why}]}
    #[arg(long)]
    json: bool,
}

impl Plan {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        let new = &loaded.settings.servers;
        let applied = loaded.settings.state_dir.as_deref().and_then(Applied::read);
        let mut changes = match (&self.from, applied) {
            (Some(from), _) => {
                let old = Flags { config: Some(from.clone()), ..Flags::default() };
                plan(&load_to_compare(&World::real(), &old)?.servers, new)
            }
            (None, Some(applied)) => applied.plan(new),
            (None, None) => {
                out::talk("No hub has run with these settings yet; this is what one would do.");
                plan(&Servers::new(), new)
            }
        };
        changes.retain(|change| self.all || change.action != Action::Unchanged);
        if self.json {
            return Ok(out::data(&json!({"changes": changes}).to_string())?);
        }
        if changes.is_empty() {
            out::talk("Nothing would change.");
            return Ok(());
        }
        let row = |change: &crate::settings::plan::Change| {
            (format!("{:9}  {}", change.action, change.server), change.why.clone())
        };
        Ok(out::data(&table(&changes.iter().map(row).collect::<Vec<_>>(), columns()))?)
    }
}

//! `octoprox servers diff`: shows and accepts drift of a server's definitions.

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::packages::{PackagePin, check_pin};
use crate::settings::Flags;
use crate::settings::state_dir;
use crate::stores::stores;
use crate::terminal::console;
use crate::terminal::text_table::sanitize_text;
use clap::Args;
use octo_hub::trust::{Difference, Severity, differences};
use octo_model::ToolError;
use octo_ports::{PendingPin, PinKind, ServerIdentity};
use octo_toolkit::hidden_text::strip_hidden;
use serde_json::{Value, json};

/// Maximum length of a shown text, without `--all`.
const MAX_SHOWN_CHARS: usize = 400;

/// Review definitions of a server that are held back, most severe first, against the pinned ones. Accept them with
/// --accept; a running hub picks that up within seconds. Exit with code 1 while definitions are held back.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox servers diff notion
  octoprox servers diff notion --accept
  octoprox servers diff notion --only search --accept")]
pub struct Diff {
    /// Name of the server
    server: String,
    /// Only these tools, prompts, resources or `instructions`, by the server's own names
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Accept what is shown
    #[arg(long)]
    accept: bool,
    /// Show harmless differences and complete texts, too
    #[arg(long)]
    all: bool,
    /// Print as JSON: {server, held: [{kind, name, severity, since, pinned, differences}], accepted}
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let servers = &loaded.settings.servers;
        if !servers.contains_key(&self.server) {
            let error = ToolError::not_found(format!("Server not found: `{}`.", self.server));
            return Err(error.hint("Run `octoprox servers list` to see the servers.").into());
        }
        let others = servers.keys().filter(|name| **name != self.server).cloned().collect();
        let whose = ServerIdentity { server: self.server.clone(), identity: String::new(), others };
        state_dir(loaded.settings.state_dir.as_ref())?;
        let pins = stores(&loaded.settings)?.pins;
        let package = servers.get(&self.server).and_then(|server| {
            let (package, digest) = (server.package.clone()?, server.digest.clone()?);
            Some((PackagePin { server: self.server.clone(), package, digest }, server.trust))
        });
        block_on_current_thread(async {
            let mut names = vec![self.server.clone()];
            if let Some((package, trust)) = package {
                // It may have changed since the last start.
                let _held = check_pin(pins.as_ref(), &package, trust.into()).await;
                names.insert(0, PackagePin::identity_of(&self.server).server);
            }
            names.push(octo_hub::app_pins(&whose).server);
            // A held package comes first: nothing else is known of it before it runs.
            let mut held = Vec::new();
            let mut accepted = 0;
            for name in names {
                let mut pending = pins.pending(&name).await?;
                pending.retain(|one| {
                    self.only.is_empty() || self.only.iter().any(|name| *name == item_name(one))
                });
                if self.accept && !pending.is_empty() {
                    let chosen = pending.iter().map(|one| one.new.clone()).collect();
                    accepted += pins.accept(&name, chosen).await?;
                }
                held.extend(pending);
            }
            let accepted = (self.accept && !held.is_empty()).then_some(accepted);
            self.print_result(&whose, &held, accepted)?;
            if held.is_empty() || accepted.is_some() { Ok(()) } else { Err(AppError::silent(1)) }
        })
    }

    fn print_result(
        &self,
        whose: &ServerIdentity,
        held: &[PendingPin],
        accepted: Option<usize>,
    ) -> Result<(), AppError> {
        if self.json {
            let held: Vec<Value> = held.iter().map(|one| to_json(whose, one)).collect();
            let told = json!({"server": self.server, "held": held, "accepted": accepted.unwrap_or(0)});
            return Ok(console::print(&told.to_string())?);
        }
        if held.is_empty() {
            console::print_err(&format!("{} has no held definitions.", self.server));
            return Ok(());
        }
        for one in held {
            console::print(&self.describe(one, &differences(whose, one)))?;
        }
        match accepted {
            Some(count) => {
                console::print_err(&format!("Accepted {count}. A running hub lists them within seconds."))
            }
            None => {
                let is_package = held.iter().any(|one| one.new.kind == PinKind::Package);
                let now =
                    if is_package { "The server does not start" } else { "The hub uses what is pinned" };
                console::print_err(&format!(
                    "{now} until you accept this with: octoprox servers diff {} --accept",
                    self.server
                ));
            }
        }
        Ok(())
    }

    fn describe(&self, held: &PendingPin, found: &[Difference]) -> String {
        let worst = found.first().map_or(Severity::Notable, |one| one.severity);
        let fate = match (held.new.kind, &held.pinned) {
            (PinKind::Package, _) => "not started",
            (PinKind::App, _) => "not shown",
            (_, Some(_)) => "the pinned one is listed",
            (_, None) => "not listed",
        };
        let (what, name) = (held.new.kind.as_str(), escape_hidden(&held.new.key));
        let mut said = format!("{:9}  {}; {fate}\n", worst.as_str(), format!("{what} {name}").trim_end());
        // A tool with a declared effect is also held for a harmless difference.
        let hides_harmless = !self.all && worst > Severity::Harmless;
        for one in found.iter().filter(|one| !hides_harmless || one.severity > Severity::Harmless) {
            said.push_str(&format!(
                "  {}: {} {}\n",
                one.severity.as_str(),
                escape_hidden(&one.path),
                escape_hidden(&one.message)
            ));
            for (sign, text) in [('-', &one.before), ('+', &one.after)] {
                for line in text.iter().flat_map(|text| self.truncated_lines(text)) {
                    said.push_str(&format!("    {sign} {line}\n"));
                }
            }
        }
        if held.pinned.is_none() && found.is_empty() {
            let definition: Value = held.new.text.to().unwrap_or_default();
            let text = definition.get("description").and_then(Value::as_str).unwrap_or("no description");
            self.truncated_lines(text).iter().for_each(|line| said.push_str(&format!("  new: {line}\n")));
        }
        if held.pinned.is_none() && self.all {
            said.push_str(&format!("  whole: {}\n", escape_hidden(held.new.text.as_str())));
        }
        sanitize_text(&said)
    }

    fn truncated_lines(&self, text: &str) -> Vec<String> {
        let text = escape_hidden(text);
        let text = match text.char_indices().nth(MAX_SHOWN_CHARS).filter(|_| !self.all) {
            Some((at, _)) => format!("{}… (--all shows the rest)", text.get(..at).unwrap_or_default()),
            None => text,
        };
        text.lines().map(str::to_owned).collect()
    }
}

/// Name that `--only` matches.
fn item_name(held: &PendingPin) -> &str {
    if held.new.key.is_empty() { held.new.kind.as_str() } else { &held.new.key }
}

/// Replaces hidden characters with their code points, so that the user sees what a model would read.
fn escape_hidden(text: &str) -> String {
    if strip_hidden(text).removed == 0 {
        return text.to_owned();
    }
    let mut shown = String::new();
    for c in text.chars() {
        if strip_hidden(c.encode_utf8(&mut [0; 4])).removed > 0 {
            shown.push_str(&format!("<U+{:04X}>", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

fn to_json(whose: &ServerIdentity, held: &PendingPin) -> Value {
    let found = differences(whose, held);
    json!({
        "kind": held.new.kind.as_str(),
        "name": held.new.key,
        "severity": found.first().map_or(Severity::Notable, |one| one.severity),
        "since": held.since,
        "pinned": held.pinned.is_some(),
        "differences": found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::{ItemKind, Json};
    use octo_ports::Pin;

    #[test]
    fn a_difference_in_words() {
        let pin = |description: &str| Pin {
            kind: PinKind::Item(ItemKind::Tool),
            key: "search".to_owned(),
            text: Json::from(json!({"name": "search", "description": description})),
            hash: description.to_owned(),
        };
        let held =
            PendingPin { new: pin("Finds\u{e0041} pages."), pinned: Some(pin("Finds notes.")), since: 0 };
        let diff = Diff { server: "n".into(), only: Vec::new(), accept: false, all: false, json: false };
        let whose = ServerIdentity { server: "n".into(), ..ServerIdentity::default() };
        assert_eq!(
            diff.describe(&held, &differences(&whose, &held)),
            "dangerous  tool search; the pinned one is listed\n  \
             dangerous: description has 1 hidden characters\n    + Finds<U+E0041> pages.\n  \
             notable: description text changed\n    - Finds notes.\n    + Finds<U+E0041> pages.\n"
        );
        assert_eq!(item_name(&held), "search");
    }
}

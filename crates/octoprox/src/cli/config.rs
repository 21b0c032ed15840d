//! `octoprox config`: the settings themselves.

use super::failure::Failure;
use super::out;
use super::session::settings;
use crate::settings::{Flags, Loaded, Problems, binding, schema, show};
use crate::telemetry::{Redactor, secrets};
use clap::{Args, Subcommand};
use serde_json::Value;

/// Checks, explains and shows the settings.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox config check")]
pub struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Says `ok`, or everything that is wrong; then the exit code is 2.
    #[command(after_help = "Example:\n  octoprox config check --config deploy/octoprox.yaml")]
    Check,
    /// Prints the JSON Schema of the settings file, for editors.
    #[command(after_help = "Example:\n  octoprox config schema > octoprox.schema.json")]
    Schema,
    /// Prints the settings in force, and where each that is not the default comes from. Secrets are ***.
    #[command(after_help = "Example:\n  octoprox config show | grep listen")]
    Show {
        /// Print them as JSON: {settings, origins}
        #[arg(long)]
        json: bool,
    },
}

impl Config {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        match &self.command {
            Command::Schema => Ok(out::data(&format!("{:#}", schema()))?),
            Command::Check => check(&settings(flags)?),
            Command::Show { json } => {
                let loaded = settings(flags)?;
                let shown = show(&loaded, &Redactor::new(secrets(&loaded)));
                Ok(out::data(&if *json { format!("{shown:#}") } else { lines(&shown) })?)
            }
        }
    }
}

fn check(loaded: &Loaded) -> Result<(), Failure> {
    if let Some(problem) = binding(&loaded.settings, &loaded.layers) {
        return Err(Problems::from(problem).into());
    }
    for note in &loaded.notes {
        out::talk(&format!("octoprox: {note}"));
    }
    match &loaded.file {
        Some(path) => out::talk(&format!("{} holds together.", path.display())),
        None => out::talk("There is no settings file; the defaults are used."),
    }
    Ok(out::data("ok")?)
}

/// One line for each setting, with a note where it does not come from the defaults.
fn lines(shown: &Value) -> String {
    let mut lines = Vec::new();
    flatten(&shown["settings"], "", &mut lines);
    let origin = |path: &str| {
        let item = format!("{path}[");
        let mut known = shown["origins"].as_object().into_iter().flatten();
        let found = known.find(|(known, _)| path == *known || known.starts_with(&item));
        found.and_then(|(_, origin)| origin.as_str())
    };
    let line = |(path, value): &(String, String)| match origin(path) {
        Some(origin) => format!("{path}: {value}  # {origin}\n"),
        None => format!("{path}: {value}\n"),
    };
    lines.iter().map(line).collect()
}

fn flatten(value: &Value, path: &str, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                flatten(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, lines);
            }
        }
        Value::Null => {}
        value => lines.push((path.to_owned(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_as_lines() {
        let shown = json!({
            "settings": {"listen": {"port": 1}, "limits": [], "auth": {"tokens": [{"name": "a"}]}, "x": null},
            "origins": {"listen.port": "flag --port", "auth.tokens": "a.yaml"},
        });
        let expected =
            "listen.port: 1  # flag --port\nlimits: []\nauth.tokens: [{\"name\":\"a\"}]  # a.yaml\n";
        assert_eq!(lines(&shown), expected);
    }
}

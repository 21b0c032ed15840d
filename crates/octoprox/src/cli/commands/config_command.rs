//! `octoprox config`: checks, shows and reloads the settings.

use crate::app_context::load_settings;
use crate::app_error::{AppError, exit_code};
use crate::process::running_hubs::{RunningHub, running_hubs};
use crate::reloader::ReloadReport;
use crate::settings::state_dir;
use crate::settings::{
    Flags, LoadedSettings, SettingsProblems, settings_schema, settings_view, unauthenticated_binding,
};
use crate::telemetry::{Redactor, settings_secrets};
use crate::terminal::console;
use crate::terminal::text_table::sanitize_text;
use clap::{Args, Subcommand};
use octo_model::{Kind, ToolError};
use serde_json::Value;

/// Check, show and reload the settings.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox config check")]
pub struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the settings. Report every problem and exit with code 2 if there are any.
    #[command(after_help = "Example:\n  octoprox config check --config deploy/octoprox.yaml")]
    Check {
        /// Print the result as JSON: {ok, file, notes}
        #[arg(long)]
        json: bool,
    },
    /// Reload the settings of running hubs and print what changed. Invalid settings change nothing, and the exit code is 2.
    #[command(after_help = "Example:\n  octoprox config reload")]
    Reload {
        /// Print the result of each hub as JSON: {hubs: [{pid, applied, needs_restart, servers, warnings, error}]}
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the settings file, for editors.
    #[command(after_help = "Example:\n  octoprox config schema > octoprox.schema.json")]
    Schema,
    /// Print the effective settings and the origin of each value that is not the default. Secrets are shown as ***.
    #[command(after_help = "Example:\n  octoprox config show | grep listen")]
    Show {
        /// Print as JSON: {settings, origins}
        #[arg(long)]
        json: bool,
    },
}

impl Config {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            Command::Schema => Ok(console::print(&format!("{:#}", settings_schema()))?),
            Command::Check { json } => check(&load_settings(flags)?, *json),
            Command::Reload { json } => reload(&load_settings(flags)?, *json),
            Command::Show { json } => {
                let loaded = load_settings(flags)?;
                let shown = settings_view(&loaded, &Redactor::new(settings_secrets(&loaded)));
                Ok(console::print(&if *json { format!("{shown:#}") } else { settings_lines(&shown) })?)
            }
        }
    }
}

fn check(loaded: &LoadedSettings, json: bool) -> Result<(), AppError> {
    if let Some(problem) = unauthenticated_binding(&loaded.settings, &loaded.layers) {
        return Err(SettingsProblems::from(problem).into());
    }
    if json {
        let outcome = serde_json::json!({"ok": true, "file": loaded.file, "notes": loaded.notes});
        return Ok(console::print(&outcome.to_string())?);
    }
    for note in &loaded.notes {
        console::print_err(&format!("octoprox: {note}"));
    }
    match &loaded.file {
        Some(path) => console::print_err(&format!("{} is valid.", path.display())),
        None => console::print_err("No settings file; using the defaults."),
    }
    Ok(console::print("ok")?)
}

/// Reloads every hub with the state directory of these settings and returns their reports.
pub fn reload_all(loaded: &LoadedSettings) -> Result<Vec<(String, ReloadReport)>, AppError> {
    let state = state_dir(loaded.settings.state_dir.as_ref())?;
    let failed =
        |error: std::io::Error| ReloadReport { error: Some(error.to_string()), ..Default::default() };
    let reload = |hub: &RunningHub| (hub.pid.to_string(), hub.reload().unwrap_or_else(failed));
    Ok(running_hubs(&state)?.iter().map(reload).collect())
}

fn reload(loaded: &LoadedSettings, json: bool) -> Result<(), AppError> {
    let reports = reload_all(loaded)?;
    if reports.is_empty() {
        return Err(ToolError::not_found("No hub is running with the state directory of these settings.")
            .hint("Start one with `octoprox serve`, or name its settings with --config.")
            .into());
    }
    if json {
        let hubs: Vec<Value> = reports.iter().map(|(pid, report)| report_json(pid, report)).collect();
        console::print(&serde_json::json!({"hubs": hubs}).to_string())?;
    } else {
        reports.iter().try_for_each(|(pid, report)| console::print(&report_text(pid, report)))?;
    }
    let failed = reports.iter().any(|(_, report)| report.error.is_some());
    if failed { Err(AppError::silent(exit_code(Kind::Invalid))) } else { Ok(()) }
}

fn report_json(pid: &str, report: &ReloadReport) -> Value {
    let mut value = serde_json::json!(report);
    if let Value::Object(members) = &mut value {
        members.insert("pid".to_owned(), pid.parse::<u32>().map_or(Value::Null, Value::from));
    }
    value
}

/// Renders the report of one hub, one line per change.
fn report_text(pid: &str, report: &ReloadReport) -> String {
    if let Some(error) = &report.error {
        return sanitize_text(&format!("hub {pid}: nothing changed: {error}\n"));
    }
    let applied = report.applied.iter().map(|setting| format!("  applied        {setting}"));
    let waiting = report.needs_restart.iter().map(|setting| format!("  needs restart  {setting}"));
    let servers = report.servers.iter().map(|change| format!("  server         {change}"));
    let warnings = report.warnings.iter().map(|warning| format!("  warning        {warning}"));
    let lines: Vec<String> = applied.chain(servers).chain(waiting).chain(warnings).collect();
    if lines.is_empty() {
        return format!("hub {pid}: no changes.\n");
    }
    sanitize_text(&format!("hub {pid}:\n{}\n", lines.join("\n")))
}

/// Renders one line per setting, with the origin if it is not the default.
fn settings_lines(shown: &Value) -> String {
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
        assert_eq!(settings_lines(&shown), expected);
    }
}

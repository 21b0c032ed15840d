//! `octoprox doctor`: checks the settings and this machine.

mod fleet_checks;
mod login_checks;
mod machine_checks;

use crate::app_error::AppError;
use crate::settings::{Environment, Flags, Settings, WorkspaceChoice, load};
use crate::terminal::console;
use crate::terminal::terminal_width::{columns, wrap_words};
use crate::terminal::text_table::sanitize_text;
use clap::Args;
use fleet_checks::fleet_checks;
use login_checks::login_checks;
pub use login_checks::lost_logins;
use machine_checks::{machine_checks, server_checks};
use serde::Serialize;
use serde_json::json;

/// Check the settings and this machine: workspace, git, browser, sandbox, data directory, port, and the program of each
/// server; with a shared database or a fleet, also the database, NATS, and who serves the workspace. Every problem comes
/// with a next step. Exit with code 1 if a check fails.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox doctor\n  octoprox doctor --json")]
pub struct Doctor {
    /// Print the findings as JSON: {ok, checks: [{name, state, message, hint}]}
    #[arg(long)]
    json: bool,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    Warn,
    Fail,
}

/// Result of one check, with the next step as `hint`.
#[derive(Debug, Serialize)]
pub struct Finding {
    name: String,
    state: Verdict,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
}

impl Finding {
    fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), state: Verdict::Ok, message: message.into(), hint: String::new() }
    }

    fn problem(
        state: Verdict,
        name: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), state, message: message.into(), hint: hint.into() }
    }
}

impl Doctor {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let mut findings = Vec::new();
        match load(&world, flags) {
            Ok(loaded) => {
                findings.push(match &loaded.file {
                    Some(path) => Finding::ok("settings", format!("{} is valid", path.display())),
                    None => Finding::ok("settings", "no settings file; using the defaults"),
                });
                for note in loaded.notes.iter().filter(|note| !note.starts_with("the server ")) {
                    findings.push(Finding::problem(
                        Verdict::Warn,
                        "settings",
                        note.as_str(),
                        "Fix the settings.",
                    ));
                }
                for ignored in &loaded.unapproved {
                    let (message, hint) = ignored.split_once(". ").unwrap_or((ignored, ""));
                    findings.push(Finding::problem(Verdict::Warn, "settings", message, hint));
                }
                findings.extend(machine_checks(&loaded.settings, &loaded.workspace, &world)?);
                findings.extend(server_checks(&loaded, &world));
                findings.extend(fleet_checks(&loaded.settings, &world)?);
                findings.extend(login_checks(&loaded, &world));
            }
            Err(problems) => {
                for problem in &problems.0 {
                    let message = format!("{}: {} {}", problem.origin, problem.path, problem.message);
                    findings.push(Finding::problem(
                        Verdict::Fail,
                        "settings",
                        message,
                        problem.hint.as_str(),
                    ));
                }
                // The remaining checks use the default settings.
                let state_dir = crate::settings::load::settings_locations::state_dir(&world);
                let choice = WorkspaceChoice::implicit(&world);
                let started_in = (choice == WorkspaceChoice::CurrentDir).then(|| world.current_dir.clone());
                let settings = Settings { workspace: started_in, state_dir, ..Settings::default() };
                findings.extend(machine_checks(&settings, &choice, &world)?);
            }
        }
        let ok = findings.iter().all(|finding| finding.state != Verdict::Fail);
        if self.json {
            console::print(&json!({"ok": ok, "checks": findings}).to_string())?;
        } else {
            console::print(
                &findings.iter().map(|finding| render_finding(finding, columns())).collect::<String>(),
            )?;
        }
        if ok { Ok(()) } else { Err(AppError::silent(1)) }
    }
}

/// Renders `ok    git         2.43 at /usr/bin/git`, with the next step below.
fn render_finding(finding: &Finding, width: usize) -> String {
    const INDENT: usize = 18;
    let word = match finding.state {
        Verdict::Ok => "ok",
        Verdict::Warn => "warn",
        Verdict::Fail => "FAIL",
    };
    let room = width.saturating_sub(INDENT);
    let mut lines = wrap_words(&sanitize_text(&finding.message), room).into_iter();
    let first = lines.next().unwrap_or_default();
    let mut text = format!("{word:4}  {:10}  {first}\n", finding.name);
    lines.for_each(|line| text.push_str(&format!("{:INDENT$}{line}\n", "")));
    for (at, line) in wrap_words(&sanitize_text(&finding.hint), room.saturating_sub(2)).iter().enumerate() {
        let mark = if at == 0 { "→ " } else { "  " };
        text.push_str(&format!("{:INDENT$}{mark}{line}\n", ""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_fit_a_terminal() {
        let long = Finding::problem(Verdict::Fail, "settings", "word ".repeat(40), "step ".repeat(30));
        let text = render_finding(&long, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("FAIL  settings    word word") && text.contains("  → step step"), "{text}");
        assert_eq!(render_finding(&Finding::ok("git", "fine"), 80), "ok    git         fine\n");
    }
}

//! Shared code of the tools that start commands: operator settings, command check, and data loss warning.

use crate::ShellSettings;
use crate::command_policy::CommandPolicy;
use crate::data_loss;
use octo_toolkit::fs::{EntryKind, Read};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError, WorkPath};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Operator settings with parsed lists.
#[derive(Clone)]
pub struct Shell(Arc<ShellPolicy>);

struct ShellPolicy {
    commands: CommandPolicy,
    max_timeout: Duration,
    network: bool,
}

/// A command line that may run.
pub struct CheckedCommand {
    pub cwd: RootedPath,
    /// Possible data loss.
    pub warning: Option<String>,
    /// Leaves commands in the background without waiting for them.
    pub background: bool,
}

/// Timeout of a command, and whether it was lowered.
pub struct Timeout {
    pub limit: Duration,
    is_operator_limit: bool,
    is_call_deadline: bool,
}

impl Timeout {
    /// The end of the call matters only to a command that reached it.
    pub fn note(&self, met: bool) -> Option<String> {
        let seconds = self.limit.as_secs_f64();
        let why = match (self.is_operator_limit, self.is_call_deadline && met) {
            (_, true) => "the call itself ends by then",
            (true, false) => "that is the operator's limit",
            (false, false) => return None,
        };
        Some(format!(
            "timeout_s was lowered to {seconds:.1} s, because {why}; use shell_start for longer commands."
        ))
    }
}

impl Shell {
    pub fn new(settings: ShellSettings) -> Self {
        let guard = CommandPolicy::new(&settings.allowed_commands, &settings.blocked_commands);
        Self(Arc::new(ShellPolicy {
            commands: guard,
            max_timeout: Duration::from_secs(settings.max_timeout_seconds),
            network: settings.network || settings.local_servers,
        }))
    }

    /// A caller can only disable the network.
    pub fn network(&self, asked: Option<bool>, notes: &mut Vec<String>) -> bool {
        if asked == Some(true) && !self.0.network {
            notes.push("The operator has disabled network access for commands.".to_owned());
        }
        self.0.network && asked.unwrap_or(true)
    }

    /// The requested timeout, limited by the operator's maximum and the deadline of this call.
    pub fn timeout(&self, asked: u64, cx: &CallContext) -> Result<Timeout, ToolError> {
        if asked == 0 {
            return Err(ToolError::invalid("timeout_s is 0.").hint("Use at least one second."));
        }
        let asked = Duration::from_secs(asked);
        let most = self.0.max_timeout;
        // Leaves time to reply before the call itself ends.
        let left = cx.time_left().saturating_sub(Duration::from_millis(500));
        let limit = asked.min(most).min(left);
        Ok(Timeout { limit, is_operator_limit: asked > most, is_call_deadline: limit < asked.min(most) })
    }

    /// Checks a line against the operator's lists and determines possible data loss.
    pub async fn check(
        &self,
        command: &str,
        cwd: &WorkPath,
        env: &BTreeMap<String, String>,
        fs: &Fs<Read>,
        cx: &CallContext,
    ) -> Result<CheckedCommand, ToolError> {
        let line = self.0.commands.check(command)?;
        self.0.commands.check_env(env.keys().map(String::as_str))?;
        let cwd = fs.place(cwd)?;
        let danger = data_loss::detect(&line);
        let mut clauses = danger.clauses;
        clauses.extend(overwritten_files(fs, &cwd, danger.overwrites).await);
        let warning = (!clauses.is_empty()).then(|| format!("This command {}.", clauses.join("; ")));
        if let Some(warning) = &warning {
            tracing::warn!(call = %cx.id, caller = %cx.caller.principal.subject, %warning, "command may lose data");
        }
        let waits = line.commands.iter().any(|simple| simple.name() == Some("wait"));
        let background = !waits && line.commands.iter().any(|simple| simple.background);
        Ok(CheckedCommand { cwd, warning, background })
    }
}

/// Those of the files that exist and are not empty.
async fn overwritten_files(fs: &Fs<Read>, cwd: &RootedPath, files: Vec<String>) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let cwd = cwd.clone();
    let found = fs.run(move |fs| {
        let there = files.into_iter().filter(|file| {
            let place = match file.starts_with('/') {
                true => fs.place(&WorkPath::from(file.as_str())),
                false => Ok(cwd.join(file)),
            };
            let stat = place.and_then(|place| fs.stat(&place));
            stat.is_ok_and(|stat| stat.kind == EntryKind::File && stat.size > 0)
        });
        Ok(there.collect::<Vec<_>>())
    });
    // Only a warning; files that cannot be checked are ignored.
    let there = found.await.unwrap_or_default();
    (!there.is_empty()).then(|| format!("replaces {}", there.join(", ")))
}

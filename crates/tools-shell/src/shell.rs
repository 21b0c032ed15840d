//! What the tools that start commands share: the operator's settings, the check of a line, and the warning about it.

use crate::Settings;
use crate::command_policy::CommandPolicy;
use crate::data_loss;
use octo_toolkit::fs::{EntryKind, Read};
use octo_toolkit::{CallContext, Fs, RootedPath, ToolError, WorkPath};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The operator's settings with their lists taken apart once.
#[derive(Clone)]
pub struct Shell(Arc<ShellPolicy>);

struct ShellPolicy {
    commands: CommandPolicy,
    max_timeout: Duration,
    network: bool,
}

/// A line that may run.
pub struct CheckedCommand {
    pub cwd: RootedPath,
    /// What it may lose.
    pub warning: Option<String>,
    /// It leaves commands in the background that it does not wait for.
    pub background: bool,
}

/// How long a command may run, and whether that is less than was asked for.
pub struct Timeout {
    pub limit: Duration,
    is_operator_limit: bool,
    is_call_deadline: bool,
}

impl Timeout {
    /// The end of the call matters only to a command that met it.
    pub fn note(&self, met: bool) -> Option<String> {
        let seconds = self.limit.as_secs_f64();
        let why = match (self.is_operator_limit, self.is_call_deadline && met) {
            (_, true) => "the call itself ends then",
            (true, false) => "the operator allows no more",
            (false, false) => return None,
        };
        Some(format!(
            "timeout_s was lowered to {seconds:.1} s, since {why}; use shell_start for what takes longer."
        ))
    }
}

impl Shell {
    pub fn new(settings: Settings) -> Self {
        let guard = CommandPolicy::new(&settings.allowed, &settings.blocked);
        Self(Arc::new(ShellPolicy {
            commands: guard,
            max_timeout: settings.max_timeout,
            network: settings.network,
        }))
    }

    /// A caller can only turn the network off.
    pub fn network(&self, asked: Option<bool>, notes: &mut Vec<String>) -> bool {
        if asked == Some(true) && !self.0.network {
            notes.push("The operator has turned the network off for commands.".to_owned());
        }
        self.0.network && asked.unwrap_or(true)
    }

    /// The time limit: what was asked for, within what the operator and this call allow.
    pub fn timeout(&self, asked: u64, cx: &CallContext) -> Result<Timeout, ToolError> {
        if asked == 0 {
            return Err(ToolError::invalid("timeout_s is 0.").hint("Give at least one second."));
        }
        let asked = Duration::from_secs(asked);
        let most = self.0.max_timeout;
        // Room to say what happened before the call itself is over.
        let left = cx.time_left().saturating_sub(Duration::from_millis(500));
        let limit = asked.min(most).min(left);
        Ok(Timeout { limit, is_operator_limit: asked > most, is_call_deadline: limit < asked.min(most) })
    }

    /// Checks a line against the operator's lists and looks at what it would lose.
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
            tracing::warn!(call = %cx.id, caller = %cx.caller.principal.subject, %warning, "a command that may lose data");
        }
        let waits = line.commands.iter().any(|simple| simple.name() == Some("wait"));
        let background = !waits && line.commands.iter().any(|simple| simple.background);
        Ok(CheckedCommand { cwd, warning, background })
    }
}

/// Those of the files that exist and hold something.
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
    // It is only a warning; what cannot be looked at is not warned of.
    let there = found.await.unwrap_or_default();
    (!there.is_empty()).then(|| format!("replaces {}", there.join(", ")))
}

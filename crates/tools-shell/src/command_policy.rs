//! The operator's lists. The sandbox is the fence; these are a guard against accidents.

mod allowed_programs;
mod blocked_commands;

#[cfg(test)]
mod tests;

use crate::command_line::CommandLine;
use blocked_commands::BlockedPattern;
use octo_toolkit::ToolError;

/// A line longer than this is a file that somebody forgot to write.
const MAX_COMMAND_BYTES: usize = 256 * 1024;

/// What may run, by the settings.
pub struct CommandPolicy {
    allowed: Vec<String>,
    blocked: Vec<BlockedPattern>,
}

impl CommandPolicy {
    pub fn new(allowed: &[String], blocked: &[String]) -> Self {
        let named = |list: &[String]| -> Vec<String> {
            list.iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect()
        };
        Self {
            allowed: named(allowed),
            blocked: named(blocked).iter().map(|entry| BlockedPattern::new(entry)).collect(),
        }
    }

    /// The line as it was read, or a refusal.
    pub fn check(&self, command: &str) -> Result<CommandLine, ToolError> {
        if command.trim().is_empty() {
            return Err(
                ToolError::invalid("The command is empty.").hint("Give a command line for the shell.")
            );
        }
        if command.contains('\0') {
            return Err(ToolError::invalid("The command holds a NUL character.").hint("Leave it out."));
        }
        if command.len() > MAX_COMMAND_BYTES {
            return Err(ToolError::invalid(format!("The command is longer than {MAX_COMMAND_BYTES} bytes."))
                .hint("Write it to a file with fs_write_text and run the file."));
        }
        let line = CommandLine::read(command).map_err(|why| {
            ToolError::invalid(format!("The shell cannot read this line: {}.", why.as_str()))
                .hint("Close it, or write a script with fs_write_text and run that.")
        })?;
        if !self.allowed.is_empty() {
            allowed_programs::check(&self.allowed, command, &line)?;
        }
        self.check_blocked(command, &line)?;
        Ok(line)
    }

    /// Variables that decide which program runs are the operator's while there is a list.
    pub fn check_env<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), ToolError> {
        match names
            .into_iter()
            .find(|name| !self.allowed.is_empty() && allowed_programs::is_dangerous_variable(name))
        {
            Some(name) => Err(allowed_programs::variable_error(name)),
            None => Ok(()),
        }
    }

    fn check_blocked(&self, command: &str, line: &CommandLine) -> Result<(), ToolError> {
        if self.blocked.is_empty() {
            return Ok(());
        }
        if line.commands.iter().any(|simple| simple.is_recursive && (simple.piped || simple.background)) {
            return Err(blocked_error("a function that starts itself over and over"));
        }
        match self.blocked.iter().find(|pattern| pattern.matches(command, line)) {
            Some(pattern) => Err(blocked_error(&format!("`{}`", pattern.text()))),
            None => Ok(()),
        }
    }
}

fn blocked_error(what: &str) -> ToolError {
    ToolError::denied(format!("The operator's list of blocked commands names {what}.")).hint(
        "Narrow the command down. The sandbox is what protects the machine; this list guards against accidents, and \
         the operator can change it.",
    )
}

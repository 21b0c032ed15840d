//! Operator lists of commands. The sandbox provides security; these lists prevent accidents.

mod allowed_programs;
mod blocked_commands;

#[cfg(test)]
mod tests;

use crate::command_line::CommandLine;
use blocked_commands::BlockedPattern;
use octo_toolkit::ToolError;

/// Longer lines should be script files.
const MAX_COMMAND_BYTES: usize = 256 * 1024;

/// Which commands may run according to the settings.
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

    /// Returns the parsed line, or a refusal.
    pub fn check(&self, command: &str) -> Result<CommandLine, ToolError> {
        if command.trim().is_empty() {
            return Err(
                ToolError::invalid("The command is empty.").hint("Pass a command line for the shell.")
            );
        }
        if command.contains('\0') {
            return Err(ToolError::invalid("The command contains a NUL character.").hint("Remove it."));
        }
        if command.len() > MAX_COMMAND_BYTES {
            return Err(ToolError::invalid(format!("The command is longer than {MAX_COMMAND_BYTES} bytes."))
                .hint("Write it to a file with fs_write_text and run the file."));
        }
        let line = CommandLine::read(command).map_err(|why| {
            ToolError::invalid(format!("The shell cannot parse this line: {}.", why.as_str()))
                .hint("Fix it, or write a script with fs_write_text and run that.")
        })?;
        if !self.allowed.is_empty() {
            allowed_programs::check(&self.allowed, command, &line)?;
        }
        self.check_blocked(command, &line)?;
        Ok(line)
    }

    /// With a list, only the operator may set variables that determine which program runs.
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
            return Err(blocked_error("a function that calls itself recursively"));
        }
        match self.blocked.iter().find(|pattern| pattern.matches(command, line)) {
            Some(pattern) => Err(blocked_error(&format!("`{}`", pattern.text()))),
            None => Ok(()),
        }
    }
}

fn blocked_error(what: &str) -> ToolError {
    ToolError::denied(format!("The operator's list of blocked commands contains {what}.")).hint(
        "Narrow the command. The sandbox protects the machine; this list prevents accidents, and \
         the operator can change it.",
    )
}

//! Interactive questions with defaults.

use crate::app_error::AppError;
use crate::terminal::console;
use std::io::{BufRead, IsTerminal, Write};

/// Asks the user, or accepts every default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompter {
    Interactive,
    Defaults,
}

impl Prompter {
    /// Asks unless `nobody` is set. Fails if there is no terminal to ask on.
    pub fn new(nobody: bool, command: &str) -> Result<Self, AppError> {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        match (nobody, terminal) {
            (true, _) => Ok(Self::Defaults),
            (false, true) => Ok(Self::Interactive),
            (false, false) => Err(AppError::invalid(format!(
                "`octoprox {command}` asks questions, but there is no terminal. \
                 Add --yes to accept every default, or --dry-run to see what it would do."
            ))),
        }
    }

    pub fn confirm(self, question: &str, default: bool) -> Result<bool, AppError> {
        let choices = if default { "[Y/n]" } else { "[y/N]" };
        loop {
            match self.read_answer(&format!("{question} {choices} "))?.to_ascii_lowercase().as_str() {
                "" => return Ok(default),
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => console::print_err("Answer y or n."),
            }
        }
    }

    /// Reads a line; `None` is the default.
    pub fn ask_line(self, question: &str, default: &str) -> Result<Option<String>, AppError> {
        let answer = self.read_answer(&format!("{question} [{default}] "))?;
        Ok(Some(answer).filter(|answer| !answer.is_empty()))
    }

    fn read_answer(self, question: &str) -> Result<String, AppError> {
        if self == Self::Defaults {
            return Ok(String::new());
        }
        let mut err = std::io::stderr().lock();
        write!(err, "{question}").and_then(|()| err.flush())?;
        drop(err);
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Err(AppError::new("The input ended. Nothing was changed."));
        }
        Ok(line.trim().to_owned())
    }
}

//! Line input without echo.

use crate::app_error::AppError;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Write};
use tokio::io::{AsyncBufReadExt, BufReader};

/// Turns echo off and restores the terminal on drop.
struct EchoOff(Termios);

impl EchoOff {
    fn new() -> Option<Self> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &now).ok()?;
        Some(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
        let _ = writeln!(std::io::stderr());
    }
}

/// Prompts on a terminal; otherwise reads the first line of standard input.
pub async fn read_hidden_line(question: &str) -> Result<String, AppError> {
    let quiet = if std::io::stdin().is_terminal() {
        let quiet = EchoOff::new().ok_or_else(|| {
            AppError::new("Cannot turn off echo on this terminal. Put the key into a file and redirect it to standard input.")
        })?;
        let mut err = std::io::stderr().lock();
        write!(err, "{question}").and_then(|()| err.flush())?;
        Some(quiet)
    } else {
        None
    };
    let mut text = String::new();
    let read = BufReader::new(tokio::io::stdin()).read_line(&mut text).await;
    drop(quiet);
    match read? {
        0 => Err(AppError::invalid("No API key given. Enter it at the prompt or pass it on standard input.")),
        _ => Ok(text),
    }
}

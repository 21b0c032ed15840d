//! Input without echo.

use crate::app_error::AppError;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read, Write};
use tokio::io::{AsyncBufReadExt, BufReader};

/// More than the credential store accepts.
const MAX_INPUT_BYTES: u64 = 1 << 20;

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
    let quiet = prompt(question)?;
    let mut text = String::new();
    let read = BufReader::new(tokio::io::stdin()).read_line(&mut text).await;
    drop(quiet);
    match read? {
        0 => Err(no_value()),
        _ => Ok(text),
    }
}

/// Prompts for a line on a terminal; otherwise reads all of standard input. Without the newline at its end.
pub fn read_hidden_value(question: &str) -> Result<String, AppError> {
    let mut text = String::new();
    match prompt(question)? {
        Some(_quiet) => std::io::stdin().read_line(&mut text)?,
        None => std::io::stdin().lock().take(MAX_INPUT_BYTES).read_to_string(&mut text)?,
    };
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
}

/// Asks a question on a terminal, with echo off while the answer is read.
fn prompt(question: &str) -> Result<Option<EchoOff>, AppError> {
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let quiet = EchoOff::new().ok_or_else(|| {
        AppError::new(
            "Cannot turn off echo on this terminal. Put the value into a file and redirect it to standard input.",
        )
    })?;
    let mut err = std::io::stderr().lock();
    write!(err, "{question}").and_then(|()| err.flush())?;
    Ok(Some(quiet))
}

pub fn no_value() -> AppError {
    AppError::invalid("No value given. Enter it at the prompt or pass it on standard input.")
}

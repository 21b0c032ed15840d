//! Python exceptions: the last frame and the line that names the error.

use super::{Diagnostic, Severity};

/// The last frame.
#[derive(Default)]
pub struct TracebackParser {
    frame: Option<(String, u64)>,
}

impl TracebackParser {
    pub fn read(&mut self, line: &str) -> Option<(Severity, Diagnostic)> {
        if let Some(frame) = line.strip_prefix("  File \"") {
            let (file, rest) = frame.split_once("\", line ")?;
            let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            self.frame = Some((file.to_owned(), number.parse().ok()?));
            return None;
        }
        if line.starts_with([' ', '\t']) || line.is_empty() {
            return None;
        }
        let (file, number) = self.frame.take()?;
        let name = line.split(':').next().unwrap_or(line);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        if !is_name || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let found =
            Diagnostic { file: Some(file), line: Some(number), column: None, message: line.to_owned() };
        Some((Severity::Error, found))
    }
}

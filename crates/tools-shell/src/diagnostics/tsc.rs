//! `src/a.ts(3,5): error TS2322: ...`, also the format of .NET compilers.

use super::{Diagnostic, Severity};

pub fn read(line: &str) -> Option<(Severity, Diagnostic)> {
    let (file, rest) = line.split_once('(')?;
    let (place, message) = rest.split_once("): ")?;
    let (weight, message) = match message.strip_prefix("error ") {
        Some(message) => (Severity::Error, message),
        None => (Severity::Warning, message.strip_prefix("warning ")?),
    };
    let (line, column) = place.split_once(',')?;
    let (code, message) = message.split_once(": ")?;
    let found = Diagnostic {
        file: Some(file.trim().to_owned()),
        line: Some(line.parse().ok()?),
        column: column.parse().ok(),
        message: format!("{message} [{code}]"),
    };
    Some((weight, found))
}

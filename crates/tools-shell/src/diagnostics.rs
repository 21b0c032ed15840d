//! Parses errors and warnings of compilers from their output.

mod gcc_style;
mod python;
mod rustc;
mod tsc;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number per severity.
const MAX_PER_SEVERITY: usize = 50;

/// Maximum bytes of one message.
const MAX_MESSAGE_BYTES: usize = 1_000;

/// A compiler message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// File, as printed by the compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Column, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The message, with the compiler's code.
    pub message: String,
}

impl Diagnostic {
    /// `file:line:column: message`, as far as they are known.
    pub fn line(&self) -> String {
        let place = self
            .file
            .iter()
            .cloned()
            .chain([self.line, self.column].into_iter().flatten().map(|n| n.to_string()));
        place.chain([format!(" {}", self.message)]).collect::<Vec<_>>().join(":").trim_start().to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

/// Findings, limited per severity.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
    /// Number beyond the first fifty of each severity.
    pub omitted: usize,
}

impl Diagnostics {
    fn add(&mut self, weight: Severity, mut found: Diagnostic) {
        let end = found.message.floor_char_boundary(MAX_MESSAGE_BYTES);
        found.message.truncate(end);
        let list = match weight {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if list.contains(&found) {
            return;
        }
        if list.len() < MAX_PER_SEVERITY { list.push(found) } else { self.omitted += 1 }
    }
}

/// Compilers write to either stream, so both are parsed.
pub fn read(stdout: &str, stderr: &str) -> Diagnostics {
    let mut found = Diagnostics::default();
    for text in [stderr, stdout] {
        let text = crate::ansi::strip_ansi(text);
        let lines: Vec<&str> = text.lines().collect();
        let mut exception = python::TracebackParser::default();
        for (at, line) in lines.iter().enumerate() {
            let behind = lines.get(at + 1..).unwrap_or_default();
            let one = rustc::read(line, behind)
                .or_else(|| tsc::read(line))
                .or_else(|| gcc_style::read(line))
                .or_else(|| exception.read(line));
            if let Some((weight, one)) = one {
                found.add(weight, one);
            }
        }
    }
    found
}

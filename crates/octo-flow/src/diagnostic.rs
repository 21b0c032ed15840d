//! Problems of a workflow, with their location.

use schemars::JsonSchema;
use serde::Serialize;

/// A position in the text, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub position: Position,
    /// JSON pointer of the problem.
    pub pointer: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Diagnostic {
    pub fn at_root(message: impl Into<String>) -> Self {
        Self {
            position: Position { line: 1, column: 1 },
            pointer: String::new(),
            message: message.into(),
            hint: None,
        }
    }

    pub fn to_view(&self) -> DiagnosticView {
        DiagnosticView {
            line: self.position.line,
            column: self.position.column,
            path: dotted_path(&self.pointer),
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}

/// A problem as shown to callers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiagnosticView {
    /// Line of the file, from 1.
    pub line: u64,
    /// Column in the line, from 1.
    pub column: u64,
    /// Where it is in the workflow: `steps[2].with.path`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl std::fmt::Display for DiagnosticView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " {hint}"))
    }
}

/// `/steps/2/with/path` as `steps[2].with.path`.
fn dotted_path(pointer: &str) -> String {
    let mut text = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty() {
            text.push_str(&format!("[{part}]"));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(&part.replace("~1", "/").replace("~0", "~"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_in_words() {
        for (pointer, text) in
            [("", ""), ("/steps/2/with/path", "steps[2].with.path"), ("/outputs/a~1b", "outputs.a/b")]
        {
            assert_eq!(dotted_path(pointer), text);
        }
    }
}

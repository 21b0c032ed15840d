//! What is wrong with a workflow, and where.

use schemars::JsonSchema;
use serde::Serialize;

/// A place in the text, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub line: u64,
    pub column: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub mark: Mark,
    /// JSON pointer of what is wrong.
    pub pointer: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn at_root(message: impl Into<String>) -> Self {
        Self {
            mark: Mark { line: 1, column: 1 },
            pointer: String::new(),
            message: message.into(),
            hint: None,
        }
    }

    pub fn told(&self) -> Told {
        Told {
            line: self.mark.line,
            column: self.mark.column,
            path: dotted(&self.pointer),
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}

/// A problem as callers see it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Told {
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

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " {hint}"))
    }
}

/// `/steps/2/with/path` in the words of people.
fn dotted(pointer: &str) -> String {
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
            assert_eq!(dotted(pointer), text);
        }
    }
}

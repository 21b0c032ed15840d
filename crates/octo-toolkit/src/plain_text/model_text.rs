//! Text of a tool's own result.

use super::one_line::one_line;
use std::fmt::Display;

/// Collects the lines of a result in plain text.
#[derive(Debug, Default)]
pub struct ModelText(String);

impl ModelText {
    pub fn new() -> Self {
        Self::default()
    }

    /// A line, whatever the values in it contain.
    #[must_use]
    pub fn line(mut self, line: impl Display) -> Self {
        self.push_line(line);
        self
    }

    /// A line `key: value`.
    #[must_use]
    pub fn field(self, key: &str, value: impl Display) -> Self {
        self.line(format_args!("{key}: {value}"))
    }

    /// A line `key: value`, if there is a value.
    #[must_use]
    pub fn field_if(self, key: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    /// A line, if it applies.
    #[must_use]
    pub fn line_if(self, applies: bool, line: impl Display) -> Self {
        if applies { self.line(line) } else { self }
    }

    #[must_use]
    pub fn lines(mut self, lines: impl IntoIterator<Item = impl Display>) -> Self {
        lines.into_iter().for_each(|line| self.push_line(line));
        self
    }

    /// A line after a prefix. Further lines of the text are indented by its length.
    #[must_use]
    pub fn item(self, prefix: &str, text: &str) -> Self {
        let indent = format!("\n{}", " ".repeat(prefix.chars().count()));
        let lines: Vec<_> = text.trim_end().split('\n').map(one_line).collect();
        self.block(&format!("{prefix}{}", lines.join(&indent)))
    }

    /// Lines as they are. What is around them has to say where they end.
    #[must_use]
    pub fn block(mut self, lines: &str) -> Self {
        self.0.push_str(lines);
        self.0.push('\n');
        self
    }

    /// Text that extends to the end.
    #[must_use]
    pub fn rest(mut self, text: &str) -> Self {
        self.0.push_str(text);
        self
    }

    /// A key, the number of lines, and the text as it is. Nothing if the text is empty.
    #[must_use]
    pub fn text(mut self, key: &str, text: &str) -> Self {
        if text.is_empty() {
            return self;
        }
        match text.lines().count() {
            1 => self.push_line(format_args!("{key}: {}", text.trim_end_matches('\n'))),
            lines => {
                self.push_line(format_args!("{key} ({lines} lines):"));
                self.0.push_str(text);
                if !text.ends_with('\n') {
                    self.0.push('\n');
                }
            }
        }
        self
    }

    pub fn push_line(&mut self, line: impl Display) {
        self.0.push_str(&one_line(&line.to_string()));
        self.0.push('\n');
    }

    /// The text without the end of its last line.
    pub fn finish(mut self) -> Option<String> {
        if self.0.ends_with('\n') {
            self.0.pop();
        }
        (!self.0.is_empty()).then_some(self.0)
    }
}

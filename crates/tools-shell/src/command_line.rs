//! Parser of shell command lines that finds every program in a line. It knows the grammar, not the semantics: what is
//! known only at run time is marked as opaque, never guessed.

mod builtin;
mod nested_commands;
mod shell_parser;
mod wrapper;

#[cfg(test)]
mod tests;

/// Placeholder in a word's text for what is known only at run time.
pub const EXPANSION: char = '\0';

/// Why arithmetic that does not consist of numbers alone is opaque.
const ARITHMETIC_REASON: &str = "arithmetic with variables, whose values can hold commands";

/// One word after quote removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// Parts are known only at run time: variables, substitutions.
    pub has_expansion: bool,
    /// Expansions may split into several words.
    pub may_split: bool,
    /// Contains wildcards that the shell expands.
    pub has_glob: bool,
    /// Partially quoted, so it is not a keyword.
    pub quoted: bool,
}

impl Word {
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The text, if it is completely known.
    pub fn as_literal(&self) -> Option<&str> {
        (!self.has_expansion && !self.has_glob).then_some(self.text.as_str())
    }
}

/// A program with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Variable assignments in front of it.
    pub assignments: Vec<String>,
    /// The program and its arguments; empty for assignments and redirections alone.
    pub words: Vec<Word>,
    /// Files that `>` truncates.
    pub truncated_files: Vec<Word>,
    /// Its input is a pipe.
    pub piped: bool,
    /// Runs in the background.
    pub background: bool,
    /// Calls the function whose body contains it.
    pub is_recursive: bool,
    /// Gets more arguments from its input.
    pub has_input_arguments: bool,
}

impl SimpleCommand {
    pub fn program(&self) -> Option<&Word> {
        self.words.first()
    }

    /// The program without its directory, if known.
    pub fn name(&self) -> Option<&str> {
        self.program().and_then(Word::as_literal).map(file_name)
    }

    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// The last component of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Why a line cannot be parsed; the shell would refuse it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    UnclosedQuote,
    UnbalancedBracket,
    TooDeep,
}

impl ParseError {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnclosedQuote => "a quote is not closed",
            Self::UnbalancedBracket => "a bracket is not closed, or closes nothing",
            Self::TooDeep => "it is nested too deeply",
        }
    }
}

/// Everything that a line runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Every program at any depth: those of the line itself, of substitutions, and those started by programs such as
    /// `env`.
    pub commands: Vec<SimpleCommand>,
    /// What cannot be analyzed.
    pub opaque: Vec<&'static str>,
}

impl CommandLine {
    pub fn read(text: &str) -> Result<Self, ParseError> {
        nested_commands::open(shell_parser::read(text, 0)?)
    }

    fn merge(&mut self, other: CommandLine) {
        self.commands.extend(other.commands);
        self.opaque.extend(other.opaque);
    }
}

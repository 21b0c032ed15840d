//! Entry of the list of blocked commands, compared word by word.

use crate::command_line::{CommandLine, SimpleCommand, Word};

/// A program, optionally with options and operands that must be present.
pub struct BlockedPattern {
    text: String,
    kind: PatternKind,
}

enum PatternKind {
    Command(CommandParts),
    /// Contains shell operators: the line's text is compared, ignoring blanks.
    Text(String),
}

/// A command split into parts, so that `-r -f`, `-fr` and `--recursive --force` are equal.
#[derive(Debug, Default)]
struct CommandParts {
    /// `None` if known only at run time.
    program: Option<String>,
    short_flags: Vec<char>,
    long_options: Vec<String>,
    operands: Vec<String>,
}

impl BlockedPattern {
    pub fn new(text: &str) -> Self {
        let commands = CommandLine::read(text).map(|line| line.commands).unwrap_or_default();
        let shape = match commands.as_slice() {
            [only] if !text.contains(['(', ')', '{', '}', ';', '|', '&', '<', '>', '$', '`']) => {
                PatternKind::Command(CommandParts::from_command(only))
            }
            _ => PatternKind::Text(without_blanks(text)),
        };
        Self { text: text.to_owned(), kind: shape }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn matches(&self, command: &str, line: &CommandLine) -> bool {
        match &self.kind {
            PatternKind::Text(text) => without_blanks(command).contains(text.as_str()),
            PatternKind::Command(pattern) => {
                line.commands.iter().any(|simple| pattern.is_within(&CommandParts::from_command(simple)))
            }
        }
    }
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

impl CommandParts {
    fn from_command(simple: &SimpleCommand) -> Self {
        let program = simple.name().map(str::to_owned);
        let mut parts = Self { program, ..Self::default() };
        let mut options = true;
        for Word { text, .. } in simple.arguments() {
            match text.strip_prefix('-').filter(|rest| options && !rest.is_empty()) {
                Some("-") => options = false,
                Some(long) if long.starts_with('-') => parts.long(long),
                Some(letters) => {
                    parts.long_options.push(text.clone());
                    let letters: Vec<char> = letters.chars().map(|letter| parts.letter(letter)).collect();
                    parts.short_flags.extend(letters);
                }
                None => parts.operands.push(normal(text)),
            }
        }
        parts
    }

    fn long(&mut self, long: &str) {
        let name = long.split('=').next().unwrap_or(long);
        // The program may be known only at run time, so these apply to all.
        match name {
            "-recursive" => self.short_flags.push('r'),
            "-force" => self.short_flags.push('f'),
            _ => {}
        }
        self.long_options.push(format!("-{name}"));
    }

    /// `rm -R` equals `rm -r`.
    fn letter(&self, letter: char) -> char {
        match self.program.as_deref() {
            Some("rm") | None if letter == 'R' => 'r',
            _ => letter,
        }
    }

    /// Whether a command contains everything of this entry.
    fn is_within(&self, command: &CommandParts) -> bool {
        let bare = self.short_flags.is_empty() && self.long_options.is_empty() && self.operands.is_empty();
        let same_program = match (&self.program, &command.program) {
            (Some(pattern), Some(program)) => {
                // `mkfs` matches `mkfs.ext4` as well.
                program == pattern || program.split('.').next() == Some(pattern)
            }
            // A name known only at run time could be any; it matches if the rest does.
            (_, None) => !bare,
            (None, Some(_)) => false,
        };
        same_program && self.options_within(command) && self.operands_within(command)
    }

    fn options_within(&self, command: &CommandParts) -> bool {
        self.short_flags.iter().all(|letter| command.short_flags.contains(letter))
            && self
                .long_options
                .iter()
                .filter(|word| is_one_word(word))
                .all(|word| command.long_options.contains(word))
    }

    /// In this order, with others in between.
    fn operands_within(&self, command: &CommandParts) -> bool {
        let mut left = command.operands.iter();
        self.operands.iter().all(|wanted| left.any(|operand| operand == wanted))
    }
}

/// Long options are compared as a whole; short ones were split, and long ones with a short equivalent were converted.
fn is_one_word(option: &str) -> bool {
    option.starts_with("--") && !matches!(option, "--recursive" | "--force")
}

/// One spelling for each path; everything in the root counts as the root.
fn normal(operand: &str) -> String {
    if !operand.starts_with('/') {
        let bare = operand.trim_end_matches('/');
        return if bare.is_empty() { operand.to_owned() } else { bare.to_owned() };
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in operand.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    match parts.as_slice() {
        [] | ["*" | ".*"] => "/".to_owned(),
        _ => format!("/{}", parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_path_are_one() {
        let rows = [
            ("/", "/"),
            ("//", "/"),
            ("/.", "/"),
            ("/*", "/"),
            ("/..", "/"),
            ("/usr/..", "/"),
            ("/usr/../*", "/"),
            ("/usr/", "/usr"),
            ("/tmp/x", "/tmp/x"),
            ("/tmp/../etc", "/etc"),
            ("./", "."),
            ("~/", "~"),
            ("a//b", "a//b"),
        ];
        for (written, meant) in rows {
            assert_eq!(normal(written), meant, "{written}");
        }
    }
}

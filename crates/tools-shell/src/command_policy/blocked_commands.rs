//! One entry of the list of blocked commands, compared word by word.

use crate::command_line::{CommandLine, SimpleCommand, Word};

/// What an entry says: a program, perhaps with options and operands that must be there, too.
pub struct BlockedPattern {
    text: String,
    kind: PatternKind,
}

enum PatternKind {
    Command(CommandParts),
    /// It has operators of the shell: the line's text is compared, blanks aside.
    Text(String),
}

/// A command taken apart, so that `-r -f`, `-fr` and `--recursive --force` are the same.
#[derive(Debug, Default)]
struct CommandParts {
    /// Nothing when it is known only at run time.
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
        // The program may be known only at run time, so these count for all.
        match name {
            "-recursive" => self.short_flags.push('r'),
            "-force" => self.short_flags.push('f'),
            _ => {}
        }
        self.long_options.push(format!("-{name}"));
    }

    /// `rm -R` is `rm -r`.
    fn letter(&self, letter: char) -> char {
        match self.program.as_deref() {
            Some("rm") | None if letter == 'R' => 'r',
            _ => letter,
        }
    }

    /// Whether all that this entry names is in a command.
    fn is_within(&self, command: &CommandParts) -> bool {
        let bare = self.short_flags.is_empty() && self.long_options.is_empty() && self.operands.is_empty();
        let same_program = match (&self.program, &command.program) {
            (Some(pattern), Some(program)) => {
                // `mkfs` is `mkfs.ext4` as well.
                program == pattern || program.split('.').next() == Some(pattern)
            }
            // A name known only at run time could be any, which is enough when the rest fits.
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

    /// In this order, others between them.
    fn operands_within(&self, command: &CommandParts) -> bool {
        let mut left = command.operands.iter();
        self.operands.iter().all(|wanted| left.any(|operand| operand == wanted))
    }
}

/// Long options are compared whole; single letters were taken apart, and those that mean the same have letters, too.
fn is_one_word(option: &str) -> bool {
    option.starts_with("--") && !matches!(option, "--recursive" | "--force")
}

/// One spelling for each path; everything in the root is the root.
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

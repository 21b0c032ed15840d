//! Subcommands that the tool `git` accepts: a table with their options by exact name and the type of every argument.
//! Everything that is not in the table is refused.

mod command_parser;
mod read_subcommands;
mod write_subcommands;

pub use command_parser::{ParsedCommand, parse};

/// Value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    Nothing,
    Number,
    /// Optional number.
    MaybeNumber,
    /// One line of text.
    Text,
    /// Multi-line text.
    Message,
    Rev,
    Branch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    pub name: &'static str,
    pub value: OptionValue,
    /// Warning about data loss.
    pub data_loss: Option<&'static str>,
}

pub const fn flag(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Nothing, data_loss: None }
}

pub const fn number(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Number, data_loss: None }
}

pub const fn maybe_number(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::MaybeNumber, data_loss: None }
}

pub const fn text(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Text, data_loss: None }
}

pub const fn message(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Message, data_loss: None }
}

pub const fn rev(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Rev, data_loss: None }
}

pub const fn branch(name: &'static str) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Branch, data_loss: None }
}

pub const fn choice(name: &'static str, words: &'static [&'static str]) -> OptionSpec {
    OptionSpec { name, value: OptionValue::Choice(words), data_loss: None }
}

pub const fn with_data_loss(mut opt: OptionSpec, what: &'static str) -> OptionSpec {
    opt.data_loss = Some(what);
    opt
}

/// Positional arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positionals {
    Nothing,
    Revs,
    /// Revisions, and paths after `--` or if a file has that name.
    RevsAndPaths,
    Paths,
    /// Names of branches or tags, and revisions.
    Names,
    /// Patterns, unless given with `-e`, then revisions and paths.
    Pattern,
    /// A remote and refspecs.
    Remote,
    /// Only the name of a remote.
    RemoteName,
    /// The name of a remote and an address.
    NewRemote,
    /// An address and a directory to create.
    Clone,
    /// A directory to create.
    Folder,
}

/// What a subcommand does, which determines what it may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    Read,
    Write,
    /// Creates commits on the branch, which the operator may disable.
    Commit,
    Fetch,
    /// Fetches, and creates commits.
    Pull,
    Push,
    Clone,
    Init,
}

#[derive(Debug, Clone, Copy)]
pub struct Subcommand {
    /// One word, or two if the second selects the action.
    pub name: &'static str,
    pub kind: CommandKind,
    pub positionals: Positionals,
    pub options: &'static [&'static [OptionSpec]],
    /// Always added.
    pub fixed_options: &'static [&'static str],
    /// Options with which it creates no commit.
    pub no_commit_options: &'static [&'static str],
    /// Lists if no name is given, unless one of these options is present.
    pub lists_unless: Option<&'static [&'static str]>,
    /// Warning about data loss, with any options, or with paths.
    pub data_loss: Option<&'static str>,
    pub data_loss_with_paths: Option<&'static str>,
}

const EMPTY_SUBCOMMAND: Subcommand = Subcommand {
    name: "",
    kind: CommandKind::Read,
    positionals: Positionals::Nothing,
    options: &[],
    fixed_options: &[],
    no_commit_options: &[],
    lists_unless: None,
    data_loss: None,
    data_loss_with_paths: None,
};

pub fn subcommands() -> impl Iterator<Item = &'static Subcommand> {
    read_subcommands::READ_SUBCOMMANDS.iter().chain(write_subcommands::WRITE_SUBCOMMANDS)
}

impl Subcommand {
    pub fn all_options(&self) -> impl Iterator<Item = &'static OptionSpec> {
        self.options.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options that start programs, write or read given files, or lead out of the repository.
    const FORBIDDEN_OPTIONS: [&str; 35] = [
        "--config",
        "--config-env",
        "--upload-pack",
        "--receive-pack",
        "--exec",
        "--output",
        "--output-directory",
        "--ext-diff",
        "--textconv",
        "--open-files-in-pager",
        "--template",
        "--separate-git-dir",
        "--reference",
        "--reference-if-able",
        "--recurse-submodules",
        "--git-dir",
        "--work-tree",
        "--exec-path",
        "--no-index",
        "--pathspec-from-file",
        "--file",
        "--contents",
        "--edit",
        "--interactive",
        "--gpg-sign",
        "--sign",
        "--show-signature",
        "--strategy",
        "--filters",
        "--trailer",
        "--ignore-revs-file",
        "--server-option",
        "--verify-signatures",
        "--shallow-since",
        // It enters nested repositories.
        "--dirty",
    ];

    /// The same as short options, which have other meanings elsewhere.
    const FORBIDDEN_SHORT_OPTIONS: [(&str, &str); 10] = [
        ("grep", "-O"),
        ("diff", "-Oo"),
        ("log", "-Oo"),
        ("show", "-Oo"),
        ("clone", "-cuo"),
        ("commit", "-FSeptC"),
        ("tag", "-suF"),
        ("rebase", "-xisS"),
        ("cherry-pick", "-eS"),
        ("push", "-o"),
    ];

    #[test]
    fn no_dangerous_option_is_in_the_table() {
        for row in subcommands() {
            let letters = FORBIDDEN_SHORT_OPTIONS
                .iter()
                .find(|(name, _)| *name == row.name)
                .map_or("", |(_, letters)| letters);
            for opt in row.all_options() {
                let letter =
                    opt.name.len() == 2 && opt.name.chars().nth(1).is_some_and(|c| letters.contains(c));
                // There it returns the location of the repository.
                let asks = (row.name, opt.name) == ("rev-parse", "--git-dir");
                assert!(
                    asks || !FORBIDDEN_OPTIONS.contains(&opt.name) && !letter,
                    "{} {}",
                    row.name,
                    opt.name
                );
            }
        }
    }

    #[test]
    fn names_are_options_and_stand_once() {
        for row in subcommands() {
            let names: Vec<&str> = row.all_options().map(|opt| opt.name).collect();
            for name in &names {
                assert!(
                    name.starts_with('-') && name.len() > 1 && !name.contains('='),
                    "{} {name}",
                    row.name
                );
                assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{} {name}", row.name);
            }
        }
        let mut rows: Vec<&str> = subcommands().map(|row| row.name).collect();
        let all = rows.len();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), all);
    }
}

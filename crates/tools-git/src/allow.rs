//! What the tool `git` accepts: a table of subcommands, each with its options by exact name and the kind of every
//! argument. An argument without a kind cannot be written down here, and what is not written down is refused.

mod parse;
mod reads;
mod writes;

pub use parse::{Asked, parse};

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Number,
    /// A number that may be left out.
    MaybeNumber,
    /// One line of text.
    Text,
    /// Text with lines.
    Message,
    Rev,
    Branch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy)]
pub struct Opt {
    pub name: &'static str,
    pub takes: Takes,
    /// Why somebody may regret it.
    pub loses: Option<&'static str>,
}

pub const fn flag(name: &'static str) -> Opt {
    Opt { name, takes: Takes::Nothing, loses: None }
}

pub const fn number(name: &'static str) -> Opt {
    Opt { name, takes: Takes::Number, loses: None }
}

pub const fn maybe_number(name: &'static str) -> Opt {
    Opt { name, takes: Takes::MaybeNumber, loses: None }
}

pub const fn text(name: &'static str) -> Opt {
    Opt { name, takes: Takes::Text, loses: None }
}

pub const fn message(name: &'static str) -> Opt {
    Opt { name, takes: Takes::Message, loses: None }
}

pub const fn rev(name: &'static str) -> Opt {
    Opt { name, takes: Takes::Rev, loses: None }
}

pub const fn branch(name: &'static str) -> Opt {
    Opt { name, takes: Takes::Branch, loses: None }
}

pub const fn choice(name: &'static str, words: &'static [&'static str]) -> Opt {
    Opt { name, takes: Takes::Choice(words), loses: None }
}

pub const fn loses(mut opt: Opt, what: &'static str) -> Opt {
    opt.loses = Some(what);
    opt
}

/// What stands after the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    Nothing,
    Revs,
    /// Revisions, and paths after `--` or where a file has that name.
    RevsAndPaths,
    Paths,
    /// Names of branches or tags, and revisions.
    Names,
    /// Patterns, unless given by `-e`, then revisions and paths.
    Pattern,
    /// A remote and refspecs.
    Remote,
    /// Only the name of a remote.
    RemoteName,
    /// The name of a remote and an address.
    NewRemote,
    /// An address and a folder to be made.
    Clone,
    /// A folder to be made.
    Folder,
}

/// What a subcommand does, which decides what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Reads,
    Writes,
    /// Makes commits on the branch, which the operator may not allow.
    Commits,
    Fetches,
    /// Fetches, and makes commits.
    Pulls,
    Pushes,
    Clones,
    Inits,
}

#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// One word, or two where the second chooses what is done.
    pub name: &'static str,
    pub does: Does,
    pub rest: Rest,
    pub options: &'static [&'static [Opt]],
    /// Always given.
    pub always: &'static [&'static str],
    /// Options with which it makes no commit.
    pub harmless_with: &'static [&'static str],
    /// Lists when nothing is named, unless one of these options stands there.
    pub lists_unless: Option<&'static [&'static str]>,
    /// Why somebody may regret it, with any options, or with paths.
    pub loses: Option<&'static str>,
    pub loses_paths: Option<&'static str>,
}

const ROW: Row = Row {
    name: "",
    does: Does::Reads,
    rest: Rest::Nothing,
    options: &[],
    always: &[],
    harmless_with: &[],
    lists_unless: None,
    loses: None,
    loses_paths: None,
};

pub fn rows() -> impl Iterator<Item = &'static Row> {
    reads::ROWS.iter().chain(writes::ROWS)
}

impl Row {
    pub fn all_options(&self) -> impl Iterator<Item = &'static Opt> {
        self.options.iter().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options that start programs, write where they are told, read what they are told, or lead out of the repository.
    const NEVER: [&str; 35] = [
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
        // It looks into repositories within this one.
        "--dirty",
    ];

    /// The same by their letters, which mean other things elsewhere.
    const NEVER_SHORT: [(&str, &str); 10] = [
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
        for row in rows() {
            let letters =
                NEVER_SHORT.iter().find(|(name, _)| *name == row.name).map_or("", |(_, letters)| letters);
            for opt in row.all_options() {
                let letter =
                    opt.name.len() == 2 && opt.name.chars().nth(1).is_some_and(|c| letters.contains(c));
                // There it asks where the repository is.
                let asks = (row.name, opt.name) == ("rev-parse", "--git-dir");
                assert!(asks || !NEVER.contains(&opt.name) && !letter, "{} {}", row.name, opt.name);
            }
        }
    }

    #[test]
    fn names_are_options_and_stand_once() {
        for row in rows() {
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
        let mut rows: Vec<&str> = rows().map(|row| row.name).collect();
        let all = rows.len();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), all);
    }
}

//! One git command line. Input of a caller is added only as a [`SafeArg`], so it cannot become an option.

use crate::program::safe_arg::{Pathspec, SafeArg, TrustedArg};
use bytes::Bytes;
use std::ffi::OsString;

/// What a command may access besides its own repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RemoteAccess {
    #[default]
    Nothing,
    /// Another repository beneath a root.
    Local,
    Network,
}

#[derive(Debug, Clone)]
pub struct GitCommand {
    subcommand: &'static str,
    options: Vec<String>,
    positionals: Vec<String>,
    paths: Option<Vec<Pathspec>>,
    /// Some subcommands do not accept `--end-of-options`; their arguments cannot start with a dash in any case.
    uses_end_of_options: bool,
    /// `stash` uses patterns itself; instead, each of its paths is marked as literal.
    pub literal_paths: bool,
    pub stdin: Option<Bytes>,
    pub access: RemoteAccess,
    pub writes: bool,
    /// Maximum bytes of output.
    pub max_output: usize,
}

const DEFAULT_MAX_OUTPUT: usize = 16 << 20;

impl GitCommand {
    pub fn read(sub: &'static str) -> Self {
        Self {
            subcommand: sub,
            options: Vec::new(),
            positionals: Vec::new(),
            paths: None,
            uses_end_of_options: true,
            literal_paths: sub == "stash",
            stdin: None,
            access: RemoteAccess::Nothing,
            writes: false,
            max_output: DEFAULT_MAX_OUTPUT,
        }
    }

    pub fn write(sub: &'static str) -> Self {
        Self { writes: true, ..Self::read(sub) }
    }

    #[must_use]
    pub fn flag(mut self, flag: &'static str) -> Self {
        self.options.push(flag.to_owned());
        self
    }

    #[must_use]
    pub fn flags(mut self, flags: &[&'static str]) -> Self {
        self.options.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// `--name=value` as one argument.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: &impl SafeArg) -> Self {
        self.options.push(format!("{name}={}", value.as_str()));
        self
    }

    /// `-n value` as one argument, or as two for options that require it.
    #[must_use]
    pub fn pair(mut self, name: &'static str, value: &impl SafeArg) -> Self {
        self.options.extend([name.to_owned(), value.as_str().to_owned()]);
        self
    }

    /// An option with its value, validated by the table of subcommands.
    #[must_use]
    pub fn checked_option(mut self, option: &TrustedArg) -> Self {
        self.options.push(option.as_str().to_owned());
        self
    }

    /// A positional argument: a revision, a remote, a name.
    #[must_use]
    pub fn positional(mut self, word: &impl SafeArg) -> Self {
        self.positionals.push(word.as_str().to_owned());
        self
    }

    #[must_use]
    pub fn paths(mut self, paths: Vec<Pathspec>) -> Self {
        self.paths = Some(paths);
        self
    }

    /// For `blame` and `rev-parse`, which do not support `--end-of-options`.
    #[must_use]
    pub fn without_end_of_options(mut self) -> Self {
        self.uses_end_of_options = false;
        self
    }

    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Bytes>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    #[must_use]
    pub fn with_access(mut self, reach: RemoteAccess) -> Self {
        self.access = reach;
        self
    }

    pub fn is_subcommand(&self, sub: &str) -> bool {
        self.subcommand == sub
    }

    /// Arguments, starting with the subcommand.
    pub fn argv(&self) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![self.subcommand.into()];
        argv.extend(self.options.iter().map(OsString::from));
        if self.uses_end_of_options && !self.positionals.is_empty() {
            argv.push("--end-of-options".into());
        }
        argv.extend(self.positionals.iter().map(OsString::from));
        if let Some(paths) = &self.paths {
            argv.push("--".into());
            let mark = if self.literal_paths { ":(literal)" } else { "" };
            argv.extend(paths.iter().map(|path| OsString::from(format!("{mark}{}", path.as_str()))));
        }
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::safe_arg::{Number, Rev, Text};

    #[test]
    fn words_stand_after_the_end_of_options() {
        let command = GitCommand::read("log")
            .flag("-z")
            .set("--max-count", &Number::from_u64(3))
            .set("--author", &Text::value("author", "--output=p").unwrap())
            .positional(&Rev::new("main").unwrap())
            .paths(vec![Pathspec::checked("a b".to_owned())]);
        let argv =
            ["log", "-z", "--max-count=3", "--author=--output=p", "--end-of-options", "main", "--", "a b"];
        assert_eq!(command.argv(), argv.map(OsString::from));
        assert_eq!(
            GitCommand::read("blame").without_end_of_options().positional(&Rev::new("HEAD").unwrap()).argv(),
            ["blame", "HEAD"].map(OsString::from)
        );
    }
}

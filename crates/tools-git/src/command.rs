//! One git command line. Whatever a caller said gets in only as a [`Word`], so it cannot become an option.

use crate::value::{Checked, Pathspec, Word};
use bytes::Bytes;
use std::ffi::OsString;

/// What a command may reach besides its own repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Nothing,
    /// Another repository beneath a root.
    Local,
    Network,
}

#[derive(Debug, Clone)]
pub struct Command {
    sub: &'static str,
    options: Vec<String>,
    words: Vec<String>,
    paths: Option<Vec<Pathspec>>,
    /// Some subcommands take no `--end-of-options`; their words cannot begin with a dash either way.
    ends: bool,
    /// `stash` uses patterns itself; its paths are each marked as literal instead.
    pub marks_paths: bool,
    pub stdin: Option<Bytes>,
    pub reach: Reach,
    pub writes: bool,
    /// Bytes of output that are of use.
    pub keep: usize,
}

const KEEP: usize = 16 << 20;

impl Command {
    pub fn read(sub: &'static str) -> Self {
        Self {
            sub,
            options: Vec::new(),
            words: Vec::new(),
            paths: None,
            ends: true,
            marks_paths: sub == "stash",
            stdin: None,
            reach: Reach::Nothing,
            writes: false,
            keep: KEEP,
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

    /// `--name=value` in one argument.
    #[must_use]
    pub fn set(mut self, name: &'static str, value: &impl Word) -> Self {
        self.options.push(format!("{name}={}", value.as_str()));
        self
    }

    /// `-n value` in one argument, or in two for options that know no other way.
    #[must_use]
    pub fn pair(mut self, name: &'static str, value: &impl Word) -> Self {
        self.options.extend([name.to_owned(), value.as_str().to_owned()]);
        self
    }

    /// An option with its value that the table of subcommands has checked.
    #[must_use]
    pub fn checked(mut self, option: &Checked) -> Self {
        self.options.push(option.as_str().to_owned());
        self
    }

    /// A revision, a remote, a name: what stands after the options.
    #[must_use]
    pub fn word(mut self, word: &impl Word) -> Self {
        self.words.push(word.as_str().to_owned());
        self
    }

    #[must_use]
    pub fn paths(mut self, paths: Vec<Pathspec>) -> Self {
        self.paths = Some(paths);
        self
    }

    /// For `blame` and `rev-parse`, which stumble over `--end-of-options`.
    #[must_use]
    pub fn without_end(mut self) -> Self {
        self.ends = false;
        self
    }

    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Bytes>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    #[must_use]
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    #[must_use]
    pub fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    pub fn is(&self, sub: &str) -> bool {
        self.sub == sub
    }

    /// From the subcommand on.
    pub fn argv(&self) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![self.sub.into()];
        argv.extend(self.options.iter().map(OsString::from));
        if self.ends && !self.words.is_empty() {
            argv.push("--end-of-options".into());
        }
        argv.extend(self.words.iter().map(OsString::from));
        if let Some(paths) = &self.paths {
            argv.push("--".into());
            let mark = if self.marks_paths { ":(literal)" } else { "" };
            argv.extend(paths.iter().map(|path| OsString::from(format!("{mark}{}", path.as_str()))));
        }
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Number, Rev, Text};

    #[test]
    fn words_stand_after_the_end_of_options() {
        let command = Command::read("log")
            .flag("-z")
            .set("--max-count", &Number::of(3))
            .set("--author", &Text::value("author", "--output=p").unwrap())
            .word(&Rev::new("main").unwrap())
            .paths(vec![Pathspec::checked("a b".to_owned())]);
        let argv =
            ["log", "-z", "--max-count=3", "--author=--output=p", "--end-of-options", "main", "--", "a b"];
        assert_eq!(command.argv(), argv.map(OsString::from));
        assert_eq!(
            Command::read("blame").without_end().word(&Rev::new("HEAD").unwrap()).argv(),
            ["blame", "HEAD"].map(OsString::from)
        );
    }
}

//! Types of caller input for git's command line, none of which can hold an option.

use octo_toolkit::ToolError;

const MAX_ARG_LEN: usize = 1_000;

/// An argument that is passed on unchanged: not an option, no control characters, limited length.
fn word(what: &str, text: &str) -> Result<String, ToolError> {
    let fault = if text.trim().is_empty() {
        "is empty"
    } else if text.starts_with('-') {
        "starts with a dash, which git would parse as an option"
    } else if text.chars().any(char::is_control) {
        "contains a control character or a line break"
    } else if text.len() > MAX_ARG_LEN {
        "is longer than 1,000 bytes"
    } else {
        return Ok(text.to_owned());
    };
    Err(ToolError::invalid(format!("The {what} {fault}.")).hint(format!("Use a plain {what}.")))
}

/// Any type of this module: the only values that a command accepts.
pub trait SafeArg {
    fn as_str(&self) -> &str;
}

macro_rules! safe_args {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl SafeArg for $name {
            fn as_str(&self) -> &str {
                &self.0
            }
        }
    )*};
}

safe_args! {
    /// A commit, a range, a blob (`HEAD:path`): what `git rev-parse` understands.
    Rev;
    /// The name of a configured remote.
    RemoteName;
    /// A branch or tag by the rules of `git check-ref-format`.
    BranchName;
    /// Text to search for or to print, one line.
    Text;
    /// A decimal number.
    Number;
    /// A path relative to the top of the repository, see [`crate::repo::Repo::pathspec`].
    Pathspec;
    /// A value of a fixed list, or the address of a remote; validated by the table of subcommands.
    TrustedArg;
}

impl Rev {
    pub fn new(text: &str) -> Result<Self, ToolError> {
        word("ref", text).map(Self)
    }

    pub fn branch(branch: &BranchName) -> Self {
        Self(format!("refs/heads/{}", branch.0))
    }
}

impl RemoteName {
    pub fn new(text: &str) -> Result<Self, ToolError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let text = word("remote", text)?;
        if text.chars().all(plain) && !text.starts_with(['.', '/']) && !text.contains("..") {
            return Ok(Self(text));
        }
        Err(ToolError::invalid("Invalid remote name.")
            .hint("Use a configured name such as origin; `git` with command remote lists them."))
    }
}

impl BranchName {
    pub fn new(text: &str) -> Result<Self, ToolError> {
        let text = word("branch", text)?;
        let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let good = text.split('/').all(part)
            && !text.contains("..")
            && !text.contains("@{")
            && !text.contains([' ', '~', '^', ':', '?', '*', '[', '\\'])
            && !text.ends_with('.')
            && text != "@"
            && text != "HEAD";
        if good {
            return Ok(Self(text));
        }
        Err(ToolError::invalid("Invalid branch or tag name.")
            .hint("Use letters, digits, dashes and single slashes."))
    }
}

impl Text {
    /// Text where git accepts anything, such as the value in `--name=value`.
    pub fn value(what: &str, text: &str) -> Result<Self, ToolError> {
        if text.starts_with('-') && !text.chars().any(char::is_control) && text.len() <= MAX_ARG_LEN {
            return Ok(Self(text.to_owned()));
        }
        word(what, text).map(Self)
    }
}

impl Number {
    pub fn from_u64(number: u64) -> Self {
        Self(number.to_string())
    }

    pub fn new(text: &str) -> Result<Self, ToolError> {
        text.parse().map(Self::from_u64).map_err(|_| ToolError::invalid(format!("{text:?} is not a number.")))
    }
}

impl Pathspec {
    /// Only for [`crate::repo::Repo::pathspec`], which has checked that it stays in the repository.
    pub(crate) fn checked(inside: String) -> Self {
        Self(inside)
    }
}

impl TrustedArg {
    /// Only for the table of subcommands, which has validated it.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Message of a commit or tag, passed on standard input.
pub fn check_message(text: &str) -> Result<String, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::invalid("The message is empty.").hint("Summarize the commit in one line."));
    }
    if text.contains('\0') || text.len() > 65_536 {
        return Err(ToolError::invalid("The message contains a NUL or exceeds 64 KiB."));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_never_options() {
        for good in [
            "HEAD",
            "main~2",
            "v1.0^{}",
            "a..b",
            "HEAD:src/main.rs",
            ":/fix the bug",
            "HEAD@{2 days ago}",
            "é",
        ] {
            assert_eq!(Rev::new(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(1_001);
        for bad in ["", " ", "-x", "--output=p", "--format=%H", "a\nb", "a\0b", "a\u{7f}", &long] {
            assert!(Rev::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn branches_follow_the_rules_of_check_ref_format() {
        for good in ["main", "feature/x-1", "v1.0", "a@b", "ä"] {
            assert!(BranchName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", "-x", "a..b", "a b", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b", ".a",
            "a/.b", "a.lock", "a.lock/b", "a.", "@", "a@{1}", "HEAD", "a\tb",
        ] {
            assert!(BranchName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn remotes_are_names_not_addresses() {
        for good in ["origin", "up-stream", "team/fork", "a.b"] {
            assert!(RemoteName::new(good).is_ok(), "{good}");
        }
        for bad in
            ["", "-o", "../x", "/tmp/x", ".", "ext::sh -c touch", "https://x/y", "git@h:p", "a b", "a\n"]
        {
            assert!(RemoteName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn messages_may_have_lines_and_dashes_but_no_nul() {
        assert!(check_message("--amend\n\nbody").is_ok());
        assert!(check_message(" \n").is_err());
        assert!(check_message("a\0").is_err());
    }
}

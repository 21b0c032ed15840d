//! Programs that start another one, and how their own options are told from it.

use super::Word;

/// The options of a program whose operands are another program with its arguments.
pub struct Wrapper {
    /// Single letters without and with a value.
    flags: &'static str,
    valued: &'static str,
    /// Long options without and with a value.
    long_flags: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Operands before the program.
    skip: usize,
    /// `NAME=value` may stand before the program.
    assigns: bool,
}

const PLAIN: Wrapper =
    Wrapper { flags: "", valued: "", long_flags: &[], long_valued: &[], skip: 0, assigns: false };

pub fn of(name: &str) -> Option<Wrapper> {
    Some(match name {
        "nohup" | "builtin" | "busybox" | "toybox" | "catchsegv" => PLAIN,
        "command" => Wrapper { flags: "p", ..PLAIN },
        "exec" => Wrapper { flags: "cl", valued: "a", ..PLAIN },
        "env" => Wrapper {
            flags: "i0v",
            valued: "uC",
            long_flags: &["ignore-environment", "null", "debug"],
            long_valued: &["unset", "chdir"],
            assigns: true,
            ..PLAIN
        },
        "sudo" | "doas" => Wrapper {
            flags: "AbEHnPSkKVv",
            valued: "CgpRTuUhD",
            long_flags: &["preserve-env", "non-interactive", "set-home", "stdin", "background"],
            long_valued: &["user", "group", "prompt", "chdir", "chroot", "host"],
            assigns: true,
            ..PLAIN
        },
        "time" => Wrapper {
            flags: "apqvV",
            valued: "fo",
            long_flags: &["portability", "verbose", "append", "quiet"],
            long_valued: &["format", "output"],
            ..PLAIN
        },
        "nice" => Wrapper { flags: "0123456789", valued: "n", long_valued: &["adjustment"], ..PLAIN },
        "ionice" => Wrapper { flags: "t", valued: "cn", long_valued: &["class", "classdata"], ..PLAIN },
        "setsid" => Wrapper { flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..PLAIN },
        "timeout" => Wrapper {
            flags: "v",
            valued: "ks",
            long_flags: &["foreground", "preserve-status", "verbose"],
            long_valued: &["kill-after", "signal"],
            skip: 1,
            ..PLAIN
        },
        "stdbuf" => Wrapper { valued: "ioe", long_valued: &["input", "output", "error"], ..PLAIN },
        "taskset" => Wrapper { flags: "ac", long_flags: &["all-tasks", "cpu-list"], skip: 1, ..PLAIN },
        "chroot" => Wrapper { long_valued: &["userspec", "groups"], skip: 1, ..PLAIN },
        "flock" => Wrapper {
            flags: "sxenoFu",
            valued: "wE",
            long_flags: &["shared", "exclusive", "nonblock", "close", "no-fork"],
            long_valued: &["timeout", "conflict-exit-code"],
            skip: 1,
            ..PLAIN
        },
        "xargs" => Wrapper {
            flags: "0rtpxo",
            valued: "IndPLEsa",
            long_flags: &["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty"],
            long_valued: &[
                "max-args",
                "max-procs",
                "max-lines",
                "delimiter",
                "replace",
                "arg-file",
                "max-chars",
            ],
            ..PLAIN
        },
        "strace" | "ltrace" => Wrapper { flags: "fcCqvtTrxyi", valued: "eosaPESIO", ..PLAIN },
        _ => return None,
    })
}

/// What a wrapper starts.
pub struct Started<'a> {
    pub assigned: Vec<String>,
    /// Empty when it starts nothing.
    pub words: &'a [Word],
}

impl Wrapper {
    /// Tells the wrapper's own words from those of what it starts. Nothing, when an option is not known.
    pub fn split<'a>(&self, mut words: &'a [Word]) -> Option<Started<'a>> {
        while let [first, rest @ ..] = words {
            let text = first.known()?;
            let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) else { break };
            words = rest;
            if option == "-" {
                break;
            }
            if self.takes_value(option)? {
                words = words.get(1..).unwrap_or_default();
            }
        }
        let mut assigned = Vec::new();
        while let [first, rest @ ..] = words {
            let Some((name, _)) = first.text.split_once('=').filter(|_| self.assigns) else { break };
            assigned.push(name.to_owned());
            words = rest;
        }
        Some(Started { assigned, words: words.get(self.skip..).unwrap_or_default() })
    }

    /// Whether the next word is this option's value.
    fn takes_value(&self, option: &str) -> Option<bool> {
        if let Some(long) = option.strip_prefix('-') {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let valued = self.long_valued.contains(&name);
            return (valued || self.long_flags.contains(&name)).then_some(valued && value.is_none());
        }
        for (at, letter) in option.char_indices() {
            if self.valued.contains(letter) {
                return Some(at + letter.len_utf8() == option.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

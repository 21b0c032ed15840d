//! Programs that start another one, and how to separate their options from it.

use super::Word;

/// Options of a program whose operands are another program with its arguments.
pub struct WrapperOptions {
    /// Short options without and with a value.
    flags: &'static str,
    valued_flags: &'static str,
    /// Long options without and with a value.
    long_flags: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Operands before the program.
    skipped_operands: usize,
    /// `NAME=value` may precede the program.
    takes_assignments: bool,
}

const NO_OPTIONS: WrapperOptions = WrapperOptions {
    flags: "",
    valued_flags: "",
    long_flags: &[],
    long_valued: &[],
    skipped_operands: 0,
    takes_assignments: false,
};

const XARGS: WrapperOptions = WrapperOptions {
    flags: "0rtpxo",
    valued_flags: "IndPLEsa",
    long_flags: &["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty"],
    long_valued: &["max-args", "max-procs", "max-lines", "delimiter", "replace", "arg-file", "max-chars"],
    ..NO_OPTIONS
};

pub fn wrapper_options(name: &str) -> Option<WrapperOptions> {
    Some(match name {
        "nohup" | "builtin" | "busybox" | "toybox" | "catchsegv" => NO_OPTIONS,
        "command" => WrapperOptions { flags: "p", ..NO_OPTIONS },
        "exec" => WrapperOptions { flags: "cl", valued_flags: "a", ..NO_OPTIONS },
        "env" => WrapperOptions {
            flags: "i0v",
            valued_flags: "uC",
            long_flags: &["ignore-environment", "null", "debug"],
            long_valued: &["unset", "chdir"],
            takes_assignments: true,
            ..NO_OPTIONS
        },
        "sudo" | "doas" => WrapperOptions {
            flags: "AbEHnPSkKVv",
            valued_flags: "CgpRTuUhD",
            long_flags: &["preserve-env", "non-interactive", "set-home", "stdin", "background"],
            long_valued: &["user", "group", "prompt", "chdir", "chroot", "host"],
            takes_assignments: true,
            ..NO_OPTIONS
        },
        "time" => WrapperOptions {
            flags: "apqvV",
            valued_flags: "fo",
            long_flags: &["portability", "verbose", "append", "quiet"],
            long_valued: &["format", "output"],
            ..NO_OPTIONS
        },
        "nice" => WrapperOptions {
            flags: "0123456789",
            valued_flags: "n",
            long_valued: &["adjustment"],
            ..NO_OPTIONS
        },
        "ionice" => WrapperOptions {
            flags: "t",
            valued_flags: "cn",
            long_valued: &["class", "classdata"],
            ..NO_OPTIONS
        },
        "setsid" => WrapperOptions { flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..NO_OPTIONS },
        "timeout" => WrapperOptions {
            flags: "v",
            valued_flags: "ks",
            long_flags: &["foreground", "preserve-status", "verbose"],
            long_valued: &["kill-after", "signal"],
            skipped_operands: 1,
            ..NO_OPTIONS
        },
        "stdbuf" => {
            WrapperOptions { valued_flags: "ioe", long_valued: &["input", "output", "error"], ..NO_OPTIONS }
        }
        "taskset" => WrapperOptions {
            flags: "ac",
            long_flags: &["all-tasks", "cpu-list"],
            skipped_operands: 1,
            ..NO_OPTIONS
        },
        "chroot" => {
            WrapperOptions { long_valued: &["userspec", "groups"], skipped_operands: 1, ..NO_OPTIONS }
        }
        "flock" => WrapperOptions {
            flags: "sxenoFu",
            valued_flags: "wE",
            long_flags: &["shared", "exclusive", "nonblock", "close", "no-fork"],
            long_valued: &["timeout", "conflict-exit-code"],
            skipped_operands: 1,
            ..NO_OPTIONS
        },
        "xargs" => XARGS,
        "strace" | "ltrace" => {
            WrapperOptions { flags: "fcCqvtTrxyi", valued_flags: "eosaPESIO", ..NO_OPTIONS }
        }
        _ => return None,
    })
}

/// The program that a wrapper starts.
pub struct WrappedCommand<'a> {
    pub assignments: Vec<String>,
    /// Empty if it starts nothing.
    pub words: &'a [Word],
}

impl WrapperOptions {
    /// Separates the wrapper's own words from those of the program. `None` if an option is unknown.
    pub fn split<'a>(&self, mut words: &'a [Word]) -> Option<WrappedCommand<'a>> {
        while let [first, rest @ ..] = words {
            let text = first.as_literal()?;
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
            let Some((name, _)) = first.text.split_once('=').filter(|_| self.takes_assignments) else {
                break;
            };
            assigned.push(name.to_owned());
            words = rest;
        }
        Some(WrappedCommand {
            assignments: assigned,
            words: words.get(self.skipped_operands..).unwrap_or_default(),
        })
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
            if self.valued_flags.contains(letter) {
                return Some(at + letter.len_utf8() == option.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

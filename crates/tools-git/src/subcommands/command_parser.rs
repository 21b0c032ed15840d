//! Validates a caller's arguments against the table. Only exact names are accepted, because git also accepts
//! abbreviations.

use super::{CommandKind, OptionSpec, OptionValue, Positionals, Subcommand, subcommands};
use crate::program::safe_arg::{self, BranchName, Number, Rev, SafeArg, Text};
use octo_toolkit::ToolError;

/// Valid arguments.
#[derive(Debug, Clone)]
pub struct ParsedCommand {
    pub subcommand: &'static Subcommand,
    /// Validated, one string each: `--name=value`, `-nvalue`.
    pub options: Vec<String>,
    pub used_options: Vec<&'static OptionSpec>,
    pub positionals: Vec<String>,
    /// Arguments after `--`.
    pub paths: Option<Vec<String>>,
}

const MAX_ARGUMENTS: usize = 1_000;

pub fn parse(command: &str, args: &[String]) -> Result<ParsedCommand, ToolError> {
    let mut given: Vec<&str> = command.split_whitespace().collect();
    given.extend(args.iter().map(String::as_str));
    if given.len() > MAX_ARGUMENTS {
        return Err(ToolError::invalid("Too many arguments; the limit is 1,000.").hint("Split the call."));
    }
    let (row, rest) = row(&given)?;
    let mut asked = ParsedCommand {
        subcommand: row,
        options: Vec::new(),
        used_options: Vec::new(),
        positionals: Vec::new(),
        paths: None,
    };
    let mut rest = rest.iter().copied();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            asked.paths = Some(rest.map(str::to_owned).collect());
            break;
        }
        if arg == "--end-of-options" {
            asked.positionals.extend(rest.map(str::to_owned));
            break;
        }
        match arg.strip_prefix('-') {
            None | Some("") => asked.positionals.push(arg.to_owned()),
            Some(name) if name.starts_with('-') => asked.long(arg, &mut rest)?,
            Some(letters) => asked.short(arg, letters, &mut rest)?,
        }
    }
    Ok(asked)
}

/// Table row of a subcommand, with two words if the table has such.
fn row<'a>(given: &'a [&'a str]) -> Result<(&'static Subcommand, &'a [&'a str]), ToolError> {
    let (first, rest) = given.split_first().ok_or_else(|| unknown(""))?;
    if let Some((second, rest)) = rest.split_first() {
        let both = format!("{first} {second}");
        if let Some(row) = subcommands().find(|row| row.name == both) {
            return Ok((row, rest));
        }
    }
    let alone = if *first == "stash" { "stash push" } else { first };
    let row = subcommands().find(|row| row.name == alone).ok_or_else(|| unknown(first))?;
    // If a second word selects the action, it must be known.
    let chooses =
        subcommands().any(|other| other.name.split_once(' ').is_some_and(|(name, _)| name == *first));
    match rest.first() {
        Some(second) if chooses && !second.starts_with('-') => Err(unknown(&format!("{first} {second}"))),
        _ => Ok((row, rest)),
    }
}

fn unknown(name: &str) -> ToolError {
    let known: Vec<&str> = subcommands().map(|row| row.name).collect();
    ToolError::invalid(format!("The subcommand {name:?} is not available."))
        .hint(format!("Available: {}.", known.join(", ")))
}

impl ParsedCommand {
    /// Whether an option is present.
    pub fn has(&self, names: &[&str]) -> bool {
        self.used_options.iter().any(|opt| names.contains(&opt.name))
    }

    /// Kind with these arguments: some list if no name is given, some create no commit.
    pub fn kind(&self) -> CommandKind {
        let row = self.subcommand;
        let lists = row.lists_unless.is_some_and(|writing| {
            !self.has(writing) && (self.positionals.is_empty() || self.has(&["-l", "--list"]))
        });
        match row.kind {
            CommandKind::Write if lists => CommandKind::Read,
            CommandKind::Commit if self.has(row.no_commit_options) => CommandKind::Write,
            CommandKind::Pull if self.has(row.no_commit_options) => CommandKind::Fetch,
            does => does,
        }
    }

    /// Warnings about data loss for the caller.
    pub fn warnings(&self) -> Vec<&'static str> {
        let paths = !self.paths.as_ref().unwrap_or(&self.positionals).is_empty() && !self.has(&["--staged"]);
        let by_paths = if self.subcommand.positionals == Positionals::Paths {
            paths
        } else {
            self.paths.is_some() && paths
        };
        let mut all: Vec<&str> = self.used_options.iter().filter_map(|opt| opt.data_loss).collect();
        all.extend(self.subcommand.data_loss);
        all.extend(self.subcommand.data_loss_with_paths.filter(|_| by_paths));
        all.dedup();
        all
    }

    fn option(&self, name: &str) -> Result<&'static OptionSpec, ToolError> {
        self.subcommand.all_options().find(|opt| opt.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.subcommand.all_options().map(|opt| opt.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(" ") };
            ToolError::invalid(format!("git {} does not accept {name:?} here.", self.subcommand.name))
                .hint(format!("Accepted options: {known}."))
        })
    }

    fn long<'a>(&mut self, arg: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Result<(), ToolError> {
        let (name, value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
        let opt = self.option(name)?;
        let option = match (opt.value, value) {
            (OptionValue::Nothing, None) => name.to_owned(),
            (OptionValue::Nothing, Some(_)) => {
                return Err(ToolError::invalid(format!("{name} accepts no value here.")));
            }
            (takes, value) => {
                let value = value.or_else(|| rest.next()).ok_or_else(|| missing(name))?;
                format!("{name}={}", check_value(takes, name, value)?)
            }
        };
        self.options.push(option);
        self.used_options.push(opt);
        Ok(())
    }

    /// `-am text`: letters without a value may be combined, and the last may have one.
    fn short<'a>(
        &mut self,
        arg: &'a str,
        letters: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), ToolError> {
        if letters.bytes().all(|byte| byte.is_ascii_digit()) {
            let opt = self.option("-n")?;
            self.options.push(format!("-n{}", check_value(opt.value, "-n", letters)?));
            self.used_options.push(opt);
            return Ok(());
        }
        if let Ok(opt) = self.option(arg)
            && matches!(opt.value, OptionValue::Nothing | OptionValue::MaybeNumber)
        {
            self.options.push(arg.to_owned());
            self.used_options.push(opt);
            return Ok(());
        }
        for (at, letter) in letters.char_indices() {
            let opt = self.option(&format!("-{letter}"))?;
            self.used_options.push(opt);
            if opt.value == OptionValue::Nothing {
                self.options.push(opt.name.to_owned());
                continue;
            }
            let glued = letters.get(at + letter.len_utf8()..).filter(|value| !value.is_empty());
            if opt.value == OptionValue::MaybeNumber && glued.is_none() {
                self.options.push(opt.name.to_owned());
                break;
            }
            let value = glued.or_else(|| rest.next()).ok_or_else(|| missing(opt.name))?;
            self.options.push(format!("{}{}", opt.name, check_value(opt.value, opt.name, value)?));
            break;
        }
        Ok(())
    }
}

fn missing(name: &str) -> ToolError {
    ToolError::invalid(format!("{name} needs a value."))
}

fn check_value(takes: OptionValue, name: &str, value: &str) -> Result<String, ToolError> {
    Ok(match takes {
        OptionValue::Nothing => String::new(),
        OptionValue::Number | OptionValue::MaybeNumber => Number::new(value)?.as_str().to_owned(),
        OptionValue::Text => Text::value(name, value)?.as_str().to_owned(),
        OptionValue::Message => safe_arg::check_message(value)?,
        OptionValue::Rev => Rev::new(value)?.as_str().to_owned(),
        OptionValue::Branch => BranchName::new(value)?.as_str().to_owned(),
        OptionValue::Choice(words) if words.contains(&value) => value.to_owned(),
        OptionValue::Choice(words) => {
            return Err(ToolError::invalid(format!("{name} does not accept {value:?}."))
                .hint(format!("Use one of: {}.", words.join(", "))));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(command: &str, args: &[&str]) -> Result<ParsedCommand, ToolError> {
        parse(command, &args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read_by_the_table() {
        type Fit<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str], Option<&'a [&'a str]>);
        let rows: [Fit; 17] = [
            ("tag", &["-n"], &["-n"], &[], None),
            ("tag", &["-n5", "-l"], &["-n5", "-l"], &[], None),
            ("stash", &["-u"], &["-u"], &[], None),
            ("merge", &["--message=m", "x"], &["--message=m"], &["x"], None),
            ("cherry-pick", &["-x", "a"], &["-x"], &["a"], None),
            ("log", &["--oneline", "-n", "5", "main"], &["--oneline", "-n5"], &["main"], None),
            ("log", &["-3"], &["-n3"], &[], None),
            ("log", &["--max-count", "2", "--", "a", "-b"], &["--max-count=2"], &[], Some(&["a", "-b"])),
            ("log --oneline", &["-S", "--x"], &["--oneline", "-S--x"], &[], None),
            ("commit", &["-am", "subject\n\nbody"], &["-a", "-msubject\n\nbody"], &[], None),
            ("commit", &["--message=x=y"], &["--message=x=y"], &[], None),
            ("stash", &[], &[], &[], None),
            ("stash", &["pop", "stash@{0}"], &[], &["stash@{0}"], None),
            ("branch", &["-vv"], &["-vv"], &[], None),
            ("diff", &["-U5", "a..b"], &["-U5"], &["a..b"], None),
            ("add", &["--chmod=+x", "a"], &["--chmod=+x"], &["a"], None),
            ("show", &["--end-of-options", "--x"], &[], &["--x"], None),
        ];
        for (command, args, options, words, paths) in rows {
            let asked = ask(command, args).unwrap_or_else(|error| panic!("{command} {args:?}: {error}"));
            assert_eq!(asked.options, options, "{command} {args:?}");
            assert_eq!(asked.positionals, words, "{command} {args:?}");
            let told = asked.paths.as_ref().map(|paths| paths.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(told.as_deref(), paths, "{command} {args:?}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let rows: [(&str, &[&str]); 33] = [
            ("", &[]),
            ("config", &["--list"]),
            ("submodule", &["update"]),
            ("filter-branch", &[]),
            ("-c", &["core.x=y", "status"]),
            ("--exec-path=/tmp", &["status"]),
            ("log", &["--output=p"]),
            ("log", &["--outpu=p"]),
            ("log", &["--onelin"]),
            ("log", &["--ext-diff"]),
            ("log", &["--textconv"]),
            ("diff", &["-O/tmp/x"]),
            ("diff", &["--no-index", "/etc/passwd", "/dev/null"]),
            ("diff", &["-O", "x"]),
            ("grep", &["-O", "x"]),
            ("grep", &["--open-files-in-pager=sh", "x"]),
            ("fetch", &["--upload-pack=touch x"]),
            ("fetch", &["--upload-pac=touch x"]),
            ("push", &["--receive-pack=touch x"]),
            ("push", &["--exec=x"]),
            ("clone", &["-c", "core.x=y", "u"]),
            ("clone", &["--config=core.x=y", "u"]),
            ("clone", &["--template=/tmp", "u"]),
            ("clone", &["-u", "x", "u"]),
            ("rebase", &["-x", "touch x"]),
            ("rebase", &["-i"]),
            ("commit", &["-F", "/etc/passwd"]),
            ("log", &["--max-count=-1"]),
            ("log", &["--max-count"]),
            ("log", &["--author=a\nb"]),
            ("merge", &["-X", "evil"]),
            ("remote", &["prune", "origin"]),
            ("worktree", &["add", "../x"]),
        ];
        for (command, args) in rows {
            let error =
                ask(command, args).map(|asked| asked.options).expect_err(&format!("{command} {args:?}"));
            assert_eq!(error.kind, octo_toolkit::Kind::Invalid, "{command} {args:?}");
        }
        let hint = ask("log", &["--output=p"]).unwrap_err().hint.unwrap();
        assert!(hint.contains("--oneline") && hint.contains("--since"), "{hint}");
    }

    #[test]
    fn what_may_be_lost_is_told() {
        let rows: [(&str, &[&str], bool); 14] = [
            ("reset", &["--hard"], true),
            ("reset", &["HEAD~1"], false),
            ("clean", &["-fd"], true),
            ("clean", &["-n"], false),
            ("branch", &["-D", "x"], true),
            ("branch", &["-d", "x"], false),
            ("checkout", &["main"], false),
            ("checkout", &["--", "a"], true),
            ("restore", &["a"], true),
            ("restore", &["--staged", "a"], false),
            ("stash drop", &[], true),
            ("stash", &["clear"], true),
            ("push", &["--force"], true),
            ("push", &[], false),
        ];
        for (command, args, warned) in rows {
            assert_eq!(!ask(command, args).unwrap().warnings().is_empty(), warned, "{command} {args:?}");
        }
    }

    #[test]
    fn what_a_command_does_follows_from_its_arguments() {
        let rows: [(&str, &[&str], CommandKind); 12] = [
            ("branch", &[], CommandKind::Read),
            ("branch", &["-a"], CommandKind::Read),
            ("branch", &["--list", "f*"], CommandKind::Read),
            ("branch", &["new"], CommandKind::Write),
            ("branch", &["--unset-upstream"], CommandKind::Write),
            ("tag", &["-l"], CommandKind::Read),
            ("tag", &["v1"], CommandKind::Write),
            ("merge", &["x"], CommandKind::Commit),
            ("merge", &["--abort"], CommandKind::Write),
            ("merge", &["--ff-only", "x"], CommandKind::Write),
            ("pull", &[], CommandKind::Pull),
            ("pull", &["--ff-only"], CommandKind::Fetch),
        ];
        for (command, args, does) in rows {
            assert_eq!(ask(command, args).unwrap().kind(), does, "{command} {args:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_arguments_make_it_panic(command in "[a-z -]{0,12}", args: Vec<String>) {
            let _ = parse(&command, &args);
        }
    }
}

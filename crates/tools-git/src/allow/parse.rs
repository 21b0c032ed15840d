//! A caller's arguments against the table. Only exact names pass, since git itself also takes beginnings of names.

use super::{Does, Opt, Rest, Row, Takes, rows};
use crate::value::{self, BranchName, Number, Rev, Text, Word};
use octo_toolkit::ToolError;

/// Arguments that fit the table.
#[derive(Debug, Clone)]
pub struct Asked {
    pub row: &'static Row,
    /// Checked, each in one piece: `--name=value`, `-nvalue`.
    pub options: Vec<String>,
    pub used: Vec<&'static Opt>,
    pub words: Vec<String>,
    /// What stood after `--`.
    pub paths: Option<Vec<String>>,
}

const MOST: usize = 1_000;

pub fn parse(command: &str, args: &[String]) -> Result<Asked, ToolError> {
    let mut given: Vec<&str> = command.split_whitespace().collect();
    given.extend(args.iter().map(String::as_str));
    if given.len() > MOST {
        return Err(ToolError::invalid("There are more than 1,000 arguments.").hint("Do it in parts."));
    }
    let (row, rest) = row(&given)?;
    let mut asked = Asked { row, options: Vec::new(), used: Vec::new(), words: Vec::new(), paths: None };
    let mut rest = rest.iter().copied();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            asked.paths = Some(rest.map(str::to_owned).collect());
            break;
        }
        if arg == "--end-of-options" {
            asked.words.extend(rest.map(str::to_owned));
            break;
        }
        match arg.strip_prefix('-') {
            None | Some("") => asked.words.push(arg.to_owned()),
            Some(name) if name.starts_with('-') => asked.long(arg, &mut rest)?,
            Some(letters) => asked.short(arg, letters, &mut rest)?,
        }
    }
    Ok(asked)
}

/// The row of a subcommand, of two words where the table has such.
fn row<'a>(given: &'a [&'a str]) -> Result<(&'static Row, &'a [&'a str]), ToolError> {
    let (first, rest) = given.split_first().ok_or_else(|| unknown(""))?;
    if let Some((second, rest)) = rest.split_first() {
        let both = format!("{first} {second}");
        if let Some(row) = rows().find(|row| row.name == both) {
            return Ok((row, rest));
        }
    }
    let alone = if *first == "stash" { "stash push" } else { first };
    let row = rows().find(|row| row.name == alone).ok_or_else(|| unknown(first))?;
    // Where a second word chooses, only the known ones do.
    let chooses = rows().any(|other| other.name.split_once(' ').is_some_and(|(name, _)| name == *first));
    match rest.first() {
        Some(second) if chooses && !second.starts_with('-') => Err(unknown(&format!("{first} {second}"))),
        _ => Ok((row, rest)),
    }
}

fn unknown(name: &str) -> ToolError {
    let known: Vec<&str> = rows().map(|row| row.name).collect();
    ToolError::invalid(format!("The subcommand {name:?} is not available."))
        .hint(format!("Available: {}.", known.join(", ")))
}

impl Asked {
    /// Whether an option stands there.
    pub fn has(&self, names: &[&str]) -> bool {
        self.used.iter().any(|opt| names.contains(&opt.name))
    }

    /// What it does with these arguments: some list when they name nothing, some make no commit.
    pub fn does(&self) -> Does {
        let row = self.row;
        let lists = row.lists_unless.is_some_and(|writing| {
            !self.has(writing) && (self.words.is_empty() || self.has(&["-l", "--list"]))
        });
        match row.does {
            Does::Writes if lists => Does::Reads,
            Does::Commits if self.has(row.harmless_with) => Does::Writes,
            Does::Pulls if self.has(row.harmless_with) => Does::Fetches,
            does => does,
        }
    }

    /// What may be lost, for the caller to know.
    pub fn warnings(&self) -> Vec<&'static str> {
        let paths = !self.paths.as_ref().unwrap_or(&self.words).is_empty() && !self.has(&["--staged"]);
        let by_paths = if self.row.rest == Rest::Paths { paths } else { self.paths.is_some() && paths };
        let mut all: Vec<&str> = self.used.iter().filter_map(|opt| opt.loses).collect();
        all.extend(self.row.loses);
        all.extend(self.row.loses_paths.filter(|_| by_paths));
        all.dedup();
        all
    }

    fn option(&self, name: &str) -> Result<&'static Opt, ToolError> {
        self.row.all_options().find(|opt| opt.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.row.all_options().map(|opt| opt.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(" ") };
            ToolError::invalid(format!("git {} does not take {name:?} here.", self.row.name))
                .hint(format!("Options by their exact names: {known}."))
        })
    }

    fn long<'a>(&mut self, arg: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Result<(), ToolError> {
        let (name, value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
        let opt = self.option(name)?;
        let option = match (opt.takes, value) {
            (Takes::Nothing, None) => name.to_owned(),
            (Takes::Nothing, Some(_)) => {
                return Err(ToolError::invalid(format!("{name} takes no value here.")));
            }
            (takes, value) => {
                let value = value.or_else(|| rest.next()).ok_or_else(|| missing(name))?;
                format!("{name}={}", checked(takes, name, value)?)
            }
        };
        self.options.push(option);
        self.used.push(opt);
        Ok(())
    }

    /// `-am text`: letters without a value may stand together, and the last may take one.
    fn short<'a>(
        &mut self,
        arg: &'a str,
        letters: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), ToolError> {
        if letters.bytes().all(|byte| byte.is_ascii_digit()) {
            let opt = self.option("-n")?;
            self.options.push(format!("-n{}", checked(opt.takes, "-n", letters)?));
            self.used.push(opt);
            return Ok(());
        }
        if let Ok(opt) = self.option(arg)
            && matches!(opt.takes, Takes::Nothing | Takes::MaybeNumber)
        {
            self.options.push(arg.to_owned());
            self.used.push(opt);
            return Ok(());
        }
        for (at, letter) in letters.char_indices() {
            let opt = self.option(&format!("-{letter}"))?;
            self.used.push(opt);
            if opt.takes == Takes::Nothing {
                self.options.push(opt.name.to_owned());
                continue;
            }
            let glued = letters.get(at + letter.len_utf8()..).filter(|value| !value.is_empty());
            if opt.takes == Takes::MaybeNumber && glued.is_none() {
                self.options.push(opt.name.to_owned());
                break;
            }
            let value = glued.or_else(|| rest.next()).ok_or_else(|| missing(opt.name))?;
            self.options.push(format!("{}{}", opt.name, checked(opt.takes, opt.name, value)?));
            break;
        }
        Ok(())
    }
}

fn missing(name: &str) -> ToolError {
    ToolError::invalid(format!("{name} needs a value."))
}

fn checked(takes: Takes, name: &str, value: &str) -> Result<String, ToolError> {
    Ok(match takes {
        Takes::Nothing => String::new(),
        Takes::Number | Takes::MaybeNumber => Number::new(value)?.as_str().to_owned(),
        Takes::Text => Text::value(name, value)?.as_str().to_owned(),
        Takes::Message => value::message(value)?,
        Takes::Rev => Rev::new(value)?.as_str().to_owned(),
        Takes::Branch => BranchName::new(value)?.as_str().to_owned(),
        Takes::Choice(words) if words.contains(&value) => value.to_owned(),
        Takes::Choice(words) => {
            return Err(ToolError::invalid(format!("{name} does not take {value:?}."))
                .hint(format!("It takes one of: {}.", words.join(", "))));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(command: &str, args: &[&str]) -> Result<Asked, ToolError> {
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
            assert_eq!(asked.words, words, "{command} {args:?}");
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
        let rows: [(&str, &[&str], Does); 12] = [
            ("branch", &[], Does::Reads),
            ("branch", &["-a"], Does::Reads),
            ("branch", &["--list", "f*"], Does::Reads),
            ("branch", &["new"], Does::Writes),
            ("branch", &["--unset-upstream"], Does::Writes),
            ("tag", &["-l"], Does::Reads),
            ("tag", &["v1"], Does::Writes),
            ("merge", &["x"], Does::Commits),
            ("merge", &["--abort"], Does::Writes),
            ("merge", &["--ff-only", "x"], Does::Writes),
            ("pull", &[], Does::Pulls),
            ("pull", &["--ff-only"], Does::Fetches),
        ];
        for (command, args, does) in rows {
            assert_eq!(ask(command, args).unwrap().does(), does, "{command} {args:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_arguments_make_it_panic(command in "[a-z -]{0,12}", args: Vec<String>) {
            let _ = parse(&command, &args);
        }
    }
}

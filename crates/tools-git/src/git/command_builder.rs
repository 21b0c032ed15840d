//! Builds a command from validated arguments: every argument gets the type of its position in the table.

use crate::program::git_command::GitCommand;
use crate::program::run_git::GitRepo;
use crate::program::safe_arg::{Pathspec, RemoteName, Rev, SafeArg, Text, TrustedArg};
use crate::subcommands::{CommandKind, ParsedCommand, Positionals};
use octo_toolkit::{ToolError, WorkPath};

/// The subcommand with its options, without positional arguments.
pub fn start(asked: &ParsedCommand) -> GitCommand {
    let row = asked.subcommand;
    let (sub, second) = row.name.split_once(' ').unwrap_or((row.name, ""));
    let mut command =
        if asked.kind() == CommandKind::Read { GitCommand::read(sub) } else { GitCommand::write(sub) };
    if matches!(row.name, "blame" | "rev-parse") {
        command = command.without_end_of_options();
    }
    if !second.is_empty() {
        command = command.flag(second);
    }
    // These take no other options; the fixed ones only duplicate what the settings of every run disable.
    let alone =
        matches!(row.name, "merge" | "rebase") && asked.has(&["--continue", "--skip", "--abort", "--quit"]);
    if !alone {
        command = command.flags(row.fixed_options);
    }
    // Whatever the repository's settings are, files are deleted only on request.
    if row.name == "clean" && !asked.has(&["-f", "--force"]) {
        command = command.flag("--dry-run");
    }
    let mut options = asked.options.clone();
    if row.name == "clean" {
        // Given twice, it would delete nested repositories.
        options.dedup();
        let mut forced = false;
        options.retain(|option| {
            !matches!(option.as_str(), "-f" | "--force") || !std::mem::replace(&mut forced, true)
        });
    }
    options.iter().fold(command, |command, option| command.checked_option(&TrustedArg::new(option.as_str())))
}

/// A command that stays in its repository.
pub fn local(git: &GitRepo, asked: &ParsedCommand) -> Result<GitCommand, ToolError> {
    let command = start(asked);
    let mut words = asked.positionals.as_slice();
    // Without a revision it would read its input, which is empty.
    let head = ["HEAD".to_owned()];
    if asked.subcommand.name == "shortlog" && words.is_empty() && !asked.has(&["--all"]) {
        words = &head;
    }
    match asked.subcommand.positionals {
        Positionals::Nothing => none(asked, command),
        Positionals::Revs | Positionals::Names => Ok(no_paths(asked, revs(command, words)?)?),
        Positionals::RevsAndPaths => revs_and_paths(git, asked, command, words),
        Positionals::Paths => {
            let mut all = words.to_vec();
            all.extend(asked.paths.clone().unwrap_or_default());
            let paths = git.repo.pathspecs(&git.fs, &all)?;
            Ok(if paths.is_empty() { command } else { command.paths(paths) })
        }
        Positionals::Pattern => pattern(git, asked, command),
        Positionals::RemoteName => match words {
            [name] => no_paths(asked, command.positional(&RemoteName::new(name)?)),
            _ => Err(ToolError::invalid("Specify the name of one remote.")),
        },
        Positionals::NewRemote => match words {
            [name, address] => new_remote(git, command, name, address),
            _ => Err(ToolError::invalid("Specify a name and an address.")),
        },
        Positionals::Remote | Positionals::Clone | Positionals::Folder => {
            Err(ToolError::internal("not a local command"))
        }
    }
}

/// The same checks for a command that is not run.
pub fn check(git: &GitRepo, asked: &ParsedCommand) -> Result<(), ToolError> {
    if asked.subcommand.positionals == Positionals::Remote {
        return asked.positionals.iter().try_for_each(|word| Rev::new(word).map(drop));
    }
    local(git, asked).map(drop)
}

fn none(asked: &ParsedCommand, command: GitCommand) -> Result<GitCommand, ToolError> {
    if asked.positionals.is_empty() {
        return no_paths(asked, command);
    }
    Err(ToolError::invalid(format!("git {} accepts no names here.", asked.subcommand.name)))
}

fn no_paths(asked: &ParsedCommand, command: GitCommand) -> Result<GitCommand, ToolError> {
    match &asked.paths {
        Some(paths) if !paths.is_empty() => {
            Err(ToolError::invalid(format!("git {} accepts no paths here.", asked.subcommand.name)))
        }
        _ => Ok(command),
    }
}

fn revs(command: GitCommand, words: &[String]) -> Result<GitCommand, ToolError> {
    words.iter().try_fold(command, |command, word| Ok(command.positional(&Rev::new(word)?)))
}

fn revs_and_paths(
    git: &GitRepo,
    asked: &ParsedCommand,
    command: GitCommand,
    words: &[String],
) -> Result<GitCommand, ToolError> {
    let (names, paths) = split_positionals(git, asked, words)?;
    if asked.subcommand.name == "ls-tree" {
        // It treats `--` as a path.
        return Ok(paths.iter().fold(revs(command, &names)?, |command, path| command.positional(path)));
    }
    // Without `--` git would guess; with it, a branch and a file of the same name are distinguished.
    Ok(revs(command, &names)?.paths(paths))
}

/// Splits arguments into revisions and paths.
pub fn names_and_paths(
    git: &GitRepo,
    asked: &ParsedCommand,
) -> Result<(Vec<String>, Vec<Pathspec>), ToolError> {
    split_positionals(git, asked, &asked.positionals)
}

fn split_positionals(
    git: &GitRepo,
    asked: &ParsedCommand,
    words: &[String],
) -> Result<(Vec<String>, Vec<Pathspec>), ToolError> {
    match &asked.paths {
        Some(paths) => Ok((words.to_vec(), git.repo.pathspecs(&git.fs, paths)?)),
        None => sort(git, words),
    }
}

/// Arguments that name a file are paths, as are all that follow the first of them.
fn sort(git: &GitRepo, words: &[String]) -> Result<(Vec<String>, Vec<Pathspec>), ToolError> {
    let is_file = |word: &String| {
        let spec = git.repo.pathspec(&git.fs, word).ok();
        spec.is_some_and(|spec| git.fs.link_stat(&git.repo.top.join(spec.as_str())).is_ok())
    };
    let first = words.iter().position(is_file).unwrap_or(words.len());
    let (names, paths) = words.split_at(first);
    Ok((names.to_vec(), git.repo.pathspecs(&git.fs, paths)?))
}

fn pattern(git: &GitRepo, asked: &ParsedCommand, mut command: GitCommand) -> Result<GitCommand, ToolError> {
    let mut words = asked.positionals.as_slice();
    if !asked.has(&["-e"]) {
        let (first, rest) =
            words.split_first().ok_or_else(|| ToolError::invalid("Specify a pattern to search for."))?;
        command = command.pair("-e", &Text::value("pattern", first)?);
        words = rest;
    }
    revs_and_paths(git, asked, command, words)
}

/// An address is stored only in a form that could be used later.
fn new_remote(
    git: &GitRepo,
    command: GitCommand,
    name: &str,
    address: &str,
) -> Result<GitCommand, ToolError> {
    let address = match crate::remote_url::parse(address)? {
        crate::remote_url::RemoteUrl::Local(path) => {
            let named = if path.starts_with('/') { path } else { format!("{}/{path}", top(git)) };
            let place = git.fs.place(&WorkPath::from(named.as_str()))?;
            let real = git.fs.open_folder(&place)?.real;
            crate::repo::real_path(&real).to_string_lossy().into_owned()
        }
        _ => address.to_owned(),
    };
    Ok(command.positional(&RemoteName::new(name)?).positional(&TrustedArg::new(address)))
}

fn top(git: &GitRepo) -> String {
    crate::repo::real_path(&git.repo.top).to_string_lossy().into_owned()
}

//! Determines which files of the work tree a command would create, change or delete. Commands that affect files
//! covered by `files.protected` are refused before git runs. Files of the set `@runs-programs` are part of most
//! repositories: what comes from commits may change them, what the caller names may not.

use super::command_builder;
use crate::program::git_command::GitCommand;
use crate::program::run_git::{GitRepo, MAX_LISTING_BYTES};
use crate::program::safe_arg::{Pathspec, Rev, SafeArg, TrustedArg};
use crate::program::{git_error, git_output};
use crate::sequencer;
use crate::subcommands::ParsedCommand;
use octo_toolkit::fs::{ChangeOrigin, EntryKind};
use octo_toolkit::{ToolError, WorkPath};

const NAME_DIFF_OPTIONS: &[&str] =
    &["--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-relative", "--ignore-submodules=dirty"];

/// Refuses a command that would change a protected file.
pub async fn check_protected(git: &GitRepo, asked: &ParsedCommand) -> Result<(), ToolError> {
    if git.repo.bare {
        return Ok(());
    }
    let origin = match asked.subcommand.name {
        "mv" | "rm" | "clean" => ChangeOrigin::Caller,
        _ => ChangeOrigin::Commits,
    };
    check_changes(git, &affected_files(git, asked).await?, origin)
}

/// Refuses to bring commits that would change a protected file.
pub fn refuse_protected(git: &GitRepo, paths: &[String]) -> Result<(), ToolError> {
    check_changes(git, paths, ChangeOrigin::Commits)
}

fn check_changes(git: &GitRepo, paths: &[String], origin: ChangeOrigin) -> Result<(), ToolError> {
    let place = |path: &String| git.repo.top.join(path.trim_end_matches('/'));
    paths.iter().try_for_each(|path| git.fs.check_change(&place(path), origin))
}

async fn affected_files(git: &GitRepo, asked: &ParsedCommand) -> Result<Vec<String>, ToolError> {
    match asked.subcommand.name {
        "mv" => move_files(git, asked).await,
        "rm" if !asked.has(&["--cached"]) => tracked_files(git, paths(git, asked)?).await,
        "restore" if !asked.has(&["--staged"]) || asked.has(&["-W", "--worktree"]) => {
            let head = asked.has(&["--staged"]).then_some("HEAD");
            diff_files(
                git,
                &[],
                &value(asked, "--source").or(head).into_iter().collect::<Vec<_>>(),
                paths(git, asked)?,
            )
            .await
        }
        "checkout" => match command_builder::names_and_paths(git, asked)? {
            (names, paths) if paths.is_empty() && asked.paths.as_ref().is_none_or(Vec::is_empty) => {
                switch_files(git, asked, &names).await
            }
            (names, paths) => {
                let from: Vec<&str> = names.iter().map(String::as_str).collect();
                diff_files(git, &[], &from, paths).await
            }
        },
        "switch" => switch_files(git, asked, &asked.positionals).await,
        "reset" if asked.has(&["--hard", "--merge", "--keep"]) => {
            let to = asked.positionals.first().map_or("HEAD", String::as_str);
            let mut all = diff_files(git, &["--cached"], &[to], Vec::new()).await?;
            let local = if asked.has(&["--hard"]) { vec![to] } else { vec!["HEAD", to] };
            all.extend(diff_files(git, &[], &local, Vec::new()).await?);
            Ok(all)
        }
        "clean" if asked.has(&["-f", "--force"]) => clean_files(git, asked).await,
        "stash push" => stash_files(git, asked).await,
        "stash pop" | "stash apply" => unstash_files(git, asked.positionals.first()).await,
        "merge" | "rebase" | "cherry-pick" | "revert" => sequencer_files(git, asked).await,
        _ => Ok(Vec::new()),
    }
}

async fn sequencer_files(git: &GitRepo, asked: &ParsedCommand) -> Result<Vec<String>, ToolError> {
    let (name, first) = (asked.subcommand.name, asked.positionals.first().map(String::as_str));
    if asked.has(&["--quit"]) || (name == "merge" && asked.has(&["--continue"])) {
        return Ok(Vec::new());
    }
    if asked.has(&["--continue", "--skip", "--abort"]) {
        let mut all = diff_files(git, &["--cached"], &["HEAD"], Vec::new()).await?;
        if asked.has(&["--continue"]) {
            all.clear();
        }
        if name != "merge" && asked.has(&["--abort"]) {
            if let Some(origin) = sequencer::original_head(git, name).await? {
                all.extend(diff_files(git, &[], &["HEAD", &origin], Vec::new()).await?);
            }
        } else if name != "merge" {
            let rest = sequencer::remaining_commits(git, name).await?;
            all.extend(commit_files(git, &rest).await?);
        }
        return Ok(all);
    }
    match name {
        "merge" => {
            let mut all = Vec::new();
            let to = if asked.positionals.is_empty() {
                vec!["@{upstream}".to_owned()]
            } else {
                asked.positionals.clone()
            };
            for other in &to {
                all.extend(merge_files(git, other, asked.has(&["--allow-unrelated-histories"])).await?);
            }
            Ok(all)
        }
        "rebase" => {
            let upstream = first.unwrap_or("@{upstream}");
            let onto = value(asked, "--onto");
            let branch = asked.positionals.get(1).map(String::as_str);
            let (upstream, branch) =
                if asked.has(&["--root"]) { (None, first.or(branch)) } else { (Some(upstream), branch) };
            let mut all = rebase_files(git, upstream, onto, branch.unwrap_or("HEAD")).await?;
            if asked.has(&["--autostash"]) {
                all.extend(uncommitted_files(git).await?);
            }
            Ok(all)
        }
        _ => commit_files(git, &asked.positionals).await,
    }
}

/// Uncommitted files.
pub async fn uncommitted_files(git: &GitRepo) -> Result<Vec<String>, ToolError> {
    diff_files(git, &[], &["HEAD"], Vec::new()).await
}

/// Files that a merge changes, determined by merging without a work tree.
pub async fn merge_files(git: &GitRepo, other: &str, unrelated: bool) -> Result<Vec<String>, ToolError> {
    let other = Rev::new(other)?;
    if git.has_no_commits().await? {
        return tree_files(git, &other).await;
    }
    let mut command =
        GitCommand::write("merge-tree").flags(&["--write-tree", "-z", "--name-only", "--no-messages"]);
    if unrelated {
        command = command.flag("--allow-unrelated-histories");
    }
    let ran = git
        .try_run(
            command
                .without_end_of_options()
                .positional(&TrustedArg::new("HEAD"))
                .positional(&other)
                .max_output(MAX_LISTING_BYTES),
        )
        .await?;
    match git_output::split_nul(&ran.stdout).first() {
        Some(tree) if ran.exit_code <= 1 && tree.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            diff_files(git, &["--no-renames"], &["HEAD", tree], Vec::new()).await
        }
        _ => Err(git_error::to_tool_error(&ran)),
    }
}

/// Files that a rebase changes: on the way to the new base, and with every applied commit.
pub async fn rebase_files(
    git: &GitRepo,
    upstream: Option<&str>,
    onto: Option<&str>,
    branch: &str,
) -> Result<Vec<String>, ToolError> {
    let mut all = Vec::new();
    if let Some(base) = onto.or(upstream) {
        all.extend(diff_files(git, &[], &["HEAD", base], Vec::new()).await?);
    }
    if branch != "HEAD" {
        all.extend(diff_files(git, &[], &["HEAD", branch], Vec::new()).await?);
    }
    let range = upstream.map_or_else(|| branch.to_owned(), |upstream| format!("{upstream}..{branch}"));
    let commits = GitCommand::read("log")
        .flags(&["-m", "--name-only", "--format=", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"])
        .positional(&Rev::new(&range)?)
        .paths(Vec::new());
    all.extend(names(git, commits).await?);
    all.extend(renamed_files(git, onto.or(upstream).unwrap_or("HEAD"), branch).await?);
    Ok(all)
}

/// Files that a cherry-pick or revert changes.
async fn commit_files(git: &GitRepo, commits: &[String]) -> Result<Vec<String>, ToolError> {
    let Some(last) = commits.last() else { return Ok(Vec::new()) };
    let mut command = GitCommand::read("log").flags(&[
        "--no-walk",
        "-m",
        "--name-only",
        "--format=",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
    ]);
    for commit in commits {
        command = command.positional(&Rev::new(commit)?);
    }
    let mut all = names(git, command.paths(Vec::new())).await?;
    let tip = last.rsplit("..").next().unwrap_or(last);
    all.extend(renamed_files(git, "HEAD", tip).await?);
    Ok(all)
}

/// Files that one side has renamed: changes of the other side follow them to their new names.
async fn renamed_files(git: &GitRepo, ours: &str, theirs: &str) -> Result<Vec<String>, ToolError> {
    let command = GitCommand::read("merge-base").positional(&Rev::new(ours)?).positional(&Rev::new(theirs)?);
    let base = git.try_run(command).await?;
    if base.exit_code != 0 {
        return Ok(Vec::new());
    }
    diff_files(git, &["-M", "--diff-filter=R"], &[&base.trimmed(), ours], Vec::new()).await
}

async fn switch_files(
    git: &GitRepo,
    asked: &ParsedCommand,
    words: &[String],
) -> Result<Vec<String>, ToolError> {
    if asked.subcommand.name == "switch" && asked.has(&["--orphan"]) {
        return tracked_files(git, Vec::new()).await;
    }
    let to = words.first().map_or("HEAD", String::as_str);
    if to.contains("...") {
        return Err(
            ToolError::invalid("The commit is specified by two others.").hint("Use a branch or a commit.")
        );
    }
    let is_commit = GitCommand::read("rev-parse").without_end_of_options().flags(&["--quiet", "--verify"]);
    let unborn = git.has_no_commits().await?;
    let mut targets = Vec::new();
    if git.try_run(is_commit.positional(&Rev::new(&format!("{to}^{{commit}}"))?)).await?.exit_code == 0 {
        targets.push(to.to_owned());
    } else if !(unborn && to == "HEAD") {
        // A branch that exists only on a remote is created on checkout.
        let remotes = GitCommand::read("for-each-ref").flag("--format=%(objectname)");
        let remotes = remotes.positional(&TrustedArg::new(format!("refs/remotes/*/{to}")));
        targets.extend(git.run(remotes).await?.text().lines().map(str::to_owned));
    }
    let mut all = Vec::new();
    for target in targets {
        if unborn {
            all.extend(tree_files(git, &Rev::new(&target)?).await?);
            continue;
        }
        all.extend(diff_files(git, &[], &["HEAD", &target], Vec::new()).await?);
        if asked.has(&["-f", "--force", "--discard-changes"]) {
            all.extend(diff_files(git, &[], &[&target], Vec::new()).await?);
        }
    }
    Ok(all)
}

async fn move_files(git: &GitRepo, asked: &ParsedCommand) -> Result<Vec<String>, ToolError> {
    let mut sources = paths(git, asked)?;
    let Some(to) = sources.pop() else { return Ok(Vec::new()) };
    let place = git.repo.top.join(to.as_str());
    let into =
        git.fs.run(move |fs| Ok(fs.link_stat(&place).is_ok_and(|stat| stat.kind == EntryKind::Folder)));
    let into = into.await?;
    let mut all = vec![to.as_str().to_owned()];
    for source in sources {
        let from = source.as_str().to_owned();
        let last = from.rsplit('/').next().unwrap_or(&from);
        let base = if into { format!("{}/{last}", to.as_str()) } else { to.as_str().to_owned() };
        for file in tracked_files(git, vec![source]).await? {
            all.push(format!("{base}{}", file.strip_prefix(&from).unwrap_or_default()));
            all.push(file);
        }
        all.extend([base, from]);
    }
    Ok(all)
}

async fn clean_files(git: &GitRepo, asked: &ParsedCommand) -> Result<Vec<String>, ToolError> {
    let mut command = GitCommand::read("ls-files").flags(&["--others", "--exclude-standard", "-z"]);
    if asked.has(&["-X"]) {
        command = command.flag("--ignored");
    }
    if !asked.has(&["-d"]) {
        command = command.flags(&["--directory", "--no-empty-directory"]);
    }
    if let Some(pattern) = value(asked, "--exclude") {
        command = command.set("--exclude", &TrustedArg::new(pattern));
    }
    let mut all = names(git, command.paths(paths(git, asked)?)).await?;
    if !asked.has(&["-d"]) {
        all.retain(|path| !path.ends_with('/'));
    }
    Ok(all)
}

async fn stash_files(git: &GitRepo, asked: &ParsedCommand) -> Result<Vec<String>, ToolError> {
    if git.has_no_commits().await? {
        return Ok(Vec::new());
    }
    let mut all = diff_files(git, &["--cached"], &["HEAD"], paths(git, asked)?).await?;
    if !asked.has(&["--staged"]) {
        all.extend(diff_files(git, &[], &["HEAD"], paths(git, asked)?).await?);
    }
    if asked.has(&["-u", "--include-untracked"]) {
        let others = GitCommand::read("ls-files").flags(&["--others", "--exclude-standard", "-z"]);
        all.extend(names(git, others.paths(paths(git, asked)?)).await?);
    }
    Ok(all)
}

async fn unstash_files(git: &GitRepo, named: Option<&String>) -> Result<Vec<String>, ToolError> {
    let stash = match named.map_or("0", String::as_str) {
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("stash@{{{number}}}"),
        name => name.to_owned(),
    };
    let base = format!("{stash}^1");
    let mut all = diff_files(git, &[], &[&base, &stash], Vec::new()).await?;
    all.extend(renamed_files(git, "HEAD", &base).await?);
    let others = Rev::new(&format!("{stash}^3"))?;
    let is_there = GitCommand::read("rev-parse")
        .without_end_of_options()
        .flags(&["--quiet", "--verify"])
        .positional(&others);
    if git.try_run(is_there).await?.exit_code == 0 {
        all.extend(tree_files(git, &others).await?);
    }
    Ok(all)
}

/// Value of an option.
fn value<'a>(asked: &'a ParsedCommand, name: &str) -> Option<&'a str> {
    asked.options.iter().rev().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn paths(git: &GitRepo, asked: &ParsedCommand) -> Result<Vec<Pathspec>, ToolError> {
    let mut all = asked.positionals.clone();
    all.extend(asked.paths.clone().unwrap_or_default());
    git.repo.pathspecs(&git.fs, &all.iter().map(|path| WorkPath::from(path.as_str())).collect::<Vec<_>>())
}

async fn tracked_files(git: &GitRepo, paths: Vec<Pathspec>) -> Result<Vec<String>, ToolError> {
    names(git, GitCommand::read("ls-files").flag("-z").paths(paths)).await
}

async fn tree_files(git: &GitRepo, rev: &Rev) -> Result<Vec<String>, ToolError> {
    names(git, GitCommand::read("ls-tree").flags(&["-r", "--name-only", "-z", "--full-tree"]).positional(rev))
        .await
}

async fn diff_files(
    git: &GitRepo,
    flags: &[&'static str],
    revs: &[&str],
    paths: Vec<Pathspec>,
) -> Result<Vec<String>, ToolError> {
    let mut command = GitCommand::read("diff").flags(NAME_DIFF_OPTIONS).flags(flags);
    if !flags.contains(&"-M") {
        command = command.flag("--no-renames");
    }
    for rev in revs {
        command = command.positional(&Rev::new(rev)?);
    }
    names(git, command.paths(paths)).await
}

async fn names(git: &GitRepo, command: GitCommand) -> Result<Vec<String>, ToolError> {
    let ran = git.run(command.max_output(MAX_LISTING_BYTES)).await?;
    if ran.truncated {
        return Err(ToolError::denied("The command would change too many files to check.")
            .hint("Split it into parts, or ask the operator."));
    }
    let names =
        git_output::split_nul(&ran.stdout).into_iter().map(|name| name.trim_start_matches('\n').to_owned());
    Ok(names.filter(|name| !name.is_empty()).collect())
}

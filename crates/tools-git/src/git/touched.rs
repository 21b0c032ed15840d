//! Which files of the work tree a command would make, change or delete. Those that `files.protected` covers are refused
//! before git runs.

use super::fill;
use crate::allow::Asked;
use crate::command::Command;
use crate::run::{Git, LISTING};
use crate::value::{Checked, Pathspec, Rev, Word};
use crate::{fault, parse, sequence};
use octo_toolkit::fs::EntryKind;
use octo_toolkit::{ToolError, WorkPath};

const DIFF: &[&str] =
    &["--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-relative", "--ignore-submodules=dirty"];

/// Refuses a command that would touch a protected file.
pub async fn check(git: &Git, asked: &Asked) -> Result<(), ToolError> {
    if git.repo.bare {
        return Ok(());
    }
    refuse_protected(git, &of(git, asked).await?)
}

pub fn refuse_protected(git: &Git, paths: &[String]) -> Result<(), ToolError> {
    paths.iter().try_for_each(|path| git.fs.check_changeable(&git.repo.top.join(path.trim_end_matches('/'))))
}

async fn of(git: &Git, asked: &Asked) -> Result<Vec<String>, ToolError> {
    match asked.row.name {
        "mv" => moved(git, asked).await,
        "rm" if !asked.has(&["--cached"]) => tracked(git, paths(git, asked)?).await,
        "restore" if !asked.has(&["--staged"]) || asked.has(&["-W", "--worktree"]) => {
            let head = asked.has(&["--staged"]).then_some("HEAD");
            changed(
                git,
                &[],
                &value(asked, "--source").or(head).into_iter().collect::<Vec<_>>(),
                paths(git, asked)?,
            )
            .await
        }
        "checkout" => match fill::names_and_paths(git, asked)? {
            (names, paths) if paths.is_empty() && asked.paths.as_ref().is_none_or(Vec::is_empty) => {
                switched(git, asked, &names).await
            }
            (names, paths) => {
                let from: Vec<&str> = names.iter().map(String::as_str).collect();
                changed(git, &[], &from, paths).await
            }
        },
        "switch" => switched(git, asked, &asked.words).await,
        "reset" if asked.has(&["--hard", "--merge", "--keep"]) => {
            let to = asked.words.first().map_or("HEAD", String::as_str);
            let mut all = changed(git, &["--cached"], &[to], Vec::new()).await?;
            let local = if asked.has(&["--hard"]) { vec![to] } else { vec!["HEAD", to] };
            all.extend(changed(git, &[], &local, Vec::new()).await?);
            Ok(all)
        }
        "clean" if asked.has(&["-f", "--force"]) => cleaned(git, asked).await,
        "stash push" => stashed(git, asked).await,
        "stash pop" | "stash apply" => unstashed(git, asked.words.first()).await,
        "merge" | "rebase" | "cherry-pick" | "revert" => sequenced(git, asked).await,
        _ => Ok(Vec::new()),
    }
}

async fn sequenced(git: &Git, asked: &Asked) -> Result<Vec<String>, ToolError> {
    let (name, first) = (asked.row.name, asked.words.first().map(String::as_str));
    if asked.has(&["--quit"]) || (name == "merge" && asked.has(&["--continue"])) {
        return Ok(Vec::new());
    }
    if asked.has(&["--continue", "--skip", "--abort"]) {
        let mut all = changed(git, &["--cached"], &["HEAD"], Vec::new()).await?;
        if asked.has(&["--continue"]) {
            all.clear();
        }
        if name != "merge" && asked.has(&["--abort"]) {
            if let Some(origin) = sequence::origin(git, name).await? {
                all.extend(changed(git, &[], &["HEAD", &origin], Vec::new()).await?);
            }
        } else if name != "merge" {
            let rest = sequence::rest(git, name).await?;
            all.extend(of_commits(git, &rest).await?);
        }
        return Ok(all);
    }
    match name {
        "merge" => {
            let mut all = Vec::new();
            let to =
                if asked.words.is_empty() { vec!["@{upstream}".to_owned()] } else { asked.words.clone() };
            for other in &to {
                all.extend(merged(git, other, asked.has(&["--allow-unrelated-histories"])).await?);
            }
            Ok(all)
        }
        "rebase" => {
            let upstream = first.unwrap_or("@{upstream}");
            let onto = value(asked, "--onto");
            let branch = asked.words.get(1).map(String::as_str);
            let (upstream, branch) =
                if asked.has(&["--root"]) { (None, first.or(branch)) } else { (Some(upstream), branch) };
            let mut all = rebased(git, upstream, onto, branch.unwrap_or("HEAD")).await?;
            if asked.has(&["--autostash"]) {
                all.extend(local(git).await?);
            }
            Ok(all)
        }
        _ => of_commits(git, &asked.words).await,
    }
}

/// What is not committed.
pub async fn local(git: &Git) -> Result<Vec<String>, ToolError> {
    changed(git, &[], &["HEAD"], Vec::new()).await
}

/// What merging another commit changes, by merging it without a work tree.
pub async fn merged(git: &Git, other: &str, unrelated: bool) -> Result<Vec<String>, ToolError> {
    let other = Rev::new(other)?;
    if git.unborn().await? {
        return listed(git, &other).await;
    }
    let mut command =
        Command::write("merge-tree").flags(&["--write-tree", "-z", "--name-only", "--no-messages"]);
    if unrelated {
        command = command.flag("--allow-unrelated-histories");
    }
    let ran =
        git.try_run(command.without_end().word(&Checked::new("HEAD")).word(&other).keep(LISTING)).await?;
    match parse::names(&ran.out).first() {
        Some(tree) if ran.code <= 1 && tree.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            changed(git, &["--no-renames"], &["HEAD", tree], Vec::new()).await
        }
        _ => Err(fault::of(&ran)),
    }
}

/// What rebasing changes: on the way to the new base, and with every commit that is applied there.
pub async fn rebased(
    git: &Git,
    upstream: Option<&str>,
    onto: Option<&str>,
    branch: &str,
) -> Result<Vec<String>, ToolError> {
    let mut all = Vec::new();
    if let Some(base) = onto.or(upstream) {
        all.extend(changed(git, &[], &["HEAD", base], Vec::new()).await?);
    }
    if branch != "HEAD" {
        all.extend(changed(git, &[], &["HEAD", branch], Vec::new()).await?);
    }
    let range = upstream.map_or_else(|| branch.to_owned(), |upstream| format!("{upstream}..{branch}"));
    let commits = Command::read("log")
        .flags(&["-m", "--name-only", "--format=", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"])
        .word(&Rev::new(&range)?)
        .paths(Vec::new());
    all.extend(names(git, commits).await?);
    all.extend(renamed(git, onto.or(upstream).unwrap_or("HEAD"), branch).await?);
    Ok(all)
}

/// What applying or reverting commits changes.
async fn of_commits(git: &Git, commits: &[String]) -> Result<Vec<String>, ToolError> {
    let Some(last) = commits.last() else { return Ok(Vec::new()) };
    let mut command = Command::read("log").flags(&[
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
        command = command.word(&Rev::new(commit)?);
    }
    let mut all = names(git, command.paths(Vec::new())).await?;
    let tip = last.rsplit("..").next().unwrap_or(last);
    all.extend(renamed(git, "HEAD", tip).await?);
    Ok(all)
}

/// Files that one side has renamed: changes of the other side follow them to their new names.
async fn renamed(git: &Git, ours: &str, theirs: &str) -> Result<Vec<String>, ToolError> {
    let command = Command::read("merge-base").word(&Rev::new(ours)?).word(&Rev::new(theirs)?);
    let base = git.try_run(command).await?;
    if base.code != 0 {
        return Ok(Vec::new());
    }
    changed(git, &["-M", "--diff-filter=R"], &[&base.line(), ours], Vec::new()).await
}

async fn switched(git: &Git, asked: &Asked, words: &[String]) -> Result<Vec<String>, ToolError> {
    if asked.row.name == "switch" && asked.has(&["--orphan"]) {
        return tracked(git, Vec::new()).await;
    }
    let to = words.first().map_or("HEAD", String::as_str);
    if to.contains("...") {
        return Err(
            ToolError::invalid("The commit is given by two others.").hint("Name a branch or a commit.")
        );
    }
    let is_commit = Command::read("rev-parse").without_end().flags(&["--quiet", "--verify"]);
    let unborn = git.unborn().await?;
    let mut targets = Vec::new();
    if git.try_run(is_commit.word(&Rev::new(&format!("{to}^{{commit}}"))?)).await?.code == 0 {
        targets.push(to.to_owned());
    } else if !(unborn && to == "HEAD") {
        // A branch that only a remote has is made when it is asked for.
        let remotes = Command::read("for-each-ref").flag("--format=%(objectname)");
        let remotes = remotes.word(&Checked::new(format!("refs/remotes/*/{to}")));
        targets.extend(git.run(remotes).await?.text().lines().map(str::to_owned));
    }
    let mut all = Vec::new();
    for target in targets {
        if unborn {
            all.extend(listed(git, &Rev::new(&target)?).await?);
            continue;
        }
        all.extend(changed(git, &[], &["HEAD", &target], Vec::new()).await?);
        if asked.has(&["-f", "--force", "--discard-changes"]) {
            all.extend(changed(git, &[], &[&target], Vec::new()).await?);
        }
    }
    Ok(all)
}

async fn moved(git: &Git, asked: &Asked) -> Result<Vec<String>, ToolError> {
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
        for file in tracked(git, vec![source]).await? {
            all.push(format!("{base}{}", file.strip_prefix(&from).unwrap_or_default()));
            all.push(file);
        }
        all.extend([base, from]);
    }
    Ok(all)
}

async fn cleaned(git: &Git, asked: &Asked) -> Result<Vec<String>, ToolError> {
    let mut command = Command::read("ls-files").flags(&["--others", "--exclude-standard", "-z"]);
    if asked.has(&["-X"]) {
        command = command.flag("--ignored");
    }
    if !asked.has(&["-d"]) {
        command = command.flags(&["--directory", "--no-empty-directory"]);
    }
    if let Some(pattern) = value(asked, "--exclude") {
        command = command.set("--exclude", &Checked::new(pattern));
    }
    let mut all = names(git, command.paths(paths(git, asked)?)).await?;
    if !asked.has(&["-d"]) {
        all.retain(|path| !path.ends_with('/'));
    }
    Ok(all)
}

async fn stashed(git: &Git, asked: &Asked) -> Result<Vec<String>, ToolError> {
    if git.unborn().await? {
        return Ok(Vec::new());
    }
    let mut all = changed(git, &["--cached"], &["HEAD"], paths(git, asked)?).await?;
    if !asked.has(&["--staged"]) {
        all.extend(changed(git, &[], &["HEAD"], paths(git, asked)?).await?);
    }
    if asked.has(&["-u", "--include-untracked"]) {
        let others = Command::read("ls-files").flags(&["--others", "--exclude-standard", "-z"]);
        all.extend(names(git, others.paths(paths(git, asked)?)).await?);
    }
    Ok(all)
}

async fn unstashed(git: &Git, named: Option<&String>) -> Result<Vec<String>, ToolError> {
    let stash = match named.map_or("0", String::as_str) {
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("stash@{{{number}}}"),
        name => name.to_owned(),
    };
    let base = format!("{stash}^1");
    let mut all = changed(git, &[], &[&base, &stash], Vec::new()).await?;
    all.extend(renamed(git, "HEAD", &base).await?);
    let others = Rev::new(&format!("{stash}^3"))?;
    let is_there = Command::read("rev-parse").without_end().flags(&["--quiet", "--verify"]).word(&others);
    if git.try_run(is_there).await?.code == 0 {
        all.extend(listed(git, &others).await?);
    }
    Ok(all)
}

/// The value of an option.
fn value<'a>(asked: &'a Asked, name: &str) -> Option<&'a str> {
    asked.options.iter().rev().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn paths(git: &Git, asked: &Asked) -> Result<Vec<Pathspec>, ToolError> {
    let mut all = asked.words.clone();
    all.extend(asked.paths.clone().unwrap_or_default());
    git.repo.pathspecs(&git.fs, &all.iter().map(|path| WorkPath::from(path.as_str())).collect::<Vec<_>>())
}

async fn tracked(git: &Git, paths: Vec<Pathspec>) -> Result<Vec<String>, ToolError> {
    names(git, Command::read("ls-files").flag("-z").paths(paths)).await
}

async fn listed(git: &Git, rev: &Rev) -> Result<Vec<String>, ToolError> {
    names(git, Command::read("ls-tree").flags(&["-r", "--name-only", "-z", "--full-tree"]).word(rev)).await
}

async fn changed(
    git: &Git,
    flags: &[&'static str],
    revs: &[&str],
    paths: Vec<Pathspec>,
) -> Result<Vec<String>, ToolError> {
    let mut command = Command::read("diff").flags(DIFF).flags(flags);
    if !flags.contains(&"-M") {
        command = command.flag("--no-renames");
    }
    for rev in revs {
        command = command.word(&Rev::new(rev)?);
    }
    names(git, command.paths(paths)).await
}

async fn names(git: &Git, command: Command) -> Result<Vec<String>, ToolError> {
    let ran = git.run(command.keep(LISTING)).await?;
    if ran.cut {
        return Err(ToolError::denied("The command would change too many files to be looked through.")
            .hint("Do it in parts, or ask the operator."));
    }
    let names = parse::names(&ran.out).into_iter().map(|name| name.trim_start_matches('\n').to_owned());
    Ok(names.filter(|name| !name.is_empty()).collect())
}

//! Every command on every hostile repository: no program of the repository is started. There is no sandbox here, so one
//! that starts leaves its marker. Each repository is tried with plain git first, which must start the program where it
//! can.

use super::hostile_repo::{HOOKS, canary, marked};
use super::{GitFixture, allowed, git};
use serde_json::json;
use std::path::Path;
use std::process::Command;

struct HostileRepo {
    name: &'static str,
    make: fn(&Path, &str),
    /// Commands of which one makes plain git start the program; none if that takes a terminal or a server.
    triggers: &'static [&'static [&'static str]],
}

const fn row(
    name: &'static str,
    make: fn(&Path, &str),
    bites: &'static [&'static [&'static str]],
) -> HostileRepo {
    HostileRepo { name, make, triggers: bites }
}

const ADD_COMMAND: &[&[&str]] = &[&["add", "-A"]];
const FETCH_COMMAND: &[&[&str]] = &[&["fetch"]];
const CHECKOUT_COMMAND: &[&[&str]] = &[&["checkout", "-q", "-f", "topic"]];

const REPOSITORIES: &[HostileRepo] = &[
    row(
        "clean and smudge filters",
        |r, p| set(r, &["filter.evil.clean", "filter.evil.smudge"], p),
        ADD_COMMAND,
    ),
    row("a filter process", |r, p| set(r, &["filter.evil.process"], p), ADD_COMMAND),
    row("an external diff", |r, p| set(r, &["diff.external"], p), &[&["diff"]]),
    row("a diff command", |r, p| set(r, &["diff.evil.command"], p), &[&["diff"]]),
    row("a text conversion", |r, p| set(r, &["diff.evil.textconv"], p), &[&["diff"]]),
    row("a merge driver", |r, p| set(r, &["merge.evil.driver", "merge.default"], p), &[&["merge", "topic"]]),
    row("a file system monitor", |r, p| set(r, &["core.fsmonitor"], p), &[&["status"]]),
    row("hooks", |r, p| hooks(&r.join(".git/hooks"), p), CHECKOUT_COMMAND),
    row("hooks elsewhere", hooks_elsewhere, CHECKOUT_COMMAND),
    row("aliases", |r, p| set(r, &["alias.st", "alias.status", "alias.log"], &format!("!{p}")), &[&["st"]]),
    row("signing programs", signing, &[&["commit", "-qam", "x"]]),
    row("an ssh command", ssh, FETCH_COMMAND),
    row("a pager", |r, p| set(r, &["core.pager", "pager.log", "pager.diff", "pager.status"], p), &[]),
    row("editors", |r, p| set(r, &["core.editor", "sequence.editor"], p), &[&["commit", "-a", "--amend"]]),
    row("credential helpers", credentials, &[]),
    row("an included file", included, ADD_COMMAND),
    row("a file included by place", included_by_place, ADD_COMMAND),
    row("settings of one work tree", of_work_tree, ADD_COMMAND),
    row("a git folder behind a file", gitfile, ADD_COMMAND),
    row("one of several work trees", linked, &[&["status"]]),
    row("a nested repository's diff", nested_diff, &[&["log", "-p", "-n", "1", "with-sub"]]),
    row("a nested repository's filters", nested_filters, &[&["status"], &["add", "-A"]]),
    row("a nested repository's hooks", |r, p| hooks(&r.join("sub/.git/hooks"), p), &[]),
    row("a submodule's update", submodule_update, &[&["submodule", "update", "--force"]]),
    row("names in .gitmodules", gitmodules, &[]),
    row("options of a sequence", sequencer, &[&["cherry-pick", "--continue"], &["revert", "--continue"]]),
    row("the strategy of a rebase", rebase_strategy, &[&["rebase", "--continue"]]),
    row("commands of a rebase", rebase_exec, &[&["rebase", "--continue"]]),
    row("options of patches", rebase_apply, &[]),
    row("half a merge", half_merge, &[&["merge", "--continue"]]),
    row(
        "programs at the other end",
        |r, p| set(r, &["remote.origin.uploadpack", "remote.origin.receivepack"], p),
        FETCH_COMMAND,
    ),
    row("an address that is a program", ext, FETCH_COMMAND),
    row("addresses rewritten to a program", instead, FETCH_COMMAND),
    row(
        "a transport of its own",
        |r, p| set(r, &["remote.origin.vcs", "remote.origin.proxy", "core.gitProxy"], p),
        &[],
    ),
    row("borrowed objects", alternates, FETCH_COMMAND),
    row("housekeeping", housekeeping, &[&["gc", "--prune=now"]]),
    row(
        "trailers and filters of questions",
        |r, p| set(r, &["trailer.x.command", "trailer.x.cmd", "interactive.diffFilter"], p),
        &[],
    ),
    row("objects that are fetched when they are missed", promisor, &[&["checkout", "-f", "HEAD~1"]]),
    row(
        "bundles",
        |r, p| set(r, &["fetch.bundleURI", "transfer.bundleURI", "bundle.x.uri"], &format!("ext::{p}")),
        &[],
    ),
    row(
        "names of people",
        |r, p| set(r, &["mailmap.file", "notes.displayRef", "blame.ignoreRevsFile"], p),
        &[],
    ),
    row("half a bisection", bisect, &[]),
];

/// The commands, each on a fresh copy.
const COMMANDS: &[(&str, &[&str])] = &[
    ("status", &[]),
    ("diff", &["HEAD~1"]),
    ("log", &["-p"]),
    ("show", &["with-sub"]),
    ("blame", &["a.txt"]),
    ("grep", &["a"]),
    ("describe", &["--always"]),
    ("ls-files", &["-m"]),
    ("stash show", &["-p"]),
    ("add", &["-A"]),
    ("commit", &["-am", "x"]),
    ("stash", &["-u"]),
    ("stash pop", &[]),
    ("checkout", &["-f", "topic"]),
    ("switch", &["--detach", "-f", "HEAD~1"]),
    ("merge", &["topic"]),
    ("merge", &["--continue"]),
    ("rebase", &["--autostash", "topic"]),
    ("rebase", &["--continue"]),
    ("rebase", &["--abort"]),
    ("cherry-pick", &["topic"]),
    ("cherry-pick", &["--continue"]),
    ("revert", &["--continue"]),
    ("reset", &["--hard"]),
    ("restore", &["."]),
    ("rm", &["-f", "b.txt"]),
    ("clean", &["-fd"]),
    ("tag", &["-a", "-m", "t", "t1"]),
    ("fetch", &[]),
    ("pull", &["--no-rebase"]),
    ("push", &[]),
    ("clone", &["repo", "again"]),
];

fn set(repo: &Path, keys: &[&str], value: &str) {
    for key in keys {
        git(repo, &["config", "--file", ".git/config", "--add", key, value]);
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn hooks(folder: &Path, program: &str) {
    std::fs::create_dir_all(folder).unwrap();
    for hook in HOOKS {
        std::fs::copy(program, folder.join(hook)).unwrap();
    }
}

fn hooks_elsewhere(repo: &Path, program: &str) {
    hooks(&repo.join("tools"), program);
    set(repo, &["core.hooksPath"], &repo.join("tools").to_string_lossy());
}

fn signing(repo: &Path, program: &str) {
    set(repo, &["gpg.program", "gpg.ssh.program", "gpg.x509.program", "gpg.ssh.defaultKeyCommand"], program);
    set(
        repo,
        &["commit.gpgSign", "tag.gpgSign", "push.gpgSign", "log.showSignature", "merge.verifySignatures"],
        "true",
    );
}

fn ssh(repo: &Path, program: &str) {
    git(repo, &["config", "remote.origin.url", "ssh://git@127.0.0.1:9/x.git"]);
    set(repo, &["core.sshCommand", "ssh.variant"], program);
}

fn credentials(repo: &Path, program: &str) {
    git(repo, &["config", "remote.origin.url", "https://127.0.0.1:9/x.git"]);
    set(repo, &["credential.helper", "core.askPass", "credential.https://127.0.0.1:9.helper"], program);
}

fn evil_filter(program: &str) -> String {
    format!("[filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n[core]\n\tfsmonitor = {program}\n")
}

fn included(repo: &Path, program: &str) {
    write(&repo.join(".git/more"), &evil_filter(program));
    set(repo, &["include.path"], "more");
}

fn included_by_place(repo: &Path, program: &str) {
    write(&repo.join(".git/more"), &evil_filter(program));
    set(
        repo,
        &["includeIf.onbranch:**.path", "includeIf.gitdir:/.path"],
        &repo.join(".git/more").to_string_lossy(),
    );
}

fn of_work_tree(repo: &Path, program: &str) {
    set(repo, &["extensions.worktreeConfig"], "true");
    set(repo, &["core.repositoryFormatVersion"], "1");
    write(&repo.join(".git/config.worktree"), &evil_filter(program));
}

fn gitfile(repo: &Path, program: &str) {
    set(repo, &["filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"], program);
    std::fs::rename(repo.join(".git"), repo.join("data")).unwrap();
    write(&repo.join(".git"), "gitdir: data\n");
}

fn linked(repo: &Path, program: &str) {
    set(repo, &["filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"], program);
    hooks(&repo.join(".git/hooks"), program);
    let _ = Command::new("git").args(["worktree", "add", "-f", "tree", "topic"]).current_dir(repo).output();
}

fn nested_diff(repo: &Path, program: &str) {
    set(repo, &["diff.submodule"], "diff");
    set(repo, &["status.submoduleSummary"], "true");
    set(&repo.join("sub"), &["diff.external", "diff.evil.command", "diff.evil.textconv"], program);
}

fn nested_filters(repo: &Path, program: &str) {
    set(&repo.join("sub"), &["filter.inner.clean", "filter.inner.smudge", "core.fsmonitor"], program);
    write(&repo.join("sub/.gitattributes"), "* filter=inner\n");
    write(&repo.join("sub/file"), "y\n");
}

fn submodule_update(repo: &Path, program: &str) {
    set(repo, &["submodule.sub.update"], &format!("!{program}"));
    set(repo, &["submodule.sub.url"], "./sub");
    set(repo, &["submodule.sub.active", "submodule.recurse"], "true");
    git(&repo.join("sub"), &["commit", "-q", "--allow-empty", "-m", "Ahead"]);
}

fn gitmodules(repo: &Path, program: &str) {
    let text = format!(
        "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::{program}\n\tupdate = !{program}\n\tignore = none\n\
         \tfetchRecurseSubmodules = true\n[submodule \"../../x\"]\n\tpath = -x\n\turl = -u./{program}\n"
    );
    write(&repo.join(".gitmodules"), &text);
    set(repo, &["submodule.recurse", "fetch.recurseSubmodules", "push.recurseSubmodules"], "true");
    set(repo, &["protocol.allow", "protocol.ext.allow"], "always");
}

fn strategy(repo: &Path, program: &str) {
    std::fs::create_dir_all(repo.join("git-merge-x")).unwrap();
    std::fs::copy(program, repo.join("git-merge-x/run")).unwrap();
}

fn sequencer(repo: &Path, program: &str) {
    strategy(repo, program);
    git(repo, &["reset", "-q", "--hard"]);
    let (head, pick) = (git(repo, &["rev-parse", "HEAD"]), git(repo, &["rev-parse", "HEAD~1"]));
    write(&repo.join(".git/sequencer/head"), &head);
    write(&repo.join(".git/sequencer/todo"), &format!("pick {0} x\npick {0} x\n", pick.trim()));
    write(&repo.join(".git/sequencer/opts"), "[options]\n\tstrategy = x/run\n\tallow-ff = false\n");
}

fn stopped_rebase(repo: &Path) -> String {
    git(repo, &["reset", "-q", "--hard"]);
    let (topic, main) = (git(repo, &["rev-parse", "topic"]), git(repo, &["rev-parse", "main"]));
    git(repo, &["-c", "sequence.editor=printf 'break\\n' >", "rebase", "-q", "-i", "HEAD~1"]);
    // The second has to be merged, whatever the first is.
    format!("pick {} x\npick {} x\n", topic.trim(), main.trim())
}

fn rebase_strategy(repo: &Path, program: &str) {
    strategy(repo, program);
    let todo = stopped_rebase(repo);
    write(&repo.join(".git/rebase-merge/strategy"), "x/run\n");
    write(&repo.join(".git/rebase-merge/git-rebase-todo"), &todo);
}

fn rebase_exec(repo: &Path, program: &str) {
    stopped_rebase(repo);
    write(&repo.join(".git/rebase-merge/git-rebase-todo"), &format!("exec {program}\n"));
}

fn rebase_apply(repo: &Path, program: &str) {
    let head = git(repo, &["rev-parse", "HEAD"]);
    hooks(&repo.join(".git/hooks"), program);
    for (name, text) in [
        ("next", "1\n"),
        ("last", "1\n"),
        ("rebasing", ""),
        ("apply-opt", "'--unsafe-paths' '--directory=..'\n"),
        ("head-name", "refs/heads/main\n"),
        ("orig-head", head.as_str()),
        ("onto", head.as_str()),
        ("0001", "From x\nSubject: x\n\n---\n"),
    ] {
        write(&repo.join(".git/rebase-apply").join(name), text);
    }
}

fn half_merge(repo: &Path, program: &str) {
    git(repo, &["reset", "-q", "--hard"]);
    git(repo, &["merge", "-q", "--no-commit", "--no-ff", "-s", "ours", "topic"]);
    set(repo, &["merge.evil.driver", "filter.evil.smudge", "filter.evil.clean"], program);
    hooks(&repo.join(".git/hooks"), program);
}

fn ext(repo: &Path, program: &str) {
    git(repo, &["config", "remote.origin.url", &format!("ext::{program} %S")]);
    set(repo, &["protocol.ext.allow"], "always");
}

fn instead(repo: &Path, program: &str) {
    let origin = git(repo, &["config", "remote.origin.url"]);
    set(repo, &[&format!("url.ext::{program} .insteadOf")], origin.trim());
    set(repo, &["protocol.ext.allow"], "always");
}

fn alternates(repo: &Path, program: &str) {
    let objects = repo.with_file_name("origin.git").join("objects");
    write(&repo.join(".git/objects/info/alternates"), &format!("{}\n", objects.display()));
    write(&repo.join(".git/objects/info/http-alternates"), &format!("{}\n", objects.display()));
    set(repo, &["core.alternateRefsCommand"], program);
}

fn housekeeping(repo: &Path, program: &str) {
    set(repo, &["gc.auto", "gc.autoPackLimit"], "1");
    set(repo, &["gc.autoDetach"], "false");
    set(repo, &["gc.recentObjectsHook"], program);
    hooks(&repo.join(".git/hooks"), program);
}

fn promisor(repo: &Path, program: &str) {
    set(repo, &["core.repositoryFormatVersion"], "1");
    set(repo, &["extensions.partialClone"], "origin");
    set(repo, &["remote.origin.promisor"], "true");
    let blob = git(repo, &["rev-parse", "HEAD~1:a.txt"]);
    let (folder, name) = blob.trim().split_at(2);
    let _ = std::fs::remove_file(repo.join(".git/objects").join(folder).join(name));
    set(repo, &["remote.origin.uploadpack"], program);
}

fn bisect(repo: &Path, program: &str) {
    git(repo, &["reset", "-q", "--hard"]);
    git(repo, &["bisect", "start", "HEAD", "HEAD~1"]);
    write(&repo.join(".git/BISECT_RUN"), program);
}

/// A repository with two branches that conflict, a nested repository, a stash, a remote and changes.
fn base(root: &Path) {
    let repo = root.join("repo");
    write(&repo.join("sub/file"), "x\n");
    let sub = repo.join("sub");
    git(&sub, &["init", "-q", "-b", "main"]);
    git(&repo, &["init", "-q", "-b", "main"]);
    write(&repo.join(".gitattributes"), "* filter=evil diff=evil merge=evil\n");
    write(&repo.join(".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n");
    write(&repo.join("b.txt"), "b\n");
    for text in ["one\n", "two\n"] {
        write(&repo.join("a.txt"), text);
        write(&sub.join("file"), text);
        git(&sub, &["add", "."]);
        git(&sub, &["commit", "-q", "-m", "Sub"]);
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "Outer"]);
    }
    git(&repo, &["tag", "with-sub"]);
    git(&repo, &["branch", "topic"]);
    write(&repo.join("a.txt"), "ours\n");
    git(&repo, &["commit", "-q", "-am", "Ours"]);
    git(root, &["clone", "-q", "--bare", "repo", "origin.git"]);
    git(&repo, &["remote", "add", "origin", &root.join("origin.git").to_string_lossy()]);
    git(&repo, &["fetch", "-q"]);
    git(&repo, &["branch", "-q", "-u", "origin/main"]);
    git(&repo, &["checkout", "-q", "topic"]);
    write(&repo.join("a.txt"), "theirs\n");
    git(&repo, &["commit", "-q", "-am", "Theirs"]);
    git(&repo, &["push", "-q", "origin", "topic:main", "--force"]);
    git(&repo, &["checkout", "-q", "main"]);
    write(&repo.join("b.txt"), "stashed\n");
    git(&repo, &["stash", "-q"]);
    write(&repo.join("a.txt"), "dirty\n");
}

/// The directory itself stays, because the workspace holds it open.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(to).unwrap() {
        let path = entry.unwrap().path();
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }
    assert!(Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap().success());
}

/// One shard of the repositories, each with every n-th command.
async fn try_part(part: usize, parts: usize, every: usize) {
    let desk = GitFixture::without_sandbox(allowed());
    let program = canary(&desk);
    let (root, base_kept) = (desk.root(), desk.outside_dir().join("base"));
    base(&root);
    copy(&root, &base_kept);
    let mut worked = 0;
    for (at, hostile) in REPOSITORIES.iter().enumerate().skip(part).step_by(parts) {
        copy(&base_kept, &root);
        (hostile.make)(&root.join("repo"), &program);
        let trap = desk.outside_dir().join("trap");
        copy(&root, &trap);
        let mut sprung = hostile.triggers.is_empty();
        for args in hostile.triggers {
            let _ = marked(&desk);
            let mut plain = Command::new("timeout");
            plain.args(["3", "git"]).stdin(std::process::Stdio::null());
            plain.args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]).args(*args);
            plain
                .current_dir(root.join("repo"))
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_TERMINAL_PROMPT", "0");
            let _ = plain.output().unwrap();
            sprung |= marked(&desk);
            copy(&trap, &root);
        }
        assert!(sprung, "{}: plain git does not start the program", hostile.name);
        for (command, args) in COMMANDS.iter().skip(at % every).step_by(every) {
            let at = if *command == "clone" { "." } else { "repo" };
            let answer =
                desk.try_call("git", json!({"command": command, "args": args, "repo_path": at})).await;
            assert!(
                !marked(&desk),
                "{}: git {command} {args:?} started the program: {answer:?}",
                hostile.name
            );
            worked += usize::from(answer.is_ok_and(|answer| answer["exit_code"] == 0));
            // Read-only commands must not change anything.
            if !["status", "diff", "log", "show", "blame", "grep", "describe", "ls-files"].contains(command) {
                copy(&trap, &root);
            }
        }
    }
    assert!(worked > 4, "only {worked} calls worked, which proves little");
}

#[test]
fn there_are_thirty_repositories_and_twenty_two_commands() {
    assert!(REPOSITORIES.len() >= 30 && COMMANDS.len() >= 22);
    assert!(REPOSITORIES.iter().filter(|hostile| !hostile.triggers.is_empty()).count() >= 24);
}

macro_rules! samples {
    ($($name:ident $part:literal)*) => {$(
        #[tokio::test]
        async fn $name() {
            try_part($part, 6, 8).await;
        }
    )*};
}

samples! {
    a_sample_of_commands_on_every_hostile_repository_1 0
    a_sample_of_commands_on_every_hostile_repository_2 1
    a_sample_of_commands_on_every_hostile_repository_3 2
    a_sample_of_commands_on_every_hostile_repository_4 3
    a_sample_of_commands_on_every_hostile_repository_5 4
    a_sample_of_commands_on_every_hostile_repository_6 5
}

macro_rules! parts {
    ($($name:ident $part:literal)*) => {$(
        #[tokio::test]
        #[ignore = "takes minutes"]
        async fn $name() {
            try_part($part, 14, 1).await;
        }
    )*};
}

parts! {
    every_command_on_every_hostile_repository_01 0
    every_command_on_every_hostile_repository_02 1
    every_command_on_every_hostile_repository_03 2
    every_command_on_every_hostile_repository_04 3
    every_command_on_every_hostile_repository_05 4
    every_command_on_every_hostile_repository_06 5
    every_command_on_every_hostile_repository_07 6
    every_command_on_every_hostile_repository_08 7
    every_command_on_every_hostile_repository_09 8
    every_command_on_every_hostile_repository_10 9
    every_command_on_every_hostile_repository_11 10
    every_command_on_every_hostile_repository_12 11
    every_command_on_every_hostile_repository_13 12
    every_command_on_every_hostile_repository_14 13
}

//! Ways in which a repository, or a concurrent change of one, could run a program or change a protected file. There
//! is no sandbox here, so a program that starts leaves its marker.

use super::hostile_repo::{canary, marked};
use super::{GitFixture, allowed, git, http_remotes};
use crate::GitSettings;
use octo_toolkit::Kind;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;

fn call(command: &str, args: &[&str], at: &str) -> Value {
    json!({"command": command, "args": args, "repo_path": at})
}

fn executable(path: &Path, program: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(program, path).unwrap();
}

/// An outer repository that shows differences of an inner one by querying it, whose settings name a program.
#[tokio::test]
async fn reading_does_not_start_programs_of_a_nested_repository() {
    let desk = GitFixture::without_sandbox(GitSettings::default());
    desk.demo();
    let (root, sub) = (desk.root(), desk.root().join("sub"));
    let program = canary(&desk);
    desk.write("sub/file", "1\n");
    git(&sub, &["init", "-q", "-b", "main"]);
    for text in ["1\n", "2\n"] {
        desk.write("sub/file", text);
        git(&sub, &["add", "."]);
        git(&sub, &["commit", "-q", "--allow-empty", "-m", "Sub"]);
        git(&root, &["add", "sub"]);
        git(&root, &["commit", "-q", "-m", "Outer"]);
    }
    for key in ["diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor"] {
        git(&sub, &["config", key, &program]);
    }
    git(&root, &["config", "diff.submodule", "diff"]);
    git(&root, &["config", "status.submoduleSummary", "true"]);
    let _ = marked(&desk);
    git(&root, &["log", "-p", "-n", "1"]);
    assert!(marked(&desk), "plain git starts the program");
    for (command, args) in [
        ("log", &["-p", "-n", "1"][..]),
        ("show", &[]),
        ("diff", &["HEAD~1", "HEAD"]),
        ("diff-tree", &["-p", "HEAD"]),
        ("status", &[]),
        ("diff", &["HEAD~1"]),
    ] {
        let answer = desk.call("git", call(command, args, ".")).await;
        assert!(!marked(&desk), "git {command} {args:?} started the program: {answer}");
        assert_eq!(answer["exit_code"], 0, "{command}: {answer}");
    }
}

/// A foreign cherry-pick with a merge strategy that is a program of the work tree.
#[tokio::test]
async fn a_sequence_with_a_strategy_of_the_repository_is_not_continued() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    let root = desk.root();
    let program = canary(&desk);
    git(&root, &["commit", "-qam", "Three"]);
    executable(&root.join("git-merge-x/run"), &program);
    let head = git(&root, &["rev-parse", "HEAD"]);
    let before = git(&root, &["rev-parse", "HEAD~1"]);
    for (command, folder) in [("cherry-pick", "pick"), ("revert", "revert")] {
        git(&root, &["reset", "-q", "--hard", head.trim()]);
        // The first counts as done.
        desk.write(
            ".git/sequencer/todo",
            &format!("{folder} {0} Say more\n{folder} {0} Say more\n", before.trim()),
        );
        desk.write(".git/sequencer/head", &head);
        desk.write(".git/sequencer/opts", "[options]\n\tstrategy = x/run\n\tallow-ff = false\n");
        for end in ["--continue", "--skip"] {
            let answer = desk.try_call("git", call(command, &[end], ".")).await;
            assert!(!marked(&desk), "{command} {end} started the program: {answer:?}");
            assert_eq!(answer.unwrap_err().kind, Kind::Denied, "{command} {end}");
        }
        let _ = desk.try_call("git", call(command, &["--quit"], ".")).await;
        assert!(!marked(&desk), "{command} --quit");
    }
    git(&root, &["reset", "-q", "--hard", head.trim()]);
    git(&root, &["-c", "sequence.editor=printf 'break\\n' >", "rebase", "-q", "-i", "HEAD~1"]);
    desk.write(".git/rebase-merge/strategy", "x/run\n");
    desk.write(".git/rebase-merge/git-rebase-todo", &format!("pick {} Say more\n", before.trim()));
    for end in ["--continue", "--skip"] {
        let answer = desk.try_call("git", call("rebase", &[end], ".")).await;
        assert!(!marked(&desk), "rebase {end} started the program: {answer:?}");
        assert_eq!(answer.unwrap_err().kind, Kind::Denied, "rebase {end}");
    }
    let ended = desk.call("git", call("rebase", &["--abort"], ".")).await;
    assert!(ended["exit_code"] == 0 && !marked(&desk), "{ended}");
}

/// Each of these would create, change or delete a protected file.
const PROTECTED_FILE_COMMANDS: &[(&str, &[&str])] = &[
    ("mv", &["notes.txt", "a.pem"]),
    ("mv", &["notes.txt", "node_modules"]),
    ("mv", &[".npmrc", "plain.txt"]),
    ("rm", &[".npmrc"]),
    ("rm", &["-r", "."]),
    ("clean", &["-f", "-d", "-X"]),
    ("clean", &["-f", "-d"]),
    ("checkout", &["other"]),
    ("checkout", &["other", "--", ".npmrc"]),
    ("checkout", &["other", "--", "."]),
    ("switch", &["other"]),
    ("switch", &["--detach", "gone"]),
    ("switch", &["--orphan", "empty"]),
    ("restore", &["--source=other", "."]),
    ("reset", &["--hard", "other"]),
    ("reset", &["--keep", "other"]),
    ("merge", &["other"]),
    ("merge", &["--squash", "other"]),
    ("cherry-pick", &["other"]),
    ("cherry-pick", &["-n", "other"]),
    ("rebase", &["other"]),
    ("stash pop", &[]),
    ("stash apply", &["stash@{0}"]),
];

/// No git command creates, changes or deletes files that `files.protected` covers.
#[tokio::test]
async fn protected_files_are_not_touched() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    let root = desk.root();
    git(&root, &["checkout", "-q", "--", "."]);
    desk.write(".npmrc", "one\n");
    desk.write(".gitignore", ".env\nnode_modules\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "GitSettings"]);
    git(&root, &["checkout", "-q", "-b", "other"]);
    desk.write(".npmrc", "two\n");
    git(&root, &["commit", "-qam", "Two"]);
    git(&root, &["branch", "gone"]);
    desk.write(".npmrc", "three\n");
    git(&root, &["stash", "-q"]);
    git(&root, &["checkout", "-q", "main"]);
    desk.write("more.txt", "x\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "More"]);
    desk.write(".env", "SECRET=1\n");
    desk.write("node_modules/m.js", "x\n");
    desk.write("loose/.env.local", "y\n");
    let state = || {
        let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
        (
            read(".npmrc"),
            read(".env"),
            read("node_modules/m.js"),
            read("loose/.env.local"),
            root.join("a.pem").exists(),
        )
    };
    let before = state();
    for (command, args) in PROTECTED_FILE_COMMANDS {
        let answer = desk.try_call("git", call(command, args, ".")).await;
        assert_eq!(state(), before, "git {command} {args:?}: {answer:?}");
        let error = answer.map(|answer| answer.to_string()).expect_err(&format!("git {command} {args:?}"));
        assert_eq!(error.kind, Kind::Denied, "git {command} {args:?}: {error}");
        assert!(error.message.contains("protected"), "git {command} {args:?}: {error}");
    }
    desk.write(".npmrc", "changed\n");
    let before = state();
    for (command, args) in [
        ("restore", &["."][..]),
        ("checkout", &["--", ".npmrc"]),
        ("checkout", &["-f", "main"]),
        ("reset", &["--hard"]),
        ("stash", &[]),
        ("stash push", &["-u"]),
    ] {
        let answer = desk.try_call("git", call(command, args, ".")).await;
        assert_eq!(state(), before, "git {command} {args:?}: {answer:?}");
        assert_eq!(answer.unwrap_err().kind, Kind::Denied, "git {command} {args:?}");
    }
    // A rename out of the way is a deletion.
    let patch = "diff --git a/.npmrc b/plain\nsimilarity index 100%\nrename from .npmrc\nrename to plain\n";
    let answer = desk.try_call("git_apply_patch", json!({"patch": patch, "check": false})).await;
    assert_eq!(answer.unwrap_err().kind, Kind::Denied);
    assert_eq!(state(), before);
}

/// Files that run programs are part of most repositories: commits bring them, the caller does not write them.
#[tokio::test]
async fn commits_bring_files_that_run_programs() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    let root = desk.root();
    git(&root, &["checkout", "-q", "--", "."]);
    git(&root, &["checkout", "-q", "-b", "other"]);
    desk.write(".github/workflows/ci.yml", "on: push\n");
    desk.write("AGENTS.md", "Be kind.\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "CI"]);
    let workflow = || std::fs::read_to_string(root.join(".github/workflows/ci.yml")).ok();
    for (command, args, expected) in [
        ("switch", &["main"][..], None),
        ("merge", &["other"], Some("on: push\n")),
        ("reset", &["--hard", "HEAD~1"], None),
        ("cherry-pick", &["other"], Some("on: push\n")),
    ] {
        let answer = desk.call("git", call(command, args, ".")).await;
        assert!(
            answer["exit_code"] == 0 && workflow().as_deref() == expected,
            "{command} {args:?}: {answer}"
        );
    }
    desk.write("notes.yml", "on: [push]\n");
    git(&root, &["add", "notes.yml"]);
    desk.write(".vscode/tasks.json", "{}\n");
    for (command, args) in [
        ("mv", &["notes.yml", ".github/workflows/other.yml"][..]),
        ("mv", &["AGENTS.md", "agents.txt"]),
        ("rm", &[".github/workflows/ci.yml"]),
        ("clean", &["-f", "-d"]),
    ] {
        let error = desk.try_call("git", call(command, args, ".")).await.unwrap_err();
        assert!(error.text().contains("@runs-programs"), "{command} {args:?}: {error}");
    }
    let patch = "diff --git a/AGENTS.md b/AGENTS.md\n--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1 @@\n-Be kind.\n+Obey.\n";
    let error = desk.try_call("git_apply_patch", json!({"patch": patch, "check": false})).await.unwrap_err();
    assert!(error.text().contains("@runs-programs"), "{error}");
    assert!(
        workflow().is_some() && root.join("AGENTS.md").exists() && root.join(".vscode/tasks.json").exists()
    );
}

/// The remote does not reply until the settings of the repository have been replaced.
#[tokio::test]
async fn settings_that_change_during_a_pull_have_no_effect() {
    let server = http_remotes::GitHttpServer::new("").await;
    let desk = GitFixture::unconfined(http_remotes::net(&["git.test"]));
    let program = canary(&desk);
    let url = server.url("git.test");
    let clone = desk.call("git", json!({"command": "clone", "args": [url, "clone"]})).await;
    assert_eq!(clone["exit_code"], 0, "{clone}");
    server.advance(&[("notes.txt", "beta\n"), (".gitattributes", "* filter=evil merge=evil diff=evil\n")]);
    server.pause.armed.store(true, Ordering::SeqCst);
    let mut evil = std::fs::read_to_string(desk.root().join("clone/.git/config")).unwrap();
    evil.push_str(&format!(
        "[filter \"evil\"]\n\tsmudge = {program}\n\tclean = {program}\n\tprocess = {program}\n[merge \"evil\"]\n\tdriver = {program}\n\
         [core]\n\tfsmonitor = {program}\n\tsshCommand = {program}\n\thooksPath = /nowhere\n[url \"ext::{program} \"]\n\tinsteadOf = http\n"
    ));
    let pull = desk.call("git", call("pull", &["--ff-only"], "clone"));
    let meddle = async {
        let waited =
            tokio::time::timeout(std::time::Duration::from_secs(20), server.pause.reached.notified()).await;
        waited.expect("git asks the remote");
        std::fs::write(desk.root().join("clone/.git/config"), &evil).unwrap();
        server.pause.release.notify_one();
    };
    let (answer, ()) = tokio::join!(pull, meddle);
    assert!(!marked(&desk), "a program was started: {answer}");
    assert_eq!(answer["exit_code"], 0, "{answer}");
    assert_eq!(std::fs::read_to_string(desk.root().join("clone/notes.txt")).unwrap(), "beta\n");
    let _ = std::fs::remove_file(desk.root().join("clone/notes.txt"));
    let mut plain = std::process::Command::new("git");
    plain.args(["checkout", "."]).current_dir(desk.root().join("clone")).output().unwrap();
    assert!(marked(&desk), "plain git starts it");
}

/// What git writes itself arrives in the repository: remotes, upstreams, names of branches.
#[tokio::test]
async fn what_git_writes_down_arrives_in_the_repository() {
    let desk = GitFixture::new(allowed());
    desk.demo();
    let root = desk.root();
    git(&root, &["checkout", "-q", "--", "."]);
    git(&root, &["config", "filter.x.clean", "cat"]);
    git(&root, &["config", "branch.main.mergeOptions", "--no-ff"]);
    let run = async |command: &str, args: &[&str]| {
        let answer = desk.call("git", call(command, args, ".")).await;
        assert_eq!(answer["exit_code"], 0, "{command} {args:?}: {answer}");
    };
    let setting = |key: &str| {
        let told =
            std::process::Command::new("git").args(["config", "--get-all", key]).current_dir(&root).output();
        String::from_utf8_lossy(&told.unwrap().stdout).trim_end().to_owned()
    };
    run("remote add", &["up", "https://example.org/x.git"]).await;
    assert_eq!(setting("remote.up.url"), "https://example.org/x.git");
    assert_eq!(setting("remote.up.fetch"), "+refs/heads/*:refs/remotes/up/*");
    run("remote set-url", &["up", "https://example.org/y.git"]).await;
    assert_eq!(setting("remote.up.url"), "https://example.org/y.git");
    run("checkout", &["-b", "topic", "--track", "main"]).await;
    assert_eq!(
        (setting("branch.topic.merge"), setting("branch.topic.remote")),
        ("refs/heads/main".into(), ".".into())
    );
    run("branch", &["-m", "topic", "theme"]).await;
    assert_eq!(git(&root, &["symbolic-ref", "HEAD"]).trim(), "refs/heads/theme");
    assert_eq!(
        (setting("branch.topic.merge"), setting("branch.theme.merge")),
        (String::new(), "refs/heads/main".into())
    );
    run("rebase", &["main", "theme"]).await;
    run("switch", &["main"]).await;
    let answer = desk.call("git", call("branch", &["-d", "main"], ".")).await;
    assert!(
        answer["exit_code"] != 0 && answer["stderr"].as_str().unwrap().contains(&*root.to_string_lossy()),
        "{answer}"
    );
    run("branch", &["-d", "theme"]).await;
    assert_eq!(setting("branch.theme.merge"), "");
    run("remote remove", &["up"]).await;
    assert_eq!(setting("remote.up.url"), "");
    assert_eq!(
        (setting("filter.x.clean"), setting("branch.main.mergeOptions")),
        ("cat".into(), "--no-ff".into())
    );
    desk.write("new.txt", "x\n");
    run("stash", &["-u"]).await;
    assert!(!root.join("new.txt").exists());
    run("stash pop", &[]).await;
    assert!(root.join("new.txt").exists());
    let listed = desk.call("git", call("worktree list", &[], ".")).await;
    assert!(listed["stdout"].as_str().unwrap().starts_with(&*root.to_string_lossy()), "{listed}");
    let where_ = desk.call("git", call("rev-parse", &["--git-dir"], ".")).await;
    assert_eq!(where_["stdout"].as_str().unwrap().trim(), root.join(".git").to_string_lossy());
    git(&root, &["tag", "-a", "-m", "Words", "v1"]);
    let tags = desk.call("git", call("tag", &["-n"], ".")).await;
    assert!(tags["stdout"].as_str().unwrap().contains("Words"), "{tags}");
    let shallow = desk.call("git", call("clone", &["--depth=1", ".", "shallow"], ".")).await;
    assert_eq!(shallow["exit_code"], 0, "{shallow}");
    assert!(root.join("shallow/.git/shallow").exists());
    let whole = desk.call("git", call("fetch", &["--unshallow"], "shallow")).await;
    assert_eq!(whole["exit_code"], 0, "{whole}");
    assert!(!root.join("shallow/.git/shallow").exists());
    assert_eq!(git(&root.join("shallow"), &["rev-list", "--count", "HEAD"]).trim(), "2");
}

//! SEC-GIT-03: a repository whose settings, hooks and attributes start programs wherever git allows it. No tool
//! starts one. There is no sandbox here, so a program that starts leaves its marker.

use super::{GitFixture, allowed, git};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A program that leaves a marker and passes its input on.
pub fn canary(desk: &GitFixture) -> String {
    let program = desk.outside_dir().join("program");
    let mark = desk.outside_dir().join("canary");
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat 2>/dev/null\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program.to_string_lossy().into_owned()
}

pub fn marked(desk: &GitFixture) -> bool {
    let mark = desk.outside_dir().join("canary");
    let there = mark.exists();
    let _ = std::fs::remove_file(mark);
    there
}

pub const HOOKS: [&str; 22] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "post-index-change",
];

/// Settings that name the program, and those that make git use it.
fn settings(program: &str) -> Vec<(String, String)> {
    let named = [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.alternateRefsCommand",
        "core.gitProxy",
        "sequence.editor",
        "credential.helper",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "gpg.program",
        "gpg.ssh.program",
        "interactive.diffFilter",
        "pager.log",
        "pager.diff",
        "pager.branch",
        "trailer.sign.command",
        "uploadpack.packObjectsHook",
        "gc.recentObjectsHook",
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
        "difftool.evil.cmd",
        "mergetool.evil.cmd",
        "hook.evil.command",
        "browser.evil.cmd",
        "sendemail.sendmailCmd",
        "credential.https://example.org.helper",
        "GIT.editor",
    ];
    let mut all: Vec<(String, String)> =
        named.iter().map(|key| ((*key).to_owned(), program.to_owned())).collect();
    for (key, value) in [
        ("alias.status", format!("!{program}")),
        ("alias.log", format!("!{program}")),
        ("alias.remote-evil", format!("!{program}")),
        ("filter.evil.required", "true".to_owned()),
        ("merge.default", "evil".to_owned()),
        ("commit.gpgSign", "true".to_owned()),
        ("tag.gpgSign", "true".to_owned()),
        ("log.showSignature", "true".to_owned()),
        ("gc.auto", "1".to_owned()),
        ("submodule.sub.update", format!("!{program}")),
        ("submodule.sub.url", format!("ext::{program}")),
        ("submodule.sub.ignore", "none".to_owned()),
        ("submodule.recurse", "true".to_owned()),
        ("protocol.allow", "always".to_owned()),
        ("protocol.ext.allow", "always".to_owned()),
        ("hook.evil.event", "pre-commit".to_owned()),
        ("receive.denyCurrentBranch", "updateInstead".to_owned()),
    ] {
        all.push((key.to_owned(), value));
    }
    all
}

/// The demo repository with every trap set, and a nested repository with its own.
fn hostile(desk: &GitFixture) -> String {
    let program = canary(desk);
    desk.demo();
    let root = desk.root();
    desk.write("sub/file", "x\n");
    git(&root.join("sub"), &["init", "-q", "-b", "main"]);
    git(&root.join("sub"), &["add", "."]);
    git(&root.join("sub"), &["commit", "-q", "-m", "Sub"]);
    desk.write(
        ".gitmodules",
        "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n\tupdate = checkout\n",
    );
    desk.write(".gitattributes", "* diff=evil filter=evil merge=evil\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "Traps"]);
    git(&root, &["branch", "topic", "HEAD~1"]);
    git(&root, &["config", "remote.origin.url", "ssh://git@127.0.0.1:9/x.git"]);
    install_traps(&root, &program);
    install_traps(&root.join("sub"), &program);
    // The same length as before: only then git has to read the content, through the filter.
    desk.write("sub/file", "y\n");
    // Unique names, which cannot be known from the outer repository alone.
    git(&root.join("sub"), &["config", "filter.inner.clean", &program]);
    desk.write("sub/.gitattributes", "* filter=inner\n");
    desk.write("notes.txt", "alpha\nBETA\n");
    program
}

fn install_traps(repo: &Path, program: &str) {
    let dot = repo.join(".git");
    let hooks = repo.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in HOOKS {
        std::fs::copy(program, hooks.join(hook)).unwrap();
    }
    let other = dot.join("included");
    for (key, value) in settings(program) {
        git(repo, &["config", "--file", &dot.join("config").to_string_lossy(), &key, &value]);
    }
    for key in ["filter.evil.clean", "filter.more.clean", "core.fsmonitor"] {
        git(repo, &["config", "--file", &other.to_string_lossy(), key, program]);
    }
    let config = dot.join("config");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("[include]\n\tpath = included\n");
    std::fs::write(config, text).unwrap();
}

/// A call of every tool, and of every subcommand that could meet a trap.
fn calls() -> Vec<(&'static str, Value)> {
    let patch = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Demo\n+# DEMO\n";
    let mut calls = vec![
        ("git_status", json!({})),
        ("git_changes", json!({})),
        ("git_diff_structured", json!({})),
        ("git_diff_structured", json!({"ref": "HEAD~1"})),
        ("git_diff_structured", json!({"staged": true})),
        ("git_log_structured", json!({})),
        ("git_blame", json!({"path": "notes.txt"})),
        ("git_show", json!({"ref": "HEAD"})),
        ("git_show", json!({"ref": "HEAD:notes.txt"})),
        ("git_branches", json!({"all": true})),
        ("git_apply_patch", json!({"patch": patch})),
        ("git_apply_patch", json!({"patch": patch, "check": false})),
        ("git_commit", json!({"message": "x", "files": ["notes.txt"]})),
        ("git_push", json!({})),
        ("git_status", json!({"repo_path": "sub"})),
        ("git_changes", json!({"repo_path": "sub"})),
    ];
    let commands: [(&str, &[&str]); 44] = [
        ("status", &[]),
        ("diff", &[]),
        ("diff", &["HEAD~1"]),
        ("log", &["-p"]),
        ("log", &["--format=%G? %s"]),
        ("show", &[]),
        ("blame", &["README.md"]),
        ("branch", &[]),
        ("grep", &["a"]),
        ("describe", &["--always"]),
        ("ls-files", &["-m"]),
        ("cat-file", &["-p", "HEAD"]),
        ("shortlog", &["HEAD"]),
        ("reflog", &[]),
        ("remote", &["-v"]),
        ("diff-tree", &["-p", "HEAD"]),
        ("for-each-ref", &["--format=%(signature)"]),
        ("rev-parse", &["HEAD"]),
        ("worktree list", &[]),
        ("ls-tree", &["HEAD"]),
        ("name-rev", &["HEAD"]),
        ("merge-base", &["HEAD", "topic"]),
        ("add", &["-A"]),
        ("stash", &["-u"]),
        ("stash list", &["-p"]),
        ("stash pop", &[]),
        ("reset", &["--hard"]),
        ("checkout", &["topic"]),
        ("checkout", &["main"]),
        ("restore", &["--source=HEAD~1", "README.md"]),
        ("mv", &["README.md", "R.md"]),
        ("rm", &["-f", "R.md"]),
        ("commit", &["-am", "y"]),
        ("tag", &["-a", "-m", "t", "t1"]),
        ("switch", &["topic"]),
        ("commit", &["--allow-empty", "-m", "z"]),
        ("merge", &["main"]),
        ("rebase", &["main"]),
        ("cherry-pick", &["main"]),
        ("revert", &["HEAD"]),
        ("clean", &["-n"]),
        ("fetch", &[]),
        ("pull", &[]),
        ("push", &[]),
    ];
    calls.extend(commands.iter().map(|(command, args)| ("git", json!({"command": command, "args": args}))));
    for address in ["evil::x", "ext::sh -c true", "origin", "sub", "./sub", "."] {
        calls.push(("git", json!({"command": "fetch", "args": [address]})));
        calls.push(("git", json!({"command": "ls-remote", "args": [address]})));
    }
    calls
}

#[tokio::test]
async fn the_traps_are_real() {
    let desk = GitFixture::without_sandbox(allowed());
    hostile(&desk);
    let root = desk.root();
    let mut sprung = Vec::new();
    let inner =
        ["-c", "filter.evil.clean=", "-c", "filter.evil.process=", "-c", "filter.evil.required=false", "-c"];
    let inner =
        [&inner[..], &["filter.more.clean=", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]];
    let inner = [inner.concat(), vec!["add", "-A", "-n"]].concat();
    for args in [&inner[..], &["diff"], &["status"], &["add", "notes.txt"], &["log", "-1", "-p"], &["stash"]]
    {
        let _ = std::process::Command::new("git").args(args).current_dir(&root).output().unwrap();
        sprung.push(marked(&desk));
    }
    assert_eq!(sprung, [true; 6], "plain git walks into them");
}

#[tokio::test]
async fn no_tool_starts_a_program_of_the_repository() {
    let desk = GitFixture::without_sandbox(allowed());
    hostile(&desk);
    let _ = marked(&desk);
    let (mut worked, mut all) = (0, 0);
    for (tool, input) in calls() {
        let answer = desk.try_call(tool, input.clone()).await;
        assert!(!marked(&desk), "{tool} {input} started the program: {answer:?}");
        let fine = answer.as_ref().is_ok_and(|answer| answer.get("exit_code").is_none_or(|code| code == 0));
        (worked, all) = (worked + usize::from(fine), all + 1);
    }
    assert!(worked * 2 > all, "only {worked} of {all} calls worked, which proves little");
}

#[tokio::test]
async fn a_hostile_repository_of_the_workspace_is_served_without_its_programs() {
    let desk = GitFixture::without_sandbox(allowed());
    let program = canary(&desk);
    desk.demo();
    let root = desk.root();
    git(&root, &["commit", "-qam", "three"]);
    git(&root, &["clone", "-q", "--bare", ".", "evil.git"]);
    git(&root, &["clone", "-q", "evil.git", "mine"]);
    let bare = root.join("evil.git");
    for hook in HOOKS {
        std::fs::copy(&program, bare.join("hooks").join(hook)).unwrap();
    }
    for (key, value) in settings(&program).into_iter().filter(|(key, _)| !key.starts_with("remote.")) {
        git(&bare, &["config", "--file", "config", &key, &value]);
    }
    desk.write("mine/new.txt", "x\n");
    let _ = marked(&desk);
    desk.call("git_commit", json!({"message": "x", "files": ["new.txt"], "repo_path": "mine"})).await;
    for (tool, input) in [
        ("git_push", json!({"repo_path": "mine"})),
        ("git", json!({"command": "fetch", "repo_path": "mine"})),
        ("git", json!({"command": "pull", "repo_path": "mine"})),
        ("git", json!({"command": "push", "args": ["origin", "main:other"], "repo_path": "mine"})),
        ("git", json!({"command": "ls-remote", "repo_path": "mine"})),
        ("git", json!({"command": "clone", "args": ["evil.git", "again"]})),
        ("git_log_structured", json!({"repo_path": "evil.git"})),
    ] {
        let answer = desk.call(tool, input.clone()).await;
        assert!(answer.get("exit_code").is_none_or(|code| code == 0), "{tool} {input}: {answer}");
        assert!(!marked(&desk), "{tool} {input} started the program");
    }
    assert!(git(&bare, &["branch", "--list"]).contains("other"));
    desk.write("mine/new.txt", "y\n");
    git(&root.join("mine"), &["commit", "-qam", "y"]);
    let _ = std::process::Command::new("git").args(["push"]).current_dir(root.join("mine")).output().unwrap();
    assert!(marked(&desk), "plain git runs them");
}

/// The todo list of a foreign rebase may contain shell commands.
#[tokio::test]
async fn a_rebase_is_not_continued_with_commands_in_its_list() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    let program = canary(&desk);
    let root = desk.root();
    git(&root, &["commit", "-q", "-a", "-m", "Three"]);
    for list in [format!("exec {program}\n"), format!("pick HEAD\n\t x {program}\n")] {
        let editor = "sequence.editor=printf 'break\\n' >";
        git(&root, &["-c", editor, "rebase", "-q", "-i", "HEAD~1"]);
        std::fs::write(root.join(".git/rebase-merge/git-rebase-todo"), list).unwrap();
        for end in ["--continue", "--skip"] {
            let error = desk.try_call("git", json!({"command": "rebase", "args": [end]})).await.unwrap_err();
            assert_eq!(error.kind, octo_toolkit::Kind::Denied, "{end}: {error}");
        }
        assert!(!marked(&desk));
        let done = desk.try_call("git", json!({"command": "rebase", "args": ["--abort"]})).await.unwrap();
        assert_eq!(done["exit_code"], 0, "{done}");
    }
}

//! From an empty directory to a pushed branch, with the real git and the sandbox of this machine.

use super::{GitFixture, allowed, git};
use crate::GitSettings;
use octo_toolkit::Kind;
use serde_json::{Value, json};

async fn run(desk: &GitFixture, command: &str, args: &[&str], at: &str) -> Value {
    let answer = desk.call("git", json!({"command": command, "args": args, "repo_path": at})).await;
    assert_eq!(answer["exit_code"], 0, "git {command} {args:?}: {answer}");
    answer
}

#[tokio::test]
async fn a_repository_is_made_filled_cloned_pushed_and_pulled() {
    let desk = GitFixture::new(allowed());
    run(&desk, "init", &["--bare", "-b", "main", "origin.git"], ".").await;
    run(&desk, "clone", &["origin.git", "one"], ".").await;
    desk.write("one/a.txt", "1\n");
    let made = desk
        .call("git_commit", json!({"message": "First\n\nbody", "files": ["a.txt"], "repo_path": "one"}))
        .await;
    assert_eq!(
        (&made["files"], &made["branch"], &made["files_changed"]),
        (&json!(["a.txt"]), &json!("main"), &json!(1))
    );
    let log = desk.call("git_log_structured", json!({"repo_path": "one"})).await;
    let first = &log["commits"][0];
    assert_eq!(
        (&first["hash"], &first["body"], &first["author"]),
        (&made["commit"], &json!("body"), &json!("octoprox"))
    );

    let pushed = desk.call("git_push", json!({"repo_path": "one", "set_upstream": true})).await;
    assert_eq!((&pushed["updated"], &pushed["branch"]), (&json!(true), &json!("main")));
    let again = desk.call("git_push", json!({"repo_path": "one"})).await;
    assert_eq!(again["updated"], false);

    run(&desk, "clone", &["../origin.git"], "one").await;
    run(&desk, "switch", &["-c", "topic"], "one/origin").await;
    desk.write("one/origin/b.txt", "2\n");
    run(&desk, "add", &["-A"], "one/origin").await;
    run(&desk, "commit", &["-m", "Second"], "one/origin").await;
    run(&desk, "push", &["origin", "topic:main"], "one/origin").await;
    let fetched = run(&desk, "fetch", &[], "one").await;
    assert!(fetched["stderr"].as_str().unwrap().contains("main"), "{fetched}");
    let status = desk.call("git_status", json!({"repo_path": "one"})).await;
    assert_eq!((&status["behind"], &status["upstream"]), (&json!(1), &json!("origin/main")));
    run(&desk, "pull", &["--ff-only"], "one").await;
    assert_eq!(std::fs::read_to_string(desk.root().join("one/b.txt")).unwrap(), "2\n");
    let heads = run(&desk, "ls-remote", &["--heads", "origin"], "one").await;
    assert!(heads["stdout"].as_str().unwrap().contains("refs/heads/main"));
}

#[tokio::test]
async fn branches_are_merged_rebased_picked_stashed_and_reset() {
    let desk = GitFixture::new(allowed());
    desk.demo();
    run(&desk, "stash", &["-m", "later"], ".").await;
    assert_eq!(desk.call("git_status", json!({})).await["stashes"], 1);
    run(&desk, "stash show", &["-p"], ".").await;
    run(&desk, "checkout", &["-b", "topic"], ".").await;
    desk.write("t.txt", "t\n");
    run(&desk, "add", &["t.txt"], ".").await;
    run(&desk, "commit", &["-qm", "Topic\n\nlines"], ".").await;
    run(&desk, "checkout", &["main"], ".").await;
    desk.write("m.txt", "m\n");
    desk.call("git_commit", json!({"message": "Main", "files": ["m.txt"]})).await;
    run(&desk, "merge", &["--no-ff", "-m", "Merge it", "topic"], ".").await;
    let log = desk.call("git_log_structured", json!({"max_count": 1})).await;
    assert_eq!(log["commits"][0]["parents"].as_array().unwrap().len(), 2);
    let reset = run(&desk, "reset", &["--hard", "HEAD~1"], ".").await;
    assert!(reset["warning"].as_str().unwrap().contains("lost"), "{reset}");
    run(&desk, "cherry-pick", &["topic"], ".").await;
    run(&desk, "revert", &["--no-edit", "HEAD"], ".").await;
    run(&desk, "switch", &["topic"], ".").await;
    run(&desk, "rebase", &["main"], ".").await;
    run(&desk, "tag", &["-a", "-m", "A tag", "v1"], ".").await;
    run(&desk, "describe", &[], ".").await;
    run(&desk, "stash pop", &["stash@{0}"], ".").await;
    let restored = run(&desk, "restore", &["notes.txt"], ".").await;
    assert!(restored["warning"].is_string());
    run(&desk, "mv", &["m.txt", "n.txt"], ".").await;
    run(&desk, "rm", &["--cached", "n.txt"], ".").await;
    desk.write("rubbish", "");
    let told = run(&desk, "clean", &["-d"], ".").await;
    assert!(
        told["stdout"].as_str().unwrap().contains("Would remove") && desk.root().join("rubbish").exists()
    );
    run(&desk, "clean", &["-fd", "rubbish"], ".").await;
    assert!(!desk.root().join("rubbish").exists());
}

#[tokio::test]
async fn every_reading_subcommand_works() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    git(&desk.root(), &["remote", "add", "origin", "https://u:secret@example.org/x.git"]);
    git(&desk.root(), &["stash", "-q"]);
    let rows: [(&str, &[&str], &str); 30] = [
        ("status", &["-sb"], "## main"),
        ("diff", &["--stat", "HEAD~1", "notes.txt"], "notes.txt"),
        ("diff", &["HEAD~1..HEAD", "--", "notes.txt"], "+gamma"),
        ("log", &["--oneline", "-1"], "Say more"),
        ("log", &["-L1,2:notes.txt"], "alpha"),
        ("show", &["HEAD:README.md"], "# Demo"),
        ("show", &["--stat"], "notes.txt"),
        ("branch", &["-vv"], "main"),
        ("branch", &["--list", "m*"], "main"),
        ("tag", &[], ""),
        ("rev-parse", &["--abbrev-ref", "HEAD"], "main"),
        ("rev-parse", &["--verify", "HEAD"], ""),
        ("remote", &["-v"], "***@example.org"),
        ("remote get-url", &["origin"], "***@example.org"),
        ("remote show", &["origin"], "origin"),
        ("blame", &["HEAD", "notes.txt"], "gamma"),
        ("blame", &["-L", "1,1", "--", "notes.txt"], "alpha"),
        ("shortlog", &["-sn", "HEAD"], "Ann"),
        ("describe", &["--always"], ""),
        ("ls-files", &["src"], "src/main.rs"),
        ("ls-tree", &["-r", "HEAD", "--", "src"], "main.rs"),
        ("ls-tree", &["HEAD"], "README.md"),
        ("cat-file", &["-t", "HEAD"], "commit"),
        ("reflog", &["-n", "1"], "HEAD@{0}"),
        ("merge-base", &["HEAD", "HEAD~1"], ""),
        ("diff-tree", &["-r", "HEAD"], "notes.txt"),
        ("name-rev", &["HEAD"], "main"),
        ("for-each-ref", &["refs/heads"], "refs/heads/main"),
        ("grep", &["-n", "gamma", "HEAD"], "notes.txt:3:gamma"),
        ("worktree list", &[], "main"),
    ];
    for (command, args, wanted) in rows {
        let answer = run(&desk, command, args, ".").await;
        let out = answer["stdout"].as_str().unwrap();
        assert!(out.contains(wanted), "git {command} {args:?}: {answer}");
        assert!(!out.contains("secret"), "git {command} {args:?}: {answer}");
    }
    run(&desk, "stash list", &[], ".").await;
    run(&desk, "stash show", &["--stat", "stash@{0}"], ".").await;
    let cut = desk.call("git", json!({"command": "log", "max_bytes": 10})).await;
    assert_eq!((&cut["truncated"], cut["stdout"].as_str().unwrap().len()), (&json!(true), 10));
    let failed = desk.call("git", json!({"command": "show", "args": ["nothing"]})).await;
    assert_ne!(failed["exit_code"], 0);
}

#[tokio::test]
async fn commits_take_exactly_what_is_named() {
    let desk = GitFixture::new(GitSettings { user_name: Some("Bot = x".to_owned()), ..allowed() });
    desk.demo();
    desk.write("new.txt", "x\n");
    desk.write("other.txt", "y\n");
    git(&desk.root(), &["add", "other.txt"]);
    let made = desk.call("git_commit", json!({"message": "--amend\n# kept", "files": ["new.txt"]})).await;
    assert_eq!(made["files"], json!(["new.txt"]));
    let status = desk.call("git_status", json!({})).await;
    assert_eq!(status["staged"], json!([{"path": "other.txt", "status": "added"}]));
    assert_eq!(git(&desk.root(), &["log", "-1", "--format=%an|%B"]).trim_end(), "Bot = x|--amend\n# kept");
    let staged = desk.call("git_commit", json!({"message": "Staged"})).await;
    assert_eq!(staged["files"], json!(["other.txt"]));
    std::fs::remove_file(desk.root().join("README.md")).unwrap();
    let all = desk.call("git_commit", json!({"message": "All", "all": true})).await;
    assert_eq!(all["files"], json!(["README.md", "notes.txt"]));
    let nothing = desk.try_call("git_commit", json!({"message": "Nothing"})).await.unwrap_err();
    assert_eq!(nothing.message, "Nothing to commit.");
    desk.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    desk.write("new.txt", "z\n");
    let hooked = desk.call("git_commit", json!({"message": "Hooks", "all": true})).await;
    assert!(hooked["note"].as_str().unwrap().contains("hooks"));
}

#[tokio::test]
async fn nothing_is_committed_or_pushed_until_allowed() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    desk.write("new.txt", "x\n");
    git(&desk.root(), &["remote", "add", "origin", "git@example.org:x.git"]);
    let head = git(&desk.root(), &["rev-parse", "HEAD"]);
    let rows =
        [json!({"message": "x", "files": ["new.txt", "notes.txt"]}), json!({"message": "x", "all": true})];
    for (input, files) in rows.into_iter().zip([json!(["new.txt", "notes.txt"]), json!(["notes.txt"])]) {
        let would = desk.call("git_commit", input).await;
        assert_eq!((&would["dry_run"], &would["files"], would.get("commit")), (&json!(true), &files, None));
        assert!(would["note"].as_str().unwrap().contains("git.allow_commit"));
    }
    assert!(desk.try_call("git_commit", json!({"message": "x"})).await.is_err(), "nothing is staged");
    let push = desk.call("git_push", json!({})).await;
    assert_eq!((&push["dry_run"], push["commits"].as_array().unwrap().len()), (&json!(true), 2));
    assert!(push["note"].as_str().unwrap().contains("git.allow_push"));
    for (command, args) in [
        ("commit", json!(["-am", "x"])),
        ("merge", json!(["HEAD~1"])),
        ("revert", json!(["HEAD"])),
        ("cherry-pick", json!(["HEAD"])),
        ("rebase", json!(["HEAD~1"])),
        ("pull", json!([])),
        ("push", json!([])),
        ("push", json!(["--force", "origin", "main"])),
    ] {
        let would = desk.call("git", json!({"command": command, "args": args})).await;
        assert_eq!(would["dry_run"], true, "{command}: {would}");
        assert!(would["note"].as_str().unwrap().contains("git.allow_"), "{command}");
    }
    assert_eq!(git(&desk.root(), &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&desk.root(), &["diff", "--cached", "--name-only"]), "");
}

#[tokio::test]
async fn a_short_log_without_a_revision_is_of_the_branch() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    for args in [&["-sn"][..], &["-s", "--all"], &["-s", "HEAD"]] {
        let log = run(&desk, "shortlog", args, ".").await;
        assert!(log["stdout"].as_str().unwrap().contains("2\tAnn"), "{args:?}: {log}");
    }
}

#[tokio::test]
async fn what_stops_at_a_conflict_is_continued_or_given_up() {
    let desk = GitFixture::new(allowed());
    desk.demo();
    let root = desk.root();
    git(&root, &["commit", "-q", "-a", "-m", "Ours"]);
    git(&root, &["checkout", "-q", "-b", "topic", "HEAD~1"]);
    desk.write("notes.txt", "alpha\nbeta\ngamma\nepsilon\n");
    git(&root, &["commit", "-q", "-a", "-m", "Theirs"]);
    for (command, name) in
        [("merge", "merge"), ("rebase", "rebase"), ("cherry-pick", "cherry-pick"), ("revert", "revert")]
    {
        let other = if command == "revert" { "main~1" } else { "main" };
        for end in ["--abort", "--continue"] {
            git(&root, &["checkout", "-q", "-B", "try", "topic"]);
            let stopped = desk.call("git", json!({"command": command, "args": [other]})).await;
            assert_ne!(stopped["exit_code"], 0, "{command}: {stopped}");
            assert_eq!(desk.call("git_status", json!({})).await["in_progress"], name, "{stopped}");
            if end == "--continue" {
                desk.write("notes.txt", &format!("resolved by {command}\n"));
                run(&desk, "add", &["notes.txt"], ".").await;
            }
            run(&desk, command, &[end], ".").await;
            let status = desk.call("git_status", json!({})).await;
            assert!(status["in_progress"].is_null() && status["clean"] == true, "{command} {end}: {status}");
        }
    }
}

#[tokio::test]
async fn settings_that_people_have_break_nothing() {
    let desk = GitFixture::new(allowed());
    desk.demo();
    for (key, value) in [
        ("gpg.format", "ssh"),
        ("gpg.minTrustLevel", "fully"),
        ("commit.gpgSign", "true"),
        ("apply.whitespace", "fix"),
        ("apply.ignoreWhitespace", "change"),
        ("format.pretty", "oneline"),
    ] {
        git(&desk.root(), &["config", key, value]);
    }
    let log = run(&desk, "log", &["-n", "1"], ".").await;
    assert!(log["stdout"].as_str().unwrap().contains("Say more"), "{log}");
    let patch = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,2 +1,2 @@\n-alpha\n+ALPHA\n beta\n";
    desk.call("git_apply_patch", json!({"patch": patch, "check": false})).await;
    let made = desk.call("git_commit", json!({"message": "Three", "all": true})).await;
    assert_eq!(made["files"], json!(["notes.txt"]));
}

#[tokio::test]
async fn patches_apply_whole_or_not_at_all() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let good = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,2 +1,2 @@\n-alpha\n+ALPHA\n beta\n";
    let miscounted = "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,9 +1,7 @@\n-alpha\n+ALPHA\n beta\n gamma";
    let half = format!("{good}--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-wrong\n+x\n");
    let notes = || std::fs::read_to_string(desk.root().join("notes.txt")).unwrap();
    let before = notes();
    let checked = desk.call("git_apply_patch", json!({"patch": good})).await;
    assert_eq!(checked, json!({"applied": false, "files": ["notes.txt"]}));
    let error = desk.try_call("git_apply_patch", json!({"patch": half, "check": false})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Conflict, "{error}");
    assert_eq!(notes(), before, "nothing of a patch that does not fit is applied");
    let applied = desk.call("git_apply_patch", json!({"patch": miscounted, "check": false})).await;
    assert_eq!((&applied["applied"], applied["note"].is_string()), (&json!(true), true));
    assert!(notes().starts_with("ALPHA\n"));
    desk.call("git_apply_patch", json!({"patch": good, "check": false, "reverse": true})).await;
    assert_eq!(notes(), before);
    let new = "--- /dev/null\n+++ b/new dir/x.txt\n@@ -0,0 +1 @@\n+x\n";
    let made = desk.call("git_apply_patch", json!({"patch": new, "check": false})).await;
    assert_eq!(made["files"], json!(["new dir/x.txt"]));
    for bad in ["nonsense", "--- a/x\n+++ b/x\n", "--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +1 @@\n-a\n+b\n"] {
        assert!(desk.try_call("git_apply_patch", json!({"patch": bad})).await.is_err(), "{bad}");
    }
    let secret = "--- /dev/null\n+++ b/conf/.env\n@@ -0,0 +1 @@\n+KEY=1\n";
    let error = desk.try_call("git_apply_patch", json!({"patch": secret, "check": false})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error:?}");
}

//! SEC-GIT-04, SEC-GIT-05: nothing outside the roots is used, created or read.

use super::{GitFixture, allowed, git};
use octo_toolkit::Kind;
use serde_json::json;
use std::os::unix::fs::symlink;

/// A repository beside the root.
fn outside(desk: &GitFixture) -> String {
    let place = desk.outside_dir();
    git(&place, &["init", "-q", "-b", "main"]);
    std::fs::write(place.join("secret.txt"), "hidden words\n").unwrap();
    git(&place, &["add", "."]);
    git(&place, &["commit", "-q", "-m", "Secret"]);
    place.to_string_lossy().into_owned()
}

async fn denied(desk: &GitFixture, what: &str) {
    for tool in ["git_status", "git_log_structured", "git_branches", "git_changes"] {
        let error =
            desk.try_call(tool, json!({"repo_path": "r"})).await.expect_err(&format!("{what}: {tool}"));
        assert!(matches!(error.kind, Kind::Denied | Kind::NotFound), "{what} {tool}: {error}");
        assert!(!error.text().contains("hidden words") && !error.text().contains("beside"), "{error}");
    }
    std::fs::remove_dir_all(desk.root().join("r")).unwrap();
}

#[tokio::test]
async fn repositories_with_parts_outside_are_refused() {
    let desk = GitFixture::without_sandbox(allowed());
    let beside = outside(&desk);
    let fresh = || {
        std::fs::create_dir_all(desk.root().join("r")).unwrap();
        git(&desk.root().join("r"), &["init", "-q", "-b", "main"]);
    };

    desk.write("r/.git", &format!("gitdir: {beside}/.git\n"));
    denied(&desk, "a .git file").await;
    desk.write("r/.git", "gitdir: ../../beside/.git\n");
    denied(&desk, "a relative .git file").await;
    std::fs::create_dir_all(desk.root().join("r")).unwrap();
    symlink(format!("{beside}/.git"), desk.root().join("r/.git")).unwrap();
    denied(&desk, "a linked .git").await;
    fresh();
    desk.write("r/.git/objects/info/alternates", &format!("{beside}/.git/objects\n"));
    denied(&desk, "alternates").await;
    fresh();
    desk.write("r/.git/commondir", &format!("{beside}/.git\n"));
    denied(&desk, "a common folder").await;
    for part in ["objects", "refs", "config"] {
        fresh();
        let place = desk.root().join("r/.git").join(part);
        if part == "config" {
            std::fs::remove_file(&place).unwrap()
        } else {
            std::fs::remove_dir_all(&place).unwrap()
        }
        symlink(format!("{beside}/.git/{part}"), place).unwrap();
        denied(&desk, part).await;
    }
}

#[tokio::test]
async fn a_repository_above_the_root_is_not_used() {
    let desk = GitFixture::new(allowed());
    git(desk.root().parent().unwrap(), &["init", "-q"]);
    std::fs::create_dir_all(desk.root().join("a/b")).unwrap();
    let error = desk.try_call("git_status", json!({"repo_path": "a/b"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    assert!(desk.try_call("git_status", json!({"repo_path": ".."})).await.is_err());
    assert!(desk.try_call("git", json!({"command": "status", "repo_path": "a"})).await.is_err());
}

#[tokio::test]
async fn worktrees_and_alternates_inside_the_root_are_fine() {
    let desk = GitFixture::new(allowed());
    desk.demo();
    git(&desk.root(), &["worktree", "add", "-q", "-b", "side", "tree"]);
    git(&desk.root(), &["clone", "-q", "--shared", ".", "shared"]);
    assert_eq!(desk.call("git_status", json!({"repo_path": "tree"})).await["branch"], "side");
    assert_eq!(desk.call("git_status", json!({"repo_path": "shared"})).await["branch"], "main");
}

#[tokio::test]
async fn the_settings_of_a_repository_do_not_move_its_work_tree() {
    let desk = GitFixture::new(allowed());
    desk.demo();
    let beside = outside(&desk);
    git(&desk.root(), &["config", "core.worktree", &beside]);
    let status = desk.call("git_status", json!({})).await;
    assert_eq!(status["unstaged"], json!([{"path": "notes.txt", "status": "modified"}]));
    assert!(!status.to_string().contains("secret"));
}

#[tokio::test]
async fn a_folder_that_looks_bare_has_no_work_tree_elsewhere() {
    let desk = GitFixture::without_sandbox(allowed());
    let beside = outside(&desk);
    desk.demo();
    std::fs::rename(desk.root().join(".git"), desk.root().join("odd")).unwrap();
    git(&desk.root().join("odd"), &["config", "core.worktree", &beside]);
    for (command, args) in [("status", json!([])), ("add", json!(["."])), ("restore", json!(["."]))] {
        let call = json!({"command": command, "args": args, "repo_path": "odd"});
        let error = desk.try_call("git", call).await.expect_err(command);
        assert_eq!(error.kind, Kind::Denied, "{command}: {error}");
    }
    assert!(!desk.outside_dir().join("notes.txt").exists());
}

#[tokio::test]
async fn repositories_are_made_and_cloned_only_beneath_a_root() {
    let desk = GitFixture::without_sandbox(allowed());
    let beside = outside(&desk);
    desk.demo();
    symlink(&beside, desk.root().join("link")).unwrap();
    let new = format!("{beside}/new");
    for (command, args) in [
        ("init", json!([new])),
        ("init", json!(["../beside/new"])),
        ("init", json!(["link/new"])),
        ("init", json!([".git/new"])),
        ("clone", json!([".", new])),
        ("clone", json!([".", "../beside/new"])),
        ("clone", json!([".", "link/new"])),
        ("clone", json!([beside, "got"])),
        ("clone", json!([format!("file://{beside}"), "got"])),
        ("clone", json!(["../beside", "got"])),
        ("clone", json!(["link", "got"])),
        ("clone", json!([".", ".github"])),
        ("clone", json!([".", "notes/.GITHUB"])),
        ("fetch", json!([beside])),
        ("fetch", json!([format!("file://{beside}")])),
        ("pull", json!([beside, "main"])),
        ("push", json!([beside, "main:other"])),
        ("ls-remote", json!([beside])),
        ("remote add", json!(["evil", beside])),
    ] {
        let error = desk.try_call("git", json!({"command": command, "args": args})).await;
        let error = error.expect_err(&format!("{command} {args}"));
        assert!(!error.text().contains("hidden words"), "{error}");
    }
    git(&desk.root(), &["remote", "add", "evil", &beside]);
    for (command, args) in [
        ("fetch", json!(["evil"])),
        ("push", json!(["evil", "main:other"])),
        ("pull", json!(["evil", "main"])),
    ] {
        let done = desk.try_call("git", json!({"command": command, "args": args})).await;
        assert!(done.is_err(), "{command} {args}: {done:?}");
    }
    assert!(desk.try_call("git_push", json!({"remote": "evil"})).await.is_err());
    assert!(!desk.outside_dir().join("new").exists() && !desk.root().join("got").exists());
    assert!(!desk.root().join(".github").exists());
    assert_eq!(git(&desk.outside_dir(), &["branch", "--list"]).trim(), "* main");
}

#[tokio::test]
async fn files_outside_are_never_added() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    outside(&desk);
    let secret = desk.outside_dir().join("secret.txt");
    symlink(desk.outside_dir(), desk.root().join("folder")).unwrap();
    let objects = || git(&desk.root(), &["count-objects"]);
    let before = objects();
    let absolute = secret.to_string_lossy().into_owned();
    for path in
        ["../beside/secret.txt", &absolute, "folder/secret.txt", "src/../../beside/secret.txt", ".git/config"]
    {
        for (tool, input) in [
            ("git", json!({"command": "add", "args": [path]})),
            ("git", json!({"command": "add", "args": ["-f", "--", path]})),
            ("git_commit", json!({"message": "x", "files": [path]})),
        ] {
            let answer = desk.try_call(tool, input.clone()).await;
            let failed =
                answer.as_ref().is_err() || answer.as_ref().is_ok_and(|answer| answer["exit_code"] != 0);
            assert!(failed, "{tool} {input}: {answer:?}");
        }
        let paths = json!({"paths": [path]});
        let read = desk.try_call("git_diff_structured", paths).await.map(|answer| answer.to_string());
        assert!(!read.unwrap_or_default().contains("hidden words"));
    }
    assert_eq!(objects(), before, "no blob was made");
}

#[tokio::test]
async fn patches_stay_in_the_work_tree() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    symlink(desk.outside_dir(), desk.root().join("folder")).unwrap();
    for path in ["../beside/x.txt", "folder/x.txt", ".git/hooks/pre-commit", ".git/config", "/tmp/x.txt"] {
        let patch = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
        let link = "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../beside\n\\ No newline at end of file\n";
        let through = format!(
            "{link}diff --git a/l/x.txt b/l/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/l/x.txt\n@@ -0,0 +1 @@\n+x\n"
        );
        for patch in [patch, through] {
            let done = desk.try_call("git_apply_patch", json!({"patch": patch, "check": false})).await;
            assert!(done.is_err(), "{path}: {done:?}");
        }
    }
    assert!(!desk.outside_dir().join("x.txt").exists());
    assert!(!desk.root().join(".git/hooks/pre-commit").exists());
}

//! Replies of the reading tools.

use super::{GitFixture, git};
use crate::GitSettings;
use octo_toolkit::Kind;
use serde_json::{Value, json};

#[tokio::test]
async fn the_examples_work_in_the_demo_repository() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    for tool in desk.tools() {
        assert!(!tool.examples.is_empty(), "{}", tool.name);
        for example in &tool.examples {
            let answer = desk.call(tool.name, example.input.to().unwrap()).await;
            if let Some(wanted) = &example.output {
                assert_eq!(answer, wanted.to::<Value>().unwrap(), "{}: {}", tool.name, example.purpose);
            }
        }
    }
    let key = desk.call("ssh_public_key", json!({})).await;
    assert_eq!(key["public_key"], desk.key.public().unwrap());
}

#[tokio::test]
async fn status_names_every_kind_of_change() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    desk.write("new.txt", "x");
    desk.write("staged.txt", "x");
    git(&desk.root(), &["add", "staged.txt"]);
    git(&desk.root(), &["mv", "README.md", "READ ME.md"]);
    let status = desk.call("git_status", json!({})).await;
    assert_eq!(status["branch"], "main");
    assert_eq!(
        status["staged"],
        json!([{"path": "READ ME.md", "status": "renamed", "old_path": "README.md"}, {"path": "staged.txt", "status": "added"}])
    );
    assert_eq!(status["unstaged"], json!([{"path": "notes.txt", "status": "modified"}]));
    assert_eq!(status["untracked"], json!(["new.txt"]));
    assert_eq!(
        (&status["ahead"], &status["behind"], &status["clean"]),
        (&json!(0), &json!(0), &json!(false))
    );
    let below = desk.call("git_status", json!({"repo_path": "src"})).await;
    assert_eq!(below["staged"], status["staged"], "a folder of the repository is as good as its top");
}

#[tokio::test]
async fn diffs_have_files_hunks_and_totals() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let diff = desk.call("git_diff_structured", json!({})).await;
    assert_eq!(diff["stats"], json!({"files_changed": 1, "insertions": 1, "deletions": 0}));
    let file = &diff["files"][0];
    assert_eq!(
        (&file["path"], &file["status"], &file["additions"]),
        (&json!("notes.txt"), &json!("modified"), &json!(1))
    );
    assert_eq!(
        file["hunks"],
        json!([{"header": "@@ -1,3 +1,4 @@", "lines": [" alpha", " beta", " gamma", "+delta"]}])
    );
    assert_eq!(diff["truncated"], false);
    let staged = desk.call("git_diff_structured", json!({"staged": true})).await;
    assert_eq!(staged["files"], json!([]));
    let range = desk.call("git_diff_structured", json!({"ref": "HEAD~1..HEAD", "context": 0})).await;
    assert_eq!(range["files"][0]["hunks"][0]["lines"], json!(["+gamma"]));
    let list = desk.call("git_diff_structured", json!({"max_hunks": 0})).await;
    assert_eq!((&list["truncated"], &list["files"][0]["hunks_omitted"]), (&json!(true), &json!(1)));
    let none = desk.call("git_diff_structured", json!({"paths": ["src"]})).await;
    assert_eq!(none["files"], json!([]));
    let below =
        desk.call("git_diff_structured", json!({"repo_path": "src", "paths": ["../notes.txt"]})).await;
    assert_eq!(below["stats"]["files_changed"], 1);
    let changes = desk.call("git_changes", json!({})).await;
    assert_eq!(changes["unstaged_diff"]["files"], diff["files"]);
    assert_eq!(
        (&changes["staged_diff"]["files"], &changes["status"]["branch"]),
        (&json!([]), &json!("main"))
    );
}

#[tokio::test]
async fn diffs_do_not_depend_on_the_repositorys_settings() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let before = desk.call("git_diff_structured", json!({})).await;
    for setting in [
        ["diff.noprefix", "true"],
        ["diff.mnemonicPrefix", "true"],
        ["color.ui", "always"],
        ["diff.context", "0"],
        ["diff.wsErrorHighlight", "all"],
        ["diff.external", "true"],
        ["diff.orderFile", "/nonexistent"],
        ["diff.relative", "true"],
        ["core.quotePath", "true"],
        ["core.pager", "less"],
    ] {
        git(&desk.root(), &["config", setting[0], setting[1]]);
    }
    assert_eq!(desk.call("git_diff_structured", json!({"repo_path": "src"})).await, before);
}

#[tokio::test]
async fn conflicts_are_shown_in_status_and_diff() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let root = desk.root();
    git(&root, &["commit", "-qam", "three"]);
    git(&root, &["checkout", "-q", "-b", "other", "HEAD~1"]);
    desk.write("notes.txt", "alpha\nbeta\ngamma\nomega\n");
    git(&root, &["commit", "-qam", "four"]);
    let _ = std::process::Command::new("git").args(["merge", "main"]).current_dir(&root).output().unwrap();
    let status = desk.call("git_status", json!({})).await;
    assert_eq!(status["conflicts"], json!([{"path": "notes.txt", "status": "unmerged"}]));
    assert_eq!(status["in_progress"], "merge");
    let diff = desk.call("git_diff_structured", json!({})).await;
    assert_eq!(diff["files"].as_array().unwrap().len(), 1, "{diff}");
    assert!(diff["files"][0]["hunks"].to_string().contains("+>>>>>>> main"), "{diff}");
}

#[tokio::test]
async fn the_log_pages_and_filters() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let first = desk.call("git_log_structured", json!({"max_count": 1})).await;
    assert_eq!((&first["commits"][0]["message"], &first["next"]), (&json!("Say more"), &json!(1)));
    let commit = &first["commits"][0];
    assert_eq!((&commit["author"], &commit["email"]), (&json!("Ann"), &json!("ann@example.org")));
    assert_eq!((&commit["files_changed"], &commit["insertions"]), (&json!(1), &json!(1)));
    let second = desk.call("git_log_structured", json!({"max_count": 1, "skip": 1})).await;
    assert_eq!((&second["commits"][0]["message"], second.get("next")), (&json!("Begin"), None));
    let rows = [
        (json!({"max_count": 2}), 2),
        (json!({"author": "ann"}), 2),
        (json!({"author": "A.n"}), 0),
        (json!({"author": "--output=x"}), 0),
        (json!({"path": "README.md"}), 1),
        (json!({"message": "say MORE"}), 1),
        (json!({"since": "2098-01-01"}), 0),
        (json!({"ref": "HEAD~1"}), 1),
    ];
    for (input, count) in rows {
        let log = desk.call("git_log_structured", input.clone()).await;
        assert_eq!(log["commits"].as_array().unwrap().len(), count, "{input}");
    }
}

#[tokio::test]
async fn blame_sums_up_by_commit() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let blame = desk.call("git_blame", json!({"path": "notes.txt"})).await;
    let authors: Vec<_> =
        blame["lines"].as_array().unwrap().iter().map(|line| line["author"].clone()).collect();
    assert_eq!(authors, ["Ann", "Ann", "Ann", "Not Committed Yet"]);
    assert_eq!(
        (&blame["commits"][0]["summary"], &blame["commits"][0]["lines"]),
        (&json!("Begin"), &json!(2))
    );
    let part = desk
        .call("git_blame", json!({"path": "notes.txt", "start_line": 2, "end_line": 3, "ref": "HEAD"}))
        .await;
    assert_eq!(part["lines"].as_array().unwrap().len(), 2);
    assert_eq!(part["lines"][0]["line_number"], 2);
    let many: String = (0..1_500).map(|at| format!("line {at}\n")).collect();
    desk.write("many.txt", &many);
    git(&desk.root(), &["add", "many.txt"]);
    git(&desk.root(), &["commit", "-q", "-m", "Many"]);
    let long = desk.call("git_blame", json!({"path": "many.txt"})).await;
    assert_eq!((long["lines"].as_array().unwrap().len(), &long["next"]), (1_000, &json!(1_001)));
    let rest = desk.call("git_blame", json!({"path": "many.txt", "start_line": 1_001})).await;
    assert_eq!((rest["lines"].as_array().unwrap().len(), rest.get("next")), (500, None));
    desk.write("empty.txt", "");
    git(&desk.root(), &["add", "empty.txt"]);
    let empty = desk.call("git_blame", json!({"path": "empty.txt"})).await;
    assert_eq!(empty["lines"], json!([]));
}

#[tokio::test]
async fn show_gives_commits_and_files_and_says_when_it_cuts() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let commit = desk.call("git_show", json!({"ref": "HEAD"})).await;
    assert!(commit["content"].as_str().unwrap().contains("+gamma"), "{commit}");
    let file = desk.call("git_show", json!({"ref": "HEAD~1:notes.txt"})).await;
    assert_eq!((&file["content"], &file["truncated"]), (&json!("alpha\nbeta\n"), &json!(false)));
    let cut = desk.call("git_show", json!({"ref": "HEAD~1:notes.txt", "max_bytes": 5})).await;
    assert_eq!((&cut["content"], &cut["truncated"]), (&json!("alpha"), &json!(true)));
    let gone = desk.try_call("git_show", json!({"ref": "HEAD:nothing"})).await.unwrap_err();
    assert_eq!(gone.kind, Kind::NotFound);
}

#[tokio::test]
async fn branches_show_the_present_one_and_upstreams() {
    let desk = GitFixture::new(GitSettings::default());
    desk.demo();
    let root = desk.root();
    git(&root, &["clone", "-q", "--bare", ".", "origin.git"]);
    git(&root, &["remote", "add", "origin", "origin.git"]);
    git(&root, &["fetch", "-q", "origin"]);
    git(&root, &["branch", "-q", "-u", "origin/main"]);
    git(&root, &["commit", "-qam", "three"]);
    git(&root, &["branch", "topic"]);
    let here = desk.call("git_branches", json!({})).await;
    assert_eq!((&here["current"], here["branches"].as_array().unwrap().len()), (&json!("main"), 2));
    let main = here["branches"].as_array().unwrap().iter().find(|branch| branch["name"] == "main").unwrap();
    assert_eq!(
        (&main["current"], &main["upstream"], &main["ahead"]),
        (&json!(true), &json!("origin/main"), &json!(1))
    );
    let all = desk.call("git_branches", json!({"all": true})).await;
    assert!(all["branches"].to_string().contains("\"origin/main\""), "{all}");
    let bare = desk.call("git_branches", json!({"repo_path": "origin.git"})).await;
    assert_eq!(bare["branches"].as_array().unwrap().len(), 1, "a bare repository can be read");
}

#[tokio::test]
async fn a_repository_without_commits_is_no_error() {
    let desk = GitFixture::new(GitSettings::default());
    git(&desk.root(), &["init", "-q", "-b", "main"]);
    desk.write("a", "x");
    assert_eq!(desk.call("git_log_structured", json!({})).await["commits"], json!([]));
    assert_eq!(desk.call("git_branches", json!({})).await["branches"], json!([]));
    assert_eq!(desk.call("git_changes", json!({})).await["status"]["untracked"], json!(["a"]));
    let none = GitFixture::new(GitSettings::default()).try_call("git_status", json!({})).await.unwrap_err();
    assert_eq!(none.kind, Kind::NotFound);
}

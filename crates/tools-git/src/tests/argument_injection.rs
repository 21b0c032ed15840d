//! SEC-GIT-01, SEC-GIT-02: no caller input becomes an option or a program.

use super::{GitFixture, allowed, git};
use serde_json::{Value, json};

const HOSTILE_STRINGS: [&str; 12] = [
    "-x",
    "--output=p",
    "--upload-pack=touch canary",
    "--receive-pack=touch canary",
    "--ext-diff",
    "-c core.pager=touch${IFS}canary",
    "ext::sh -c touch% canary",
    "$(touch canary)",
    "`touch canary`; touch canary",
    "a\ntouch canary",
    "a\0b",
    "-oProxyCommand=touch canary",
];

/// A valid call of each tool.
fn base(tool: &str) -> Value {
    match tool {
        "git_blame" => json!({"path": "notes.txt"}),
        "git" => json!({"command": "log", "args": []}),
        "git_show" => json!({"ref": "HEAD"}),
        "git_apply_patch" => json!({"patch": "--- a/x\n+++ b/x\n", "check": false}),
        "git_commit" => json!({"message": "m", "files": ["nothing"]}),
        _ => json!({}),
    }
}

/// What a call must not create: the canary, or a file named like an option's value.
fn untouched(desk: &GitFixture, what: &str) {
    for place in [desk.root(), desk.outside_dir(), desk.root().join(".git"), desk.root().join("src")] {
        for name in ["canary", "p", "x"] {
            assert!(!place.join(name).exists(), "{what} made {name}");
        }
    }
}

#[tokio::test]
async fn no_string_of_any_tool_becomes_an_option() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    let mut tried = 0;
    for tool in desk.tools() {
        let definition: Value = tool.definition.to_json().to().unwrap();
        for (name, field) in definition["inputSchema"]["properties"].as_object().unwrap() {
            for hostile in HOSTILE_STRINGS {
                let value = match field["type"].as_str() {
                    Some("string") => json!(hostile),
                    Some("array") => json!([hostile]),
                    _ => continue,
                };
                let mut input = base(tool.name);
                // A commit's message may be anything; the file does not exist, so nothing is committed.
                input[name] = value;
                let answer = desk.try_call(tool.name, input.clone()).await;
                let refused = answer.as_ref().is_err_and(|error| error.kind != octo_toolkit::Kind::Internal);
                assert!(refused || answer.is_ok(), "{} {input}: {answer:?}", tool.name);
                untouched(&desk, &format!("{} {input}", tool.name));
                tried += 1;
            }
        }
    }
    assert!(tried > 250, "only {tried} strings were tried");
}

#[tokio::test]
async fn no_argument_of_any_subcommand_becomes_an_option() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    for command in ["log", "fetch", "clone", "grep", "remote add"] {
        for hostile in HOSTILE_STRINGS {
            for args in [json!([hostile]), json!(["--", hostile]), json!(["o", hostile])] {
                let input = json!({"command": command, "args": args});
                let _ = desk.try_call("git", input.clone()).await;
                untouched(&desk, &input.to_string());
            }
        }
    }
}

#[tokio::test]
async fn refs_named_like_options_have_no_effect() {
    let desk = GitFixture::without_sandbox(allowed());
    desk.demo();
    let head = git(&desk.root(), &["rev-parse", "HEAD"]);
    for name in ["--output=p", "--format=%H", "-D"] {
        desk.write(&format!(".git/refs/heads/{name}"), &head);
    }
    for tool in ["git_diff_structured", "git_log_structured", "git_show"] {
        for name in ["--output=p", "--format=%H", "-D"] {
            let error = desk.try_call(tool, json!({"ref": name})).await.unwrap_err();
            assert_eq!(error.kind, octo_toolkit::Kind::Invalid, "{tool} {name}");
            let whole = desk.try_call(tool, json!({"ref": format!("refs/heads/{name}")})).await;
            assert!(whole.is_ok(), "{tool} {name}: {whole:?}");
        }
    }
    let branches = desk.call("git_branches", json!({})).await;
    assert!(branches["branches"].to_string().contains("\"--output=p\""));
    desk.call("git_status", json!({})).await;
    desk.call("git", json!({"command": "branch", "args": ["-a"]})).await;
    untouched(&desk, "a ref");
}

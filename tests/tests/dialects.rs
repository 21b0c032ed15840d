//! Every name of every dialect is listed with its parameters, and can be called.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result};
use axum::Json;
use axum::extract::Request;
use axum::response::{Html, IntoResponse, Response};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// The contract of the dialects.
const CONTRACT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../contract/dialects.json");

/// Pages, a search engine, a language model and a forge in one server.
async fn fake_services(request: Request) -> Response {
    if let Some(of_forge) = request.uri().path().strip_prefix("/api/v3/repos/octo/hub/") {
        return fake_forge(of_forge).into_response();
    }
    match request.uri().path() {
        "/search" => Json(json!({"query": "q", "results": [{"title": "T", "url": "https://a.example/", "content": "C"}]}))
            .into_response(),
        "/v1/chat/completions" => Json(json!({"choices": [{"message": {"content": "Short."}}]})).into_response(),
        "/data.json" => Json(json!({"n": 1})).into_response(),
        _ => Html(
            "<html><head><title>Page</title></head><body><article><h1>Page</h1><p>Some words that stand on a page, \
             and some more of them so that it is worth reading.</p></article></body></html>",
        )
        .into_response(),
    }
}

/// One pull request, number 7.
fn fake_forge(path: &str) -> Json<Value> {
    Json(match path {
        "pulls/7" => json!({
            "number": 7, "title": "Add a hub", "state": "open", "merged": false, "draft": false,
            "user": {"login": "ada"}, "body": "It does things.", "labels": [], "mergeable_state": "clean",
            "base": {"ref": "main", "sha": "f", "repo": {"full_name": "octo/hub"}},
            "head": {"ref": "hub", "sha": "0123456789abcdef0123456789abcdef01234567", "repo": null},
            "created_at": "2026-11-01T10:00:00Z", "updated_at": "2026-11-02T10:00:00Z",
            "commits": 1, "additions": 1, "deletions": 0, "changed_files": 1, "comments": 0, "review_comments": 0,
        }),
        "pulls/7/files" => json!([{
            "filename": "a.rs", "status": "modified", "additions": 1, "deletions": 0, "changes": 1, "sha": "a",
            "patch": "@@ -1 +1,2 @@\n one\n+two",
        }]),
        path if path.ends_with("check-runs") => json!({"total_count": 0, "check_runs": []}),
        path if path.ends_with("status") => json!({"state": "success", "total_count": 0, "statuses": []}),
        _ => json!([]),
    })
}

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
    let status = Command::new("git").current_dir(folder).args(identity).args(args).status()?;
    anyhow::ensure!(status.success(), "git {args:?}");
    Ok(())
}

/// A repository with an uncommitted change, a remote beside it, and files to modify.
fn write_workspace(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder.join("repo/src"))?;
    std::fs::write(folder.join("repo/a.txt"), "one\ntwo\n")?;
    let repo = folder.join("repo");
    git(folder, &["init", "-q", "--bare", "far.git"])?;
    git(&repo, &["init", "-q"])?;
    git(&repo, &["add", "."])?;
    git(&repo, &["commit", "-qm", "first"])?;
    git(&repo, &["remote", "add", "origin", "../far.git"])?;
    std::fs::write(folder.join("repo/a.txt"), "one\ntwo\nthree\n")?;
    for name in ["one.txt", "two.txt", "three.txt"] {
        std::fs::write(folder.join(name), "text\n")?;
    }
    std::fs::create_dir_all(folder.join("old/inside"))?;
    // In the words of the dialect that has workflows.
    let flow = "version: 1\nname: f\nparams: {path: {required: true}}\nsteps: [{id: a, tool: fs_read, with: {path: '{{ params.path }}'}}]\n";
    std::fs::write(folder.join("flow.yaml"), flow)?;
    Ok(())
}

const PATCH: &str = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";

/// Arguments with the tool's own parameter names; only those that the dialect's name shows are passed.
fn arguments(name: &str, tool: &str, base: &str) -> Value {
    let page = format!("{base}/page");
    match tool {
        "fs_read_text" | "fs_read_bytes" | "fs_stat" => json!({"path": "one.txt"}),
        "fs_read_many" => json!({"paths": ["one.txt", "two.txt"]}),
        "fs_write_text" => json!({"path": "new.txt", "text": "hello\n"}),
        "fs_edit" => {
            json!({"path": "one.txt", "edits": [{"old_text": "text", "new_text": "TEXT"}], "dry_run": true})
        }
        "fs_mkdir" => json!({"path": "folder", "parents": true, "exist_ok": true}),
        "fs_list" | "fs_tree" => json!({"path": "."}),
        "fs_glob" => json!({"path": ".", "pattern": "*.txt"}),
        "fs_roots" | "git_tool_help" => json!({}),
        // Recursive where the name says so, or takes it.
        "fs_delete" if name == "delete_directory" => json!({"path": "old"}),
        "fs_delete" => json!({"path": "three.txt"}),
        "fs_move" => json!({"source": "two.txt", "destination": "moved.txt"}),
        "git_push" => json!({"repo_path": "repo", "remote": "origin", "branch": "main"}),
        "git_show" => json!({"repo_path": "repo", "ref": "HEAD"}),
        "git_apply_patch" => json!({"repo_path": "repo", "patch": PATCH, "check": true}),
        "git_commit" => json!({"repo_path": "repo", "message": "more", "all": true, "files": ["a.txt"]}),
        tool if tool.starts_with("git_") => json!({"repo_path": "repo"}),
        "github_pull_request" => json!({"url": format!("{base}/octo/hub/pull/7")}),
        "web_search" => json!({"query": "tea"}),
        "fetch_url" | "read_page" => json!({"url": page}),
        "fetch_json" => json!({"url": format!("{base}/data.json")}),
        "http_request" => json!({"method": "GET", "url": page}),
        "shell_exec" | "run_tests" | "run_build" => json!({"command": "echo hello"}),
        "check_process" => json!({"process_name": "nothing-of-this-name"}),
        "text_summarize" | "text_analyze" => json!({"text": "Some words. And more."}),
        "workflow_validate" => json!({"path": "flow.yaml"}),
        "workflow_run" => json!({"path": "flow.yaml", "params": {"path": "one.txt"}}),
        "browser_execute_js" => json!({"script": "1 + 1"}),
        other => panic!("{name}: no arguments for {other}"),
    }
}

fn settings(base: &str) -> Value {
    json!({
        "toolboxes": {"shell": true, "browser": true},
        "net": {"allow": ["127.0.0.1"]},
        "search": {"searxng_url": base},
        "github": {"url": format!("{base}/api/v3")},
        "llm": {"url": format!("{base}/v1"), "model": "m"},
        "git": {"allow_commit": true, "allow_push": true, "user_name": "T", "user_email": "t@example.com"},
    })
}

struct DialectCounts {
    listed: usize,
    answered: usize,
}

/// Checks one dialect: every name with its parameters, each called once.
async fn check_dialect(url: &str, names: &[Value], base: &str) -> Result<DialectCounts> {
    let client = ModernClient::new(url, json!({}), answer_nothing);
    let listed = client.list_tools().await?;
    let mut seen = DialectCounts { listed: 0, answered: 0 };
    for promised in names {
        let (name, tool) = (promised["name"].as_str().unwrap(), promised["tool"].as_str().unwrap());
        let entry =
            listed.iter().find(|entry| entry["name"] == name).with_context(|| format!("{url}: no {name}"))?;
        let own: Vec<&String> = entry["inputSchema"]["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
            .collect();
        let wanted = promised["args"].as_object().unwrap();
        assert_eq!(own.len(), wanted.len(), "{url} {name}: {own:?}");
        assert!(wanted.keys().all(|key| own.contains(&key)), "{url} {name}: {own:?}");
        for (outer, default) in promised["defaults"].as_object().into_iter().flatten() {
            let shown = &entry["inputSchema"]["properties"][outer]["default"];
            assert_eq!(shown, default, "{url} {name}: the default of {outer}");
        }
        seen.listed += 1;

        let inner = arguments(name, tool, base);
        let outer: Map<String, Value> = wanted
            .iter()
            .filter_map(|(outer, to)| Some((outer.clone(), inner.get(to.as_str()?)?.clone())))
            .collect();
        let turn = client.call_tool(name, Value::Object(outer)).await?;
        let result = turn.result()?;
        assert!(result["isError"] != true, "{url} {name}: {}", result["content"]);
        seen.answered += 1;
    }
    Ok(seen)
}

#[tokio::test]
async fn every_promised_name_is_listed_with_its_own_parameters_and_answers() -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(fake_services)).await });
    let promised: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(CONTRACT)?)?;
    let (mut listed, mut answered) = (0, 0);
    for (dialect, names) in &promised {
        let home = HubHome::new(&settings(&base))?;
        write_workspace(&home.workspace())?;
        let server = home.serve().await?;
        let names = names.as_array().context("no names")?;
        if names.iter().any(|promised| promised["tool"] == "browser_execute_js") {
            // The dialect has no name for opening a page.
            let open = json!({"url": format!("{base}/page")});
            ModernClient::new(&server.mcp_url(), json!({}), answer_nothing)
                .call_tool("browser_navigate", open)
                .await?
                .result()?;
        }
        let seen = check_dialect(&server.profile_url(dialect), names, &base).await?;
        (listed, answered) = (listed + seen.listed, answered + seen.answered);
    }
    println!("{listed} listed, {answered} answered");
    assert_eq!((listed, answered), (55, 55));
    Ok(())
}

/// Calls a tool of a dialect.
async fn call_tool(url: &str, tool: &str, arguments: Value) -> Result<Value> {
    let turn = ModernClient::new(url, json!({}), answer_nothing).call_tool(tool, arguments).await?;
    let result = turn.result()?;
    anyhow::ensure!(result["isError"] != true, "{tool}: {}", result["content"]);
    Ok(result["structuredContent"].clone())
}

#[tokio::test]
async fn defaults_and_nested_names_are_those_of_the_dialect() -> Result<()> {
    let home = HubHome::new(&settings("http://127.0.0.1:9"))?;
    write_workspace(&home.workspace())?;
    std::fs::write(home.workspace().join(".hidden"), "x")?;
    let server = home.serve().await?;
    let (ralph, codex, api) =
        (server.profile_url("ralph"), server.profile_url("codex"), server.profile_url("tools-api"));
    let listed = call_tool(&ralph, "list_directory", json!({"path": "."})).await?;
    assert!(!listed.to_string().contains(".hidden"), "{listed}");
    let all = call_tool(&ralph, "list_directory", json!({"path": ".", "include_hidden": true})).await?;
    assert!(all.to_string().contains(".hidden"), "{all}");
    for edit in
        [json!({"oldText": "text", "newText": "TEXT"}), json!({"old_text": "TEXT", "new_text": "words"})]
    {
        call_tool(&api, "edit_file", json!({"path": "one.txt", "edits": [edit]})).await?;
    }
    assert_eq!(std::fs::read_to_string(home.workspace().join("one.txt"))?, "words\n");
    // What is generated is written nowhere in this dialect; what is secret in none.
    for folder in ["dist", "site-packages", ".vscode"] {
        std::fs::create_dir(home.workspace().join("repo").join(folder))?;
    }
    let protected =
        ["repo/dist/x.js", "repo/site-packages/x.py", "a.pyc", "repo/.vscode/x.json", "repo/secrets.yaml"];
    for path in protected {
        let denied = call_tool(&api, "write_file", json!({"path": path, "content": "x"})).await.unwrap_err();
        assert!(denied.to_string().contains("is protected"), "{path}: {denied}");
    }
    call_tool(&ralph, "write_file", json!({"path": "repo/dist/x.js", "content": "x"})).await?;
    // The change is staged, and shown nevertheless.
    git(&home.workspace().join("repo"), &["add", "."])?;
    let diff = call_tool(&codex, "git_diff", json!({"repo_path": "repo"})).await?;
    assert!(diff.to_string().contains("three"), "{diff}");
    let pushed = call_tool(&ralph, "git_push", json!({"repository_path": "repo"})).await?;
    assert!(pushed.to_string().contains("main"), "{pushed}");
    Ok(())
}

#[tokio::test]
async fn the_gateways_dialect_has_the_browser_the_weather_and_the_servers() -> Result<()> {
    let fixture = octo_tests::test_binaries::binary_path("mcp-fixture")?;
    let mut settings = settings("http://127.0.0.1:9");
    settings["servers"] = json!({"fix": {"command": fixture, "args": ["stdio"]}});
    let server = HubHome::new(&settings)?.serve().await?;
    server.until_listed("fix__fix_echo").await?;
    let client = ModernClient::new(&server.profile_url("gateway"), json!({}), answer_nothing);
    let tools = client.list_tools().await?;
    let listed: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in [
        "browser_eval",
        "browser_navigate",
        "browser_fetch",
        "browser_search",
        "weather_get",
        "fix__fix_echo",
    ] {
        assert!(listed.contains(&name), "no {name} in {listed:?}");
    }
    for name in ["fs_read_text", "shell_exec", "browser_execute_js", "web_search"] {
        assert!(!listed.contains(&name), "{name} in {listed:?}");
    }
    // The server's name stands in front of its tools' own names.
    for name in ["fix:echo", "fix__echo", "fix__fix_echo", "fix:fix_echo"] {
        let said = call_tool(&server.mcp_url(), name, json!({"text": "hello"})).await?;
        assert_eq!(said["text"], "hello", "{name}");
    }
    Ok(())
}

/// The tools as a client sees them, behind a fleet as well.
#[tokio::test]
async fn the_contract_of_the_tools_holds() -> Result<()> {
    let mut settings = settings("http://127.0.0.1:9");
    settings["toolboxes"]["database"] = true.into();
    settings["database"] = json!({"connections": {"default": "postgres://ada@127.0.0.1:9/none"}});
    let home = HubHome::new(&settings)?;
    let server = home.serve().await?;
    let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
    let tools = client.list_tools().await?;
    let list = home.dir.path().join("tools.json");
    std::fs::write(&list, serde_json::to_vec(&tools)?)?;
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contract/check");
    let output = Command::new("python3").arg(check).stdin(std::fs::File::open(list)?).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

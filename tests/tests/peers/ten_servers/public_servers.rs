//! The ten servers, each with a call whose reply is known.

use anyhow::{Context, Result, ensure};
use axum::Json;
use axum::response::Html;
use axum::routing::get;
use octo_tests::test_binaries::service_variable;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// A server: how it is started, some tools that it must list, a call, and the expected value in the result.
pub struct PublicServer {
    pub name: &'static str,
    pub entry: Value,
    pub tools: &'static [&'static str],
    pub arguments: Value,
    /// A pointer into the result, and the expected value there: the same value, or a text that contains it.
    pub expected: (&'static str, Value),
}

impl PublicServer {
    /// The tool that is called: the first of the list.
    pub fn tool(&self) -> String {
        format!("{}__{}", self.name, self.tools.first().unwrap_or(&""))
    }

    pub fn check(&self, result: &Value) -> Result<()> {
        let (at, wanted) = &self.expected;
        let found = result.pointer(at).with_context(|| format!("{}: no {at} in {result}", self.name))?;
        let same = found == wanted
            || matches!((found.as_str(), wanted.as_str()), (Some(text), Some(part)) if text.contains(part));
        ensure!(same && result["isError"] != true, "{}: {result}", self.name);
        Ok(())
    }
}

/// HTTP server that two of the servers use.
pub async fn start_web() -> Result<String> {
    let page = "<!doctype html><title>The tenth page</title><h1>Tea</h1><p>Steep it for four minutes.</p>";
    let found = json!({"results": [{"id": "/tea/pot", "title": "Teapot", "description": "Short and stout", "totalSnippets": 3}]});
    let app = axum::Router::new()
        .route("/", get(move || async move { Html(page) }))
        .route("/api/v2/libs/search", get(move || async move { Json(found) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(base)
}

/// A directory with a file and a repository for the servers.
pub fn create_workspace(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("tea.txt"), "Steep it for four minutes.")?;
    let git =
        Command::new("git").args(["init", "--quiet", "--initial-branch", "kettle"]).arg(folder).status()?;
    ensure!(git.success(), "git init failed");
    Ok(())
}

fn node(script: &str, more: &[&str]) -> Result<Value> {
    let mut args = vec![service_variable(script)?];
    args.extend(more.iter().map(|word| (*word).to_owned()));
    Ok(json!({"command": service_variable("NODE24")?, "args": args}))
}

fn python(program: &str, args: &[&str]) -> Result<Value> {
    Ok(json!({"command": service_variable(program)?, "args": args}))
}

fn playwright() -> Result<Value> {
    let flags = ["--headless", "--isolated", "--no-sandbox", "--executable-path", "/usr/bin/chromium"];
    node("PLAYWRIGHT_MCP", &flags)
}

/// Servers from npm.
fn npm_servers(folder: &str, web: &str) -> Result<Vec<PublicServer>> {
    let tea = format!("{folder}/tea.txt");
    let thought = json!({"thought": "Water first.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let ada = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]});
    let mut memory = node("SERVER_MEMORY", &[])?;
    memory["env"] = json!({"MEMORY_FILE_PATH": format!("{folder}/memory.jsonl")});
    let mut context7 = node("SERVER_CONTEXT7", &[])?;
    context7["env"] = json!({"CONTEXT7_API_URL": format!("{web}/api")});
    let text = "/content/0/text";
    Ok(vec![
        PublicServer {
            name: "files",
            entry: node("SERVER_FILESYSTEM", &[folder])?,
            tools: &["read_text_file", "edit_file", "directory_tree"],
            arguments: json!({"path": tea}),
            expected: ("/structuredContent/content", json!("Steep it for four minutes.")),
        },
        PublicServer {
            name: "graph",
            entry: memory,
            tools: &["create_entities", "search_nodes"],
            arguments: ada,
            expected: ("/structuredContent/entities/0/name", json!("Ada")),
        },
        PublicServer {
            name: "thinking",
            entry: node("SERVER_SEQUENTIAL_THINKING", &[])?,
            tools: &["sequentialthinking"],
            arguments: thought,
            expected: ("/structuredContent/thoughtHistoryLength", json!(1)),
        },
        PublicServer {
            name: "everything",
            entry: node("EVERYTHING", &["stdio"])?,
            tools: &["get-sum", "echo", "get-tiny-image"],
            arguments: json!({"a": 2, "b": 40}),
            expected: (text, json!("The sum of 2 and 40 is 42")),
        },
        PublicServer {
            name: "context7",
            entry: context7,
            tools: &["resolve-library-id", "query-docs"],
            arguments: json!({"libraryName": "teapot", "query": "how to pour"}),
            expected: (text, json!("/tea/pot")),
        },
        PublicServer {
            name: "playwright",
            entry: playwright()?,
            tools: &["browser_navigate", "browser_snapshot", "browser_click"],
            arguments: json!({"url": format!("{web}/")}),
            expected: (text, json!("The tenth page")),
        },
    ])
}

/// Servers from PyPI.
fn pypi_servers(folder: &str, web: &str) -> Result<Vec<PublicServer>> {
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let text = "/content/0/text";
    Ok(vec![
        PublicServer {
            name: "repository",
            entry: python("SERVER_GIT", &[])?,
            tools: &["git_status", "git_log"],
            arguments: json!({"repo_path": folder}),
            expected: (text, json!("kettle")),
        },
        PublicServer {
            name: "reader",
            entry: python("SERVER_FETCH", &["--ignore-robots-txt", "--allow-private-ips"])?,
            tools: &["fetch"],
            arguments: json!({"url": format!("{web}/")}),
            expected: (text, json!("Steep it for four minutes.")),
        },
        PublicServer {
            name: "clock",
            entry: python("SERVER_TIME", &["--local-timezone", "UTC"])?,
            tools: &["convert_time", "get_current_time"],
            arguments: noon,
            expected: ("/structuredContent/time_difference", json!("+9.0h")),
        },
        PublicServer {
            name: "sqlite",
            entry: python("SERVER_SQLITE", &["--db-path", &format!("{folder}/tea.db")])?,
            tools: &["read_query", "create_table"],
            arguments: json!({"query": "select 6 * 7 as answer"}),
            expected: (text, json!("42")),
        },
    ])
}

pub fn all_servers(folder: &Path, web: &str) -> Result<Vec<PublicServer>> {
    let folder = folder.to_str().context("the folder's name is not UTF-8")?;
    let mut roles = npm_servers(folder, web)?;
    roles.extend(pypi_servers(folder, web)?);
    ensure!(roles.len() == 10, "{} servers", roles.len());
    Ok(roles)
}

/// `servers.yaml` with all of them. Each gets a marker in its environment, so that its descendants can be found.
pub fn servers_file(roles: &[PublicServer], mark: &str, idle_timeout_seconds: u64) -> Value {
    let mut servers = Map::new();
    for role in roles {
        let mut entry = role.entry.clone();
        entry["env"]["TEN_SERVERS"] = json!(mark);
        entry["idle_timeout_seconds"] = json!(idle_timeout_seconds);
        servers.insert(role.name.to_owned(), entry);
    }
    json!({"servers": servers})
}

//! Tools that produce fifty megabytes (fewer without optimization): no reply exceeds its budget, the rest can be read to the last byte, the structured
//! content fits its schema, and the hub's memory stays below three times the result.

use crate::resource_limits::start_upstream;
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::get;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use octo_tests::processes::{peak_resident_mb, reset_peak, resident_mb};
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const OUTPUT_BYTES: usize = if cfg!(debug_assertions) { 15_000_000 } else { 50_000_000 };
/// Requests are limited to 4 MiB.
const MAX_MESSAGE_BYTES: usize = 4_000_000;
/// Three times the result, as MiB. Without optimization, what the last call has freed is returned late on a busy machine.
const MAX_GROWTH_MB: f64 =
    OUTPUT_BYTES as f64 * 3.0 / 1_048_576.0 + if cfg!(debug_assertions) { 90.0 } else { 0.0 };
/// Memory that may be left of a call before the next one is measured, and how long that may take.
const MAX_LEFT_MB: f64 = 30.0;
const RETURN_TIMEOUT: Duration = Duration::from_secs(3);
/// Default budgets: of most tools, and of those that read a text.
const INLINE_BYTES: usize = 8_000;
const READ_BYTES: usize = 24_000;
/// Bytes that a notice may add.
const NOTICE_BYTES: usize = 1_600;
/// At the beginning, in the middle and at the end of every output.
const MARKS: [&str; 3] = ["mark-of-the-beginning", "mark-of-the-middle", "mark-of-the-end"];

/// Fifty megabytes in lines.
fn lines() -> String {
    let line = format!("{}\n", "a line of some words ".repeat(5));
    let half = line.repeat(OUTPUT_BYTES / 2 / line.len());
    let [beginning, middle, end] = MARKS;
    format!("{beginning}\n{half}{middle}\n{half}{end}\n")
}

/// The same as a list of rows.
fn rows() -> Value {
    let row = |n: usize| json!({"id": n, "name": format!("row {n}"), "text": "of some words ".repeat(6)});
    let mut rows: Vec<Value> = (0..OUTPUT_BYTES / 130).map(row).collect();
    let middle = rows.len() / 2;
    for (at, mark) in [0, middle, rows.len() - 1].into_iter().zip(MARKS) {
        rows[at]["name"] = json!(mark);
    }
    Value::Array(rows)
}

fn upstream_result(name: &str) -> Value {
    match name {
        "text" => json!({"content": [{"type": "text", "text": lines()}]}),
        "line" => json!({"content": [{"type": "text", "text": lines().replace('\n', " ")}]}),
        "blocks" => {
            let text = lines();
            let parts =
                text.as_bytes().chunks(500_000).map(|part| String::from_utf8_lossy(part).into_owned());
            let blocks: Vec<Value> = parts.map(|text| json!({"type": "text", "text": text})).collect();
            json!({"content": blocks})
        }
        _ => json!({"content": [], "structuredContent": {"rows": rows()}}),
    }
}

struct DrivenHub {
    server: RunningHub,
    client: ModernClient,
    schemas: BTreeMap<String, Value>,
    idle_mb: f64,
    driven: BTreeSet<String>,
}

impl DrivenHub {
    async fn new(home: &HubHome) -> Result<Self> {
        let server = home.serve().await?;
        let client = ModernClient::new(&server.mcp_url(), json!({}), answer_nothing);
        let schemas =
            client.list_tools().await?.into_iter().filter_map(|tool| {
                Some((tool["name"].as_str()?.to_owned(), tool.get("outputSchema")?.clone()))
            });
        let schemas = schemas.collect();
        let idle_mb = resident_mb(server.process.id().context("the hub has ended")?)?;
        Ok(Self { server, client, schemas, idle_mb, driven: BTreeSet::new() })
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let turn = self.client.request("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        Ok(turn.result()?.clone())
    }

    /// Waits for the allocator to return what the last call has freed. What it does not return counts for the next call.
    async fn until_memory_is_returned(&self, pid: u32) -> Result<()> {
        let deadline = Instant::now() + RETURN_TIMEOUT;
        while resident_mb(pid)? - self.idle_mb > MAX_LEFT_MB && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Calls a tool, whose reply must be within its budget, and returns that.
    async fn drive(&mut self, tool: &str, budget: usize, arguments: Value) -> Result<Value> {
        let pid = self.server.process.id().context("the hub has ended")?;
        self.until_memory_is_returned(pid).await?;
        reset_peak(pid)?;
        let begun = Instant::now();
        let reply = self.call(tool, &arguments).await?;
        let growth = peak_resident_mb(pid)? - self.idle_mb;
        let blocks = reply["content"].as_array().context("no content")?;
        let text: usize = blocks.iter().map(|block| block.to_string().len()).sum();
        let structure = reply.get("structuredContent");
        let structured = structure.map_or(0, |structure| structure.to_string().len());
        let handle = handle_of(&reply);
        println!(
            "{tool:<24} text {text:>6} structure {structured:>6} grown {growth:>6.1} MB {:>6} ms{}",
            begun.elapsed().as_millis(),
            if handle.is_some() { " stored" } else { "" }
        );
        let shown: String = reply.to_string().chars().take(400).collect();
        ensure!(reply["isError"] != true || handle.is_some(), "{tool}: {shown}");
        ensure!(text <= budget + NOTICE_BYTES && structured <= budget + NOTICE_BYTES, "{tool}: {shown}");
        ensure!(growth <= MAX_GROWTH_MB, "{tool} took {growth:.1} MB");
        if let (Some(structure), Some(schema)) = (structure, self.schemas.get(tool)) {
            let validator = jsonschema::validator_for(schema)?;
            let error = validator.iter_errors(structure).next().map(|error| error.to_string());
            ensure!(error.is_none(), "{tool}: {error:?}");
        }
        self.driven.insert(tool.to_owned());
        Ok(reply)
    }

    /// Reads a stored result to its end; it has all marks.
    async fn read_all(&mut self, reply: &Value) -> Result<()> {
        let handle = handle_of(reply).context("no handle")?;
        let (mut from, mut read, mut missing) = (0, 0, MARKS.to_vec());
        let mut seam = String::new();
        loop {
            let part = json!({"handle": handle, "from_byte": from, "bytes": 90_000});
            let part = self.call("result_read", &part).await?["structuredContent"].clone();
            let text = part["text"].as_str().with_context(|| part.to_string())?;
            read += text.len();
            seam.push_str(text);
            missing.retain(|mark| !seam.contains(mark));
            seam.drain(..seam.floor_char_boundary(seam.len().saturating_sub(40)));
            match part["next"].as_u64() {
                Some(next) => from = next,
                None => {
                    ensure!(part["total_bytes"] == read, "{read} of {}", part["total_bytes"]);
                    ensure!(missing.is_empty(), "{missing:?} not found in {read} bytes");
                    return Ok(());
                }
            }
        }
    }
}

/// The handle of a stored result, which an error names in its text.
fn handle_of(reply: &Value) -> Option<String> {
    let named = [&reply["_meta"]["octoprox/result_handle"], &reply["structuredContent"]["handle"]];
    let named = named.into_iter().find_map(Value::as_str).map(str::to_owned);
    named.or_else(|| {
        let (_, rest) = reply["content"][0]["text"].as_str()?.split_once("handle \"")?;
        Some(rest.split_once('"')?.0.to_owned())
    })
}

fn git(folder: &Path, args: &[&str]) -> Result<()> {
    let set = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"];
    let done = Command::new("git").args(set).args(args).current_dir(folder).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// A repository whose second commit rewrites large files, and whose work tree has another change.
fn fill_workspace(folder: &Path) -> Result<()> {
    let text = lines();
    git(folder, &["init", "-q"])?;
    // As much as that differs: half of the lines, old and new.
    let half = OUTPUT_BYTES / 2 / 20;
    let versions = [text.clone(), text.replacen("some", "more", half), text.replacen("some", "none", half)];
    for (version, content) in versions.iter().enumerate() {
        std::fs::write(folder.join("lines.txt"), content)?;
        if version < 2 {
            git(folder, &["add", "."])?;
            git(folder, &["commit", "-q", "-m", &format!("Version {version}")])?;
        }
    }
    std::fs::write(folder.join("line.txt"), text.replace('\n', " "))?;
    std::fs::write(folder.join("rows.json"), rows().to_string())?;
    let many = folder.join("many");
    std::fs::create_dir(&many)?;
    for n in 0..20_000 {
        std::fs::write(many.join(format!("{n:05}-{}", "n".repeat(150))), "")?;
    }
    Ok(())
}

async fn start_site() -> Result<String> {
    let text = async || lines();
    let page = async || {
        axum::response::Html(format!(
            "<!doctype html><title>Large</title><main><p>{}</main>",
            lines().replace('\n', "<p>")
        ))
    };
    let json = async || ([("content-type", "application/json")], rows().to_string());
    let router = Router::new().route("/text", get(text)).route("/page", get(page)).route("/json", get(json));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(base)
}

#[tokio::test(flavor = "multi_thread")]
async fn native_tools_stay_within_their_budgets() -> Result<()> {
    let home = HubHome::new(&json!({"toolboxes": {"shell": true}, "net": {"allow": ["127.0.0.1"]}}))?;
    fill_workspace(&home.workspace())?;
    let base = start_site().await?;
    let mut hub = DrivenHub::new(&home).await?;
    let url = |path: &str| format!("{base}/{path}");
    for (tool, budget, arguments) in [
        ("fs_read_text", READ_BYTES, json!({"path": "lines.txt"})),
        ("fs_read_text", READ_BYTES, json!({"path": "line.txt"})),
        ("fs_read_many", READ_BYTES, json!({"paths": ["lines.txt", "line.txt", "rows.json"]})),
        ("fs_read_bytes", INLINE_BYTES, json!({"path": "lines.txt"})),
        ("fs_search", INLINE_BYTES, json!({"pattern": "line"})),
        ("fs_search", INLINE_BYTES, json!({"pattern": "words", "path": "line.txt"})),
        ("fs_glob", INLINE_BYTES, json!({"pattern": "**/*"})),
        ("fs_list", INLINE_BYTES, json!({"path": "many"})),
        ("fs_list", INLINE_BYTES, json!({"recursive": true, "long_format": true})),
        ("fs_tree", INLINE_BYTES, json!({})),
        ("git", INLINE_BYTES, json!({"command": "diff"})),
        ("git", INLINE_BYTES, json!({"command": "show", "args": ["HEAD:lines.txt"]})),
        ("git_diff_structured", INLINE_BYTES, json!({})),
        ("git_show", READ_BYTES, json!({"ref": "HEAD"})),
        ("git_blame", INLINE_BYTES, json!({"path": "lines.txt"})),
        ("git_changes", INLINE_BYTES, json!({})),
        ("git_status", INLINE_BYTES, json!({})),
        ("fetch_url", READ_BYTES, json!({"url": url("text")})),
        ("fetch_url", READ_BYTES, json!({"url": url("page")})),
        ("http_request", INLINE_BYTES, json!({"method": "GET", "url": url("text")})),
        ("read_page", READ_BYTES, json!({"url": url("page")})),
    ] {
        hub.drive(tool, budget, arguments).await?;
    }
    for command in ["cat lines.txt", "cat line.txt >&2", "cat rows.json"] {
        let reply = hub.drive("shell_exec", INLINE_BYTES, json!({"command": command})).await?;
        if command == "cat lines.txt" {
            hub.read_all(&reply).await?;
        }
    }
    for tool in ["run_tests", "run_build"] {
        hub.drive(tool, INLINE_BYTES, json!({"command": "cat lines.txt"})).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_of_servers_are_stored_whole() -> Result<()> {
    let rows_schema = json!({"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array", "items": {"type": "object"}}}});
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let mut with_schema = tool("rows");
    with_schema["outputSchema"] = rows_schema;
    let tools = json!([tool("text"), tool("line"), tool("blocks"), with_schema, tool("structure")]);
    let url = start_upstream(tools, upstream_result).await?;
    let home = HubHome::new(&json!({"servers": {"stranger": {"url": url}}}))?;
    let mut hub = DrivenHub::new(&home).await?;
    hub.server.until_listed("stranger__text").await?;
    for name in ["text", "line", "blocks", "rows", "structure"] {
        let reply = hub.drive(&format!("stranger__{name}"), INLINE_BYTES, json!({})).await?;
        hub.read_all(&reply).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_stays_within_its_budget() -> Result<()> {
    let (node, script) = (service_variable("NODE24")?, service_variable("EVERYTHING")?);
    let home = HubHome::new(&json!({"servers": {"every": {"command": node, "args": [script, "stdio"]}}}))?;
    let mut hub = DrivenHub::new(&home).await?;
    hub.server.until_listed("every__echo").await?;
    // As much as a request may have.
    let message = lines().split_at(MAX_MESSAGE_BYTES).0.to_owned() + MARKS[1] + MARKS[2];
    let reply = hub.drive("every__echo", INLINE_BYTES, json!({"message": message})).await?;
    hub.read_all(&reply).await?;
    let small = [
        ("get-annotated-message", json!({"messageType": "success", "includeImage": true})),
        ("get-env", json!({})),
        ("get-resource-links", json!({"count": 10})),
        ("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-sum", json!({"a": 1, "b": 2})),
        ("get-tiny-image", json!({})),
    ];
    for (name, arguments) in small {
        hub.drive(&format!("every__{name}"), INLINE_BYTES, arguments).await?;
    }
    Ok(())
}

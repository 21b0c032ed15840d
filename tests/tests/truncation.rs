//! Truncated replies: following `next` yields everything, byte for byte, whatever the limit; every handle leads to the
//! whole; the last line of a command is always included. Files and outputs have random shapes, the same in every run.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::response::Html;
use base64::Engine as _;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const CAPS: [usize; 3] = [1_000, 10_000, 100_000];
/// Bytes that a notice may add.
const NOTICE_BYTES: usize = 1_600;
/// Maximum replies for one content; more are a loop.
const MAX_REPLIES: usize = 3_000;

/// Tools with `next` that tests here follow to the end.
const FOLLOWED_TOOLS: [&str; 11] = [
    "fs_read_bytes",
    "fs_read_many",
    "fs_read_text",
    "git_blame",
    "git_log_structured",
    "read_page",
    "result_read",
    "shell_read",
    "shell_start",
    "shell_stop",
    "shell_write",
];
/// Tools whose `next` is a sentence, not a position.
const NEXT_IS_TEXT_TOOLS: [&str; 2] = ["git_changes", "git_diff_structured"];
/// Tools whose `next` is a page of another server. The hub omits it from a reply that it truncates itself.
const REMOTE_PAGE_TOOLS: [&str; 3] = ["github_pull_request", "gitlab_request", "web_search"];

#[derive(Clone, Copy, Debug)]
enum Frontend {
    Rest,
    Mcp,
}

struct CappedHub {
    home: HubHome,
    server: RunningHub,
    http: HttpClient,
    cap: usize,
    frontend: Frontend,
}

impl CappedHub {
    async fn new(cap: usize, frontend: Frontend) -> Result<Self> {
        let home = HubHome::new(&json!({
            "results": {"inline_bytes": cap, "read_bytes": cap, "max_bytes": cap},
            "toolboxes": {"shell": true},
            "net": {"allow": ["127.0.0.1"]},
        }))?;
        let server = home.serve().await?;
        Ok(Self { home, server, http: HttpClient::default(), cap, frontend })
    }

    /// The structured content of a reply, which respects the limit.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        let structure = match self.frontend {
            Frontend::Rest => {
                let url = format!("{}/tools/{tool}", self.server.base_url);
                let reply: Value = self.http.post(&url, &[], &arguments).await?.json().await?;
                ensure!(reply["success"] == true, "{tool} {arguments}: {reply}");
                reply["result"].clone()
            }
            Frontend::Mcp => {
                let params = json!({"name": tool, "arguments": arguments});
                let client = ModernClient::new(&self.server.mcp_url(), json!({}), answer_nothing);
                let turn = client.request("tools/call", params).await?;
                let result = turn.result()?;
                ensure!(result["isError"] != true, "{tool} {arguments}: {result}");
                result["structuredContent"].clone()
            }
        };
        let size = structure.to_string().len();
        ensure!(size <= self.cap + NOTICE_BYTES, "{tool} {arguments}: {size} bytes at a cap of {}", self.cap);
        Ok(structure)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        Ok(std::fs::write(self.home.workspace().join(name), content)?)
    }

    /// Reads the rest of a file from where a reply ended.
    async fn read_rest(&self, path: &str, mut reply: Value) -> Result<String> {
        let mut content = String::new();
        for _ in 0..MAX_REPLIES {
            let Some(next) = reply["next"].as_u64() else {
                ensure!(reply["truncated"] != true, "truncated without next: {reply}");
                return Ok(content);
            };
            let byte = reply["next_byte"].as_u64().unwrap_or(0);
            let arguments =
                json!({"path": path, "start_line": next, "start_byte": byte, "max_bytes": 10_000_000});
            reply = self.call("fs_read_text", arguments).await?;
            ensure!(reply["start_line"] == next, "{reply}");
            content.push_str(reply["content"].as_str().context("no content")?);
        }
        anyhow::bail!("{path} has no end")
    }

    async fn read_text(&self, path: &str) -> Result<String> {
        let first = self.call("fs_read_text", json!({"path": path, "max_bytes": 10_000_000})).await?;
        let content = first["content"].as_str().context("no content")?.to_owned();
        Ok(content + &self.read_rest(path, first).await?)
    }

    /// Reads a stored result by bytes.
    async fn read_result_bytes(&self, handle: &str) -> Result<String> {
        let (mut content, mut from) = (String::new(), 0);
        for _ in 0..MAX_REPLIES {
            let part = self.call("result_read", json!({"handle": handle, "from_byte": from})).await?;
            content.push_str(part["text"].as_str().context("no text")?);
            match part["next"].as_u64() {
                Some(next) => from = next,
                None => return Ok(content),
            }
        }
        anyhow::bail!("{handle} has no end")
    }

    /// Reads a stored result by lines.
    async fn read_result_lines(&self, handle: &str) -> Result<String> {
        let (mut content, mut from) = (String::new(), 1);
        for _ in 0..MAX_REPLIES {
            let part = self
                .call("result_read", json!({"handle": handle, "from_line": from, "lines": 100_000}))
                .await?;
            content.push_str(part["text"].as_str().context("no text")?);
            match part["next"].as_u64() {
                Some(next) => from = next,
                None => return Ok(content),
            }
        }
        anyhow::bail!("{handle} has no end")
    }
}

/// Deterministic generator of shapes.
struct TextGenerator(u64);

impl TextGenerator {
    fn number(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// A text with short and long lines, quotes, control characters, and characters of every width.
    fn text(&mut self, bytes: usize, longest: u64) -> String {
        const LETTERS: [&str; 16] =
            ["a", "b", " ", "e", "\"", "\\", "\t", "é", "漢", "🐋", "x", "0", "/", "\u{1}", "y", "\r"];
        let mut text = String::new();
        while text.len() < bytes {
            let length = match self.number(10) {
                0 => 0,
                1 => self.number(longest),
                _ => self.number(80.min(longest)),
            };
            // Lines of one kind, so that some files are nearly all escapes.
            let plain = self.number(3) > 0;
            for _ in 0..length {
                text.push_str(if plain { "m" } else { LETTERS[self.number(16) as usize] });
            }
            text.push_str(if self.number(9) == 0 { "\r\n" } else { "\n" });
        }
        if self.number(2) == 0 {
            text.push_str("no newline at the end");
        }
        text
    }
}

fn first_difference(left: &str, right: &str) -> String {
    let at = left.bytes().zip(right.bytes()).position(|(a, b)| a != b).unwrap_or(left.len().min(right.len()));
    let around = |text: &str| {
        let part = text.as_bytes().get(at.saturating_sub(40)..(at + 40).min(text.len())).unwrap_or_default();
        String::from_utf8_lossy(part).into_owned()
    };
    format!("{} and {} bytes differ at {at}: {:?} {:?}", left.len(), right.len(), around(left), around(right))
}

fn ensure_same(left: &str, right: &str, what: &str) -> Result<()> {
    ensure!(left == right, "{what}: {}", first_difference(left, right));
    Ok(())
}

/// Every limit with one of the frontends each, so that both frontends see every limit over two rounds of files.
async fn all_capped_hubs() -> Result<Vec<CappedHub>> {
    let mut all = Vec::new();
    for cap in CAPS {
        for face in [Frontend::Rest, Frontend::Mcp] {
            all.push(CappedHub::new(cap, face).await?);
        }
    }
    Ok(all)
}

#[tokio::test]
async fn every_tool_with_next_is_followed() -> Result<()> {
    let home = HubHome::new(&json!({"toolboxes": {"shell": true, "browser": true}}))?;
    let (code, out, err) = home.run(&["tools", "--json", "--all"]).await?;
    ensure!(code == 0, "{err}");
    let listed: Value = serde_json::from_str(&out)?;
    let tools = listed.as_array().or_else(|| listed["tools"].as_array()).context("no tools")?;
    let with_next: BTreeSet<&str> = tools
        .iter()
        .filter(|tool| tool["outputSchema"].to_string().contains("\"next\":"))
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    // The page of a browser is read in `tools-browser`, which has one.
    let known: BTreeSet<&str> = FOLLOWED_TOOLS
        .into_iter()
        .chain(NEXT_IS_TEXT_TOOLS)
        .chain(REMOTE_PAGE_TOOLS)
        .chain(["browser_get_content"])
        .collect();
    assert_eq!(with_next, known);
    Ok(())
}

#[tokio::test]
async fn files_are_read_to_the_last_byte() -> Result<()> {
    let mut shapes = TextGenerator(7);
    for ground in all_capped_hubs().await? {
        let (cap, face) = (ground.cap, ground.frontend);
        for (round, longest) in [60, 4_000, 200_000].into_iter().enumerate() {
            let text = shapes.text(cap * 5 / 2 + 10, longest);
            let name = format!("{round}.txt");
            ground.write(&name, text.as_bytes())?;
            ensure_same(&ground.read_text(&name).await?, &text, &format!("{cap} {face:?} {round}"))?;
            let numbered = ground.call("fs_read_text", json!({"path": name, "line_numbers": true})).await?;
            let lines = numbered["content"].as_str().unwrap().lines().count() as u64;
            ensure!(numbered["end_line"] == lines, "{cap} {face:?}: {numbered}");
            let tail = ground.call("fs_read_text", json!({"path": name, "tail": 100_000})).await?;
            ensure!(text.ends_with(tail["content"].as_str().unwrap()), "{cap} {face:?}");

            let mut bytes = Vec::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let part = ground.call("fs_read_bytes", json!({"path": name, "offset": offset})).await?;
                let encoded = part["base64"].as_str().context("no base64")?;
                bytes.extend(base64::engine::general_purpose::STANDARD.decode(encoded)?);
                next = part["next"].as_u64();
            }
            ensure!(bytes == text.as_bytes(), "{cap} {face:?} {round}");
        }
        let utf16: Vec<u8> = format!("\u{feff}{}", shapes.text(cap * 2, 3_000))
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        ground.write("wide.txt", &utf16)?;
        let text = String::from_utf16(
            &utf16.chunks(2).skip(1).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect::<Vec<_>>(),
        )?;
        ensure_same(&ground.read_text("wide.txt").await?, &text, "UTF-16")?;
    }
    Ok(())
}

#[tokio::test]
async fn several_files_are_all_there_or_named() -> Result<()> {
    let mut shapes = TextGenerator(11);
    for ground in all_capped_hubs().await? {
        let count = if ground.cap < 5_000 { 4 } else { 20 };
        let mut files = Vec::new();
        for number in 0..count {
            let size = shapes.number(ground.cap as u64 / 3 + 50) as usize;
            let (name, text) = (format!("m{number}.txt"), shapes.text(size, 300));
            ground.write(&name, text.as_bytes())?;
            files.push((name, text));
        }
        let paths: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let reply = ground.call("fs_read_many", json!({"paths": paths, "max_bytes": 10_000_000})).await?;
        let entries = reply["files"].as_array().context("no files")?;
        ensure!(entries.len() == files.len(), "{} of {} at {}", entries.len(), files.len(), ground.cap);
        for ((name, text), entry) in files.iter().zip(entries) {
            ensure!(entry["path"] == name.as_str(), "{entry}");
            let first = entry["content"].as_str().unwrap_or_default();
            ensure!(entry["truncated"] == true || first == text, "{name} at {}", ground.cap);
            let rest = ground.read_rest(name, entry.clone()).await?;
            ensure_same(&format!("{first}{rest}"), text, name)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_last_line_of_a_command_is_there_and_its_handle_has_all() -> Result<()> {
    let mut shapes = TextGenerator(13);
    for ground in all_capped_hubs().await? {
        let (cap, face) = (ground.cap, ground.frontend);
        for (round, longest) in [70, 700, 50_000].into_iter().enumerate() {
            let size = cap * 3;
            let text = format!("{}\nLAST {round}\n", shapes.text(size, longest));
            ground.write("out.txt", text.as_bytes())?;
            for (command, stream) in [("cat out.txt", "stdout"), ("cat out.txt >&2", "stderr")] {
                let reply = ground.call("shell_exec", json!({"command": command})).await?;
                let tail = reply[format!("{stream}_tail")].as_str().context("no tail")?;
                ensure!(tail.ends_with(&format!("LAST {round}\n")), "{cap} {face:?}: {tail:?}");
                ensure!(text.starts_with(reply[stream].as_str().unwrap()) && text.ends_with(tail));
                ensure!(reply["result_handle"].is_null(), "two handles: {reply}");
                let handle = reply[if stream == "stdout" { "handle" } else { "stderr_handle" }].as_str();
                let handle = handle.context("no handle")?;
                ensure_same(
                    &ground.read_result_bytes(handle).await?,
                    &text,
                    &format!("{cap} {face:?} {round}"),
                )?;
                if longest < 100 {
                    ensure_same(&ground.read_result_lines(handle).await?, &text, "by lines")?;
                }
                let found = ground.call("result_read", json!({"handle": handle, "pattern": "^LAST"})).await?;
                ensure!(found["text"].as_str().unwrap().ends_with(&format!(": LAST {round}\n")), "{found}");
            }
        }
        let both = ground
            .call("shell_exec", json!({"command": "seq 1 50000; echo END; seq 1 50000 >&2; echo EEND >&2"}));
        let both = both.await?;
        ensure!(both["stdout_tail"].as_str().unwrap().ends_with("50000\nEND\n"), "{both}");
        ensure!(both["stderr_tail"].as_str().unwrap().ends_with("50000\nEEND\n"), "{both}");
        let run = ground
            .call("run_tests", json!({"command": "seq 1 50000; echo; echo '1..1'; echo 'ok 1 - x'"}))
            .await?;
        ensure!(run["stdout_tail"].as_str().unwrap().ends_with("ok 1 - x\n"), "{run}");
    }
    Ok(())
}

#[tokio::test]
async fn sessions_are_read_to_their_end() -> Result<()> {
    let mut shapes = TextGenerator(17);
    for ground in all_capped_hubs().await? {
        let text = shapes.text(ground.cap * 2, 900);
        ground.write("session.txt", text.as_bytes())?;
        let begun = json!({"command": "cat session.txt", "wait_ms": 300, "max_bytes": 1_000_000});
        let mut part = ground.call("shell_start", begun).await?;
        let id = part["session_id"].as_str().context("no session")?.to_owned();
        let mut output = part["output"].as_str().unwrap().to_owned();
        while part["running"] == true || part["next"] != part["total"] {
            let more = json!({"session_id": id, "wait_ms": 2_000, "max_bytes": 1_000_000});
            part = ground.call("shell_read", more).await?;
            output.push_str(part["output"].as_str().unwrap());
        }
        ensure_same(&output, &text, "a session")?;
        let last = ground.call("shell_stop", json!({"session_id": id, "max_bytes": 1_000_000})).await?;
        ensure!(text.ends_with(last["output"].as_str().unwrap()), "{last}");

        let cat = ground.call("shell_start", json!({"command": "cat", "wait_ms": 0})).await?;
        let id = cat["session_id"].as_str().context("no session")?;
        let line = format!("{}\n", "ab\\".repeat(700));
        let mut part = ground
            .call("shell_write", json!({"session_id": id, "text": line.trim_end(), "wait_ms": 2_000}))
            .await?;
        let mut echo = part["output"].as_str().unwrap().to_owned();
        while echo.len() < line.len() {
            part = ground.call("shell_read", json!({"session_id": id, "wait_ms": 2_000})).await?;
            echo.push_str(part["output"].as_str().unwrap());
        }
        ensure_same(&echo, &line, "an echo")?;
        ground.call("shell_stop", json!({"session_id": id})).await?;
    }
    Ok(())
}

fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").current_dir(folder).args(identity).args(args).output()?;
    ensure!(output.status.success(), "git {args:?}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn history_is_followed_to_the_first_commit() -> Result<()> {
    let mut shapes = TextGenerator(19);
    for ground in all_capped_hubs().await? {
        let folder = ground.home.workspace();
        git(&folder, &["init", "-q"])?;
        let (commits, size) = match ground.cap {
            1_000 => (6, 20),
            10_000 => (8, 1_500),
            _ => (8, 12_000),
        };
        let mut text = String::new();
        for number in 0..commits {
            text.push_str(&shapes.text(size, 70).replace(['\r', '\u{1}'], ""));
            text.push_str(&format!("\nline of {number}\n"));
            std::fs::write(folder.join("f.txt"), &text)?;
            git(&folder, &["add", "f.txt"])?;
            let body = "words ".repeat(shapes.number(60) as usize);
            git(&folder, &["commit", "-qm", &format!("commit {number}\n\n{body}")])?;
        }
        let wanted = git(&folder, &["log", "--format=%H"])?;
        let (mut seen, mut skip) = (Vec::new(), Some(0));
        while let Some(from) = skip {
            let reply = ground.call("git_log_structured", json!({"max_count": 1_000, "skip": from})).await?;
            let commits = reply["commits"].as_array().context("no commits")?;
            ensure!(!commits.is_empty(), "{reply}");
            seen.extend(
                commits.iter().map(|commit| commit["message"].as_str().unwrap_or_default().to_owned()),
            );
            skip = reply["next"].as_u64();
        }
        let subjects: Vec<String> = (0..commits).rev().map(|number| format!("commit {number}")).collect();
        ensure!(seen == subjects && wanted.lines().count() == commits, "{seen:?}");

        let (mut blamed, mut from) = (String::new(), Some(1));
        while let Some(line) = from {
            let reply = ground.call("git_blame", json!({"path": "f.txt", "start_line": line})).await?;
            let lines = reply["lines"].as_array().context("no lines")?;
            ensure!(lines[0]["line_number"] == line, "{reply}");
            let shares: u64 =
                reply["commits"].as_array().unwrap().iter().filter_map(|c| c["lines"].as_u64()).sum();
            ensure!(shares == lines.len() as u64, "{reply}");
            for line in lines {
                blamed.push_str(line["content"].as_str().unwrap());
                blamed.push('\n');
            }
            from = reply["next"].as_u64();
        }
        ensure_same(&blamed, &text, "blame")?;

        std::fs::write(folder.join("f.txt"), text.replace("line of", "row of"))?;
        let diff = ground.call("git_diff_structured", json!({})).await?;
        let file = &diff["files"][0];
        let hunks =
            file["hunks"].as_array().unwrap().len() as u64 + file["hunks_omitted"].as_u64().unwrap_or(0);
        let plain = git(&folder, &["diff"])?;
        ensure!(hunks == plain.lines().filter(|line| line.starts_with("@@ ")).count() as u64, "{diff}");
        ensure!(diff["truncated"] == file["hunks_omitted"].is_u64(), "{diff}");
        ground.call("git_changes", json!({})).await?;
    }
    Ok(())
}

#[tokio::test]
async fn pages_are_read_to_their_end() -> Result<()> {
    let mut shapes = TextGenerator(23);
    let paragraphs: String = (0..3_000)
        .map(|number| {
            format!(
                "<p>Paragraph {number} has \"words\" {} of its own.</p>",
                "and more ".repeat(shapes.number(9) as usize)
            )
        })
        .collect();
    let page = format!(
        "<html><head><title>Long</title></head><body><article><h1>Long</h1>{paragraphs}</article></body></html>"
    );
    let router = Router::new().fallback(move || std::future::ready(Html(page.clone())));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://127.0.0.1:{}/", listener.local_addr()?.port());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut whole = Vec::new();
    for ground in all_capped_hubs().await? {
        let mut reply = ground.call("read_page", json!({"url": url, "max_chars": 10_000_000})).await?;
        let mut content = reply["content"].as_str().context("no content")?.to_owned();
        // At the smallest cap a part of the page shows as much as all of it.
        for _ in 0..if ground.cap < 5_000 { 40 } else { MAX_REPLIES } {
            let Some(next) = reply["next"].as_u64() else { break };
            ensure!(next == content.chars().count() as u64, "{next}");
            let more =
                json!({"url": url, "handle": reply["handle"], "offset": next, "max_chars": 10_000_000});
            reply = ground.call("read_page", more).await?;
            content.push_str(reply["content"].as_str().context("no content")?);
        }
        whole.push(content);
    }
    let longest = whole.iter().max_by_key(|content| content.len()).unwrap();
    for number in [0, 1_499, 2_999] {
        ensure!(longest.contains(&format!("Paragraph {number} has")), "{number}");
    }
    for content in &whole {
        ensure!(longest.starts_with(content.as_str()), "{}", first_difference(longest, content));
    }
    Ok(())
}

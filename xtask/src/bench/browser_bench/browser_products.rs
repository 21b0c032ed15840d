//! Both products on the same Chromium, each over stdio.

use super::super::files_bench::stdio_server::StdioServer;
use super::token_estimate::estimate_tokens;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Debian's Chromium; Playwright MCP must not download its own.
const CHROMIUM: &str = "/usr/bin/chromium";
const VIEWPORT: &str = "1280x720";

/// A server, and the token costs of its calls so far.
pub struct BrowserProduct {
    server: StdioServer,
    pub calls: usize,
    pub tokens: usize,
}

/// Result of a call.
pub struct Reply {
    /// All text of it that a model sees.
    pub model_text: String,
    pub duration: Duration,
    pub value: Value,
}

impl Reply {
    pub fn tokens(&self) -> usize {
        estimate_tokens(&self.model_text)
    }

    /// The ref on the first line that contains these words, such as `link "Home"`.
    pub fn element_ref(&self, words: &str) -> Result<String> {
        // Octoprox returns JSON, where quotes in a text are escaped.
        let plain = self.model_text.replace("\\\"", "\"");
        let (_, rest) = plain.split_once(words).with_context(|| format!("{words} is not in {plain}"))?;
        let rest = rest.split_once("[ref=").map(|(_, rest)| rest);
        let name = rest.and_then(|rest| rest.split(']').next());
        Ok(name.with_context(|| format!("{words} has no ref in {plain}"))?.to_owned())
    }

    /// Fails unless the model can read these words.
    pub fn ensure_contains(&self, words: &str) -> Result<()> {
        ensure!(self.model_text.contains(words), "{words:?} is not in {}", self.model_text);
        Ok(())
    }
}

impl BrowserProduct {
    pub fn octoprox(program: &Path, folder: &Path) -> Result<Self> {
        recreate_dir(folder)?;
        let settings = json!({"toolboxes": {"browser": true}, "net": {"allow": ["127.0.0.1"]}});
        let file = folder.with_extension("yaml");
        std::fs::write(&file, settings.to_string())?;
        let mut command = Command::new(program);
        command.args(["stdio", "--config"]).arg(file).current_dir(folder);
        command.env("OCTOPROX_STATE_DIR", folder.join("s")).env("OCTOPROX_WORKSPACE", folder);
        command.env("OCTOPROX_SURFACE", "full");
        Self::start(command)
    }

    pub fn playwright(folder: &Path) -> Result<Self> {
        let variable = |name: &str| {
            std::env::var(name)
                .with_context(|| format!("{name} is not set: run eval \"$(scripts/services env)\" first"))
        };
        recreate_dir(folder)?;
        let mut command = Command::new(variable("NODE24")?);
        command.arg(variable("PLAYWRIGHT_MCP")?).args(["--headless", "--isolated"]);
        command.args(["--executable-path", CHROMIUM, "--viewport-size", VIEWPORT]);
        if is_root()? {
            command.arg("--no-sandbox");
        }
        command.current_dir(folder).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
        Self::start(command)
    }

    fn start(command: Command) -> Result<Self> {
        Ok(Self { server: StdioServer::start(command)?, calls: 0, tokens: 0 })
    }

    /// Makes one call; counts the tokens of the call and of the reply.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Reply> {
        let (value, duration) = self.server.call(tool, &arguments)?;
        let reply = Reply { model_text: model_text(&value), duration, value };
        self.calls += 1;
        self.tokens += estimate_tokens(tool) + estimate_tokens(&arguments.to_string()) + reply.tokens();
        Ok(reply)
    }

    /// Closes the browser, so that no process is left behind.
    pub fn close(mut self) -> Result<()> {
        self.call("browser_close", json!({})).map(drop)
    }
}

fn recreate_dir(folder: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    Ok(std::fs::create_dir_all(folder)?)
}

/// Chromium has no sandbox for root.
fn is_root() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).context("no Uid")?;
    Ok(line.split_whitespace().nth(1) == Some("0"))
}

/// Some clients show a model the text, others the structured content: the larger of the two.
fn model_text(answer: &Value) -> String {
    let content = answer.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = content.filter_map(|block| block.get("text")?.as_str()).collect();
    let texts = texts.join("\n");
    let structure = answer.get("structuredContent").map(Value::to_string).unwrap_or_default();
    if estimate_tokens(&structure) > estimate_tokens(&texts) { structure } else { texts }
}

//! Client of an MCP server over stdio.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio as Pipe};
use std::time::{Duration, Instant};

/// A server process, killed on drop.
pub struct StdioServer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl StdioServer {
    pub fn start(mut command: Command) -> Result<Self> {
        let pipes = command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::null());
        let mut process = pipes.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let to = process.stdin.take().context("no standard input")?;
        let from = BufReader::new(process.stdout.take().context("no standard output")?);
        let mut server = Self { process, to, from, id: 0 };
        let client = json!({"name": "bench", "version": "0"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.request("initialize", &hello)?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())?;
        Ok(server)
    }

    fn send(&mut self, message: &str) -> Result<()> {
        self.to.write_all(format!("{message}\n").as_bytes())?;
        Ok(self.to.flush()?)
    }

    /// The reply, and the time until its last byte; parsing is not counted.
    fn request(&mut self, method: &str, params: &Value) -> Result<(Value, Duration)> {
        self.id += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}).to_string();
        let began = Instant::now();
        self.send(&message)?;
        loop {
            let mut line = String::new();
            ensure!(self.from.read_line(&mut line)? > 0, "the server exited");
            let took = began.elapsed();
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer.get("id").and_then(Value::as_u64) == Some(self.id) {
                let result = answer.get_mut("result").with_context(|| format!("{method}: {line}"))?;
                return Ok((result.take(), took));
            }
        }
    }

    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<(Value, Duration)> {
        let (answer, took) = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        ensure!(answer.get("isError") != Some(&Value::Bool(true)), "{tool}: {answer}");
        Ok((answer, took))
    }
}

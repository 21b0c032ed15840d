//! Client over the pipes of a child process.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub struct StdioClient {
    pub process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl StdioClient {
    pub fn open(mut command: Command) -> Result<Self> {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = process.stdin.take().context("no stdin")?;
        let output = BufReader::new(process.stdout.take().context("no stdout")?).lines();
        Ok(Self { process, input, output, next: 1 })
    }

    /// Closes the input and waits for the process to exit.
    pub async fn close(self) -> Result<()> {
        let Self { mut process, input, .. } = self;
        drop(input);
        process.wait().await?;
        Ok(())
    }

    /// Performs the legacy handshake.
    pub async fn initialize(&mut self, capabilities: Value) -> Result<Value> {
        let params = json!({"protocolVersion": crate::mcp_clients::LEGACY, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.call("initialize", params, crate::mcp_clients::answer_nothing).await?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(answer)
    }

    pub async fn send(&mut self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.input.write_all(&line).await?;
        Ok(self.input.flush().await?)
    }

    pub async fn next_message(&mut self) -> Result<Value> {
        let line = self.output.next_line().await?.context("the output ended")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Sends a request and reads until its reply, answering requests in between.
    pub async fn call(
        &mut self,
        method: &str,
        params: Value,
        answerer: crate::mcp_clients::RequestHandler,
    ) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let message = self.next_message().await?;
            match (message["method"].as_str(), message.get("id")) {
                (Some(asked), Some(their_id)) => {
                    let result = answerer(asked, &message["params"]);
                    self.send(&json!({"jsonrpc": "2.0", "id": their_id, "result": result})).await?;
                }
                (None, Some(answered)) if *answered == json!(id) => return Ok(message),
                _ => {}
            }
        }
    }
}

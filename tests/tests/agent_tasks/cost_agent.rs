//! An agent that calls tools, sees what a model would see, and counts the cost.

use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::answer_nothing;
use octo_tests::stdio_client::StdioClient;
use serde_json::{Value, json};
use std::path::Path;

const BYTES_PER_TOKEN: usize = 4;
/// A folder for the calls of each task, to count their tokens with a tokenizer.
const TRANSCRIPTS_VARIABLE: &str = "OCTOPROX_TRANSCRIPTS";

pub struct Agent {
    pub pipes: StdioClient,
    calls: Vec<CallCost>,
}

/// Cost of one call.
struct CallCost {
    tool: String,
    tokens: usize,
    /// What a model writes and reads.
    arguments: String,
    text: String,
    /// What it would read as JSON.
    structure: String,
}

/// A reply, as text for a model and as structure for checks.
#[derive(Debug)]
pub struct Reply {
    pub is_error: bool,
    pub text: String,
    pub structure: Value,
}

impl Agent {
    pub async fn new(home: &HubHome) -> Result<Self> {
        Self::open(home, &["stdio"]).await
    }

    /// An agent that is listed a surface.
    pub async fn at_surface(home: &HubHome, surface: &str) -> Result<Self> {
        Self::open(home, &["stdio", "--surface", surface]).await
    }

    async fn open(home: &HubHome, args: &[&str]) -> Result<Self> {
        let mut pipes = StdioClient::open(home.command(args)?)?;
        pipes.initialize(json!({})).await?;
        Ok(Self { pipes, calls: Vec::new() })
    }

    /// Continues with another hub process, after the first one was killed.
    pub async fn reconnect(&mut self, home: &HubHome) -> Result<()> {
        let Self { pipes, .. } = Self::new(home).await?;
        self.pipes = pipes;
        Ok(())
    }

    /// Begins another task with the same hub.
    pub fn with(agent: Self) -> Self {
        Self { pipes: agent.pipes, calls: Vec::new() }
    }

    /// Calls a tool and returns its reply or error.
    pub async fn try_call(&mut self, tool: &str, arguments: Value) -> Result<Reply> {
        self.try_call_params(tool, json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool that must succeed, for its whole reply, and returns its structured content.
    pub async fn call_whole(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let meta = json!({"octoprox/max_bytes": 100_000});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let reply = self.try_call_params(tool, params).await?;
        ensure!(!reply.is_error, "{tool}: {}", reply.text);
        Ok(reply.structure)
    }

    async fn try_call_params(&mut self, tool: &str, params: Value) -> Result<Reply> {
        let asked = params["arguments"].to_string();
        let answer = self.pipes.call("tools/call", params, answer_nothing).await?;
        let result = answer.get("result").with_context(|| format!("{tool}: {answer}"))?;
        let blocks = result["content"].as_array().into_iter().flatten();
        let text: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        let text = text.join("\n");
        let structure = result["structuredContent"].clone();
        self.calls.push(CallCost {
            tool: tool.to_owned(),
            tokens: (asked.len() + text.len()).div_ceil(BYTES_PER_TOKEN),
            arguments: asked,
            text: text.clone(),
            structure: structure.to_string(),
        });
        Ok(Reply { is_error: result["isError"] == true, text, structure })
    }

    /// Calls a tool that must succeed, and returns its structured content.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let reply = self.try_call(tool, arguments).await?;
        ensure!(!reply.is_error, "{tool}: {}", reply.text);
        Ok(reply.structure)
    }

    /// Tokens of the task so far.
    pub fn tokens(&self) -> usize {
        self.calls.iter().map(|call| call.tokens).sum()
    }

    /// Number of calls so far.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// What a model writes and reads in the calls.
    pub fn transcript(&self) -> Vec<String> {
        self.calls.iter().flat_map(|call| [call.arguments.clone(), call.text.clone()]).collect()
    }

    /// Prints the cost of the task, and fails if it exceeds the limit.
    pub fn finish(&self, task: &str, max_calls: usize, max_tokens: usize) -> Result<()> {
        let (calls, tokens) = (self.calls.len(), self.tokens());
        println!("| task | calls | tokens |\n|---|---|---|\n| {task} | {calls} | {tokens} |");
        for call in &self.calls {
            println!("  {:>6}  {}", call.tokens, call.tool);
        }
        if let Some(folder) = std::env::var_os(TRANSCRIPTS_VARIABLE) {
            let path = Path::new(&folder).join(format!("{task}.json"));
            let call = |call: &CallCost| json!([call.tool, call.arguments, call.text, call.structure]);
            std::fs::write(path, self.calls.iter().map(call).collect::<Value>().to_string())?;
        }
        ensure!(calls <= max_calls, "{task}: {calls} calls, {max_calls} would do");
        ensure!(tokens <= max_tokens, "{task}: {tokens} tokens, {max_tokens} would do");
        Ok(())
    }
}

//! An agent that calls tools, sees what a model would see, and counts the cost.

use anyhow::{Context, Result, ensure};
use octo_tests::hub_process::HubHome;
use octo_tests::mcp_clients::answer_nothing;
use octo_tests::stdio_client::StdioClient;
use serde_json::{Value, json};

const BYTES_PER_TOKEN: usize = 4;

pub struct Agent {
    pub pipes: StdioClient,
    calls: Vec<CallCost>,
}

/// Cost of one call.
struct CallCost {
    tool: String,
    tokens: usize,
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
        let mut pipes = StdioClient::open(home.command(&["stdio"])?)?;
        pipes.initialize(json!({})).await?;
        Ok(Self { pipes, calls: Vec::new() })
    }

    /// Continues with another hub process, after the first one was killed.
    pub async fn reconnect(&mut self, home: &HubHome) -> Result<()> {
        let Self { pipes, .. } = Self::new(home).await?;
        self.pipes = pipes;
        Ok(())
    }

    /// Calls a tool and returns its reply or error.
    pub async fn try_call(&mut self, tool: &str, arguments: Value) -> Result<Reply> {
        let asked = arguments.to_string().len();
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.pipes.call("tools/call", params, answer_nothing).await?;
        let result = answer.get("result").with_context(|| format!("{tool}: {answer}"))?;
        let blocks = result["content"].as_array().into_iter().flatten();
        let text: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        let text = text.join("\n");
        self.calls
            .push(CallCost { tool: tool.to_owned(), tokens: (asked + text.len()).div_ceil(BYTES_PER_TOKEN) });
        let structure = result["structuredContent"].clone();
        Ok(Reply { is_error: result["isError"] == true, text, structure })
    }

    /// Calls a tool that must succeed, and returns its structured content.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        let reply = self.try_call(tool, arguments).await?;
        ensure!(!reply.is_error, "{tool}: {}", reply.text);
        Ok(reply.structure)
    }

    /// Prints the cost of the task, and fails if it exceeds the limit.
    pub fn finish(&self, task: &str, max_calls: usize, max_tokens: usize) -> Result<()> {
        let (calls, tokens) = (self.calls.len(), self.calls.iter().map(|call| call.tokens).sum::<usize>());
        println!("| task | calls | tokens |\n|---|---|---|\n| {task} | {calls} | {tokens} |");
        for call in &self.calls {
            println!("  {:>6}  {}", call.tokens, call.tool);
        }
        ensure!(calls <= max_calls, "{task}: {calls} calls, {max_calls} would do");
        ensure!(tokens <= max_tokens, "{task}: {tokens} tokens, {max_tokens} would do");
        Ok(())
    }
}

//! Minimal MCP clients of both eras over HTTP.

use crate::http_client::{HttpClient, HttpReply};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

pub const LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";

/// Answers requests of a server.
pub type RequestHandler = fn(method: &str, params: &Value) -> Value;

/// Result of a call, and all messages before it.
#[derive(Debug)]
pub struct Exchange {
    pub messages_before: Vec<Value>,
    pub answer: Value,
}

impl Exchange {
    pub fn result(&self) -> Result<&Value> {
        self.answer.get("result").with_context(|| format!("an error: {}", self.answer))
    }

    pub fn notifications(&self, method: &str) -> Vec<&Value> {
        self.messages_before.iter().filter(|message| message["method"] == method).collect()
    }
}

/// A legacy client with its session.
pub struct LegacyClient {
    pub http: HttpClient,
    pub url: String,
    pub session: String,
    pub initialized: Value,
    answerer: RequestHandler,
    /// Sent with every request.
    headers: Vec<(String, String)>,
    next: AtomicU64,
}

impl LegacyClient {
    pub async fn connect(url: &str, capabilities: Value, answerer: RequestHandler) -> Result<Self> {
        Self::connect_as(url, LEGACY, capabilities, answerer, &[]).await
    }

    pub async fn connect_as(
        url: &str,
        revision: &str,
        capabilities: Value,
        answerer: RequestHandler,
        headers: &[(&str, &str)],
    ) -> Result<Self> {
        let http = HttpClient::default();
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let mut answer = http.post(url, headers, &body).await?;
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let session = answer.header("mcp-session-id").unwrap_or_default().to_owned();
        let initialized = answer.next_message().await?.context("no answer to initialize")?;
        let client = Self {
            http,
            url: url.to_owned(),
            session,
            initialized,
            answerer,
            headers,
            next: AtomicU64::new(1),
        };
        client.notify("notifications/initialized", json!({})).await?;
        Ok(client)
    }

    pub async fn post(&self, body: &Value) -> Result<HttpReply> {
        let mut headers = vec![("mcp-session-id", self.session.as_str()), ("mcp-protocol-version", LEGACY)];
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.http.post(&self.url, &headers, body).await
    }

    pub async fn notify(&self, method: &str, params: Value) -> Result<()> {
        let status = self.post(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await?.status;
        anyhow::ensure!(status == 202, "{method} was answered with {status}");
        Ok(())
    }

    pub async fn call(&self, method: &str, params: Value) -> Result<Exchange> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.call_with_id(json!(id), method, params).await
    }

    pub async fn call_with_id(&self, id: Value, method: &str, params: Value) -> Result<Exchange> {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut answer = self.post(&body).await?;
        let mut messages_before = Vec::new();
        while let Some(message) = answer.next_message().await? {
            if let (Some(method), Some(asked)) = (message["method"].as_str(), message.get("id")) {
                let result = (self.answerer)(method, &message["params"]);
                self.post(&json!({"jsonrpc": "2.0", "id": asked, "result": result})).await?;
            } else if message.get("id").is_some() {
                anyhow::ensure!(message["id"] == id, "an answer for somebody else: {message}");
                return Ok(Exchange { messages_before, answer: message });
            }
            messages_before.push(message);
        }
        bail!("no answer to {method}, status {}", answer.status)
    }

    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Exchange> {
        self.call("tools/call", json!({"name": name, "arguments": arguments})).await
    }
}

/// A modern client; every request is independent.
#[derive(Clone)]
pub struct ModernClient {
    pub http: HttpClient,
    pub url: String,
    pub capabilities: Value,
    answerer: RequestHandler,
}

impl ModernClient {
    pub fn new(url: &str, capabilities: Value, answerer: RequestHandler) -> Self {
        Self { http: HttpClient::default(), url: url.to_owned(), capabilities, answerer }
    }

    pub fn params(&self, mut params: Value) -> Value {
        let about = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        if let (Some(members), Value::Object(about)) = (params.as_object_mut(), about) {
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.extend(about);
            }
        }
        params
    }

    pub async fn post(&self, method: &str, params: Value) -> Result<HttpReply> {
        let params = self.params(params);
        let name = ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str()).unwrap_or_default();
        let name = octo_wire::header::encode(name);
        let mut headers = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.http.post(&self.url, &headers, &body).await
    }

    /// All pages of the list of tools.
    pub async fn list_tools(&self) -> Result<Vec<Value>> {
        let (mut tools, mut params) = (Vec::new(), json!({}));
        loop {
            let turn = self.request("tools/list", params).await?;
            let page = turn.result()?;
            tools.extend(page["tools"].as_array().context("no tools")?.iter().cloned());
            match &page["nextCursor"] {
                Value::Null => return Ok(tools),
                cursor => params = json!({"cursor": cursor}),
            }
        }
    }

    /// Sends one request and returns its reply, without further rounds.
    pub async fn request(&self, method: &str, params: Value) -> Result<Exchange> {
        let mut answer = self.post(method, params).await?;
        let mut messages_before = Vec::new();
        while let Some(message) = answer.next_message().await? {
            if message.get("id").is_some() {
                return Ok(Exchange { messages_before, answer: message });
            }
            messages_before.push(message);
        }
        bail!("no answer to {method}, status {}", answer.status)
    }

    /// Answers questions until the result is complete.
    pub async fn call(&self, method: &str, mut params: Value) -> Result<Exchange> {
        for _ in 0..8 {
            let turn = self.request(method, params.clone()).await?;
            let result = &turn.answer["result"];
            if result["resultType"] != "input_required" {
                return Ok(turn);
            }
            let mut answers = serde_json::Map::new();
            for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
                let method = request["method"].as_str().unwrap_or_default();
                answers.insert(key.clone(), (self.answerer)(method, &request["params"]));
            }
            if let Some(members) = params.as_object_mut() {
                members.insert("inputResponses".into(), Value::Object(answers));
                members.remove("requestState");
                if let Some(state) = result.get("requestState") {
                    members.insert("requestState".into(), state.clone());
                }
            }
        }
        bail!("it keeps asking")
    }

    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Exchange> {
        self.call("tools/call", json!({"name": name, "arguments": arguments})).await
    }
}

/// Answers every request with an empty result.
pub fn answer_nothing(_method: &str, _params: &Value) -> Value {
    json!({})
}

/// Accepts every question of `fix_ask` and `fix_sample`.
pub fn accept_all(method: &str, _params: &Value) -> Value {
    match method {
        "elicitation/create" => json!({"action": "accept", "content": {"answer": "forty-two"}}),
        "sampling/createMessage" => {
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}})
        }
        _ => json!({"roots": [{"uri": "file:///r", "name": "r"}]}),
    }
}

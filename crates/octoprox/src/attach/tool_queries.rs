//! Questions of `octoprox call` and `octoprox tools`: answered by a hub in the same process or by the background hub.

use super::hub_protocol::{Refusal, from_line, to_line};
use crate::app_error::AppError;
use octo_hub::{
    ClientEpoch, ClientFeatures, Entry, Hub, ListChanges, ListOptions, ListRequest, Request, Surface,
    SurfaceChoice,
};
use octo_model::{Caller, Frontend, ItemKind, Json, JsonObject, Operation};
use octo_toolkit::{SilentPeer, SourceState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

/// Timeout for the first listing of a server that a call needs.
const CALL_LISTING_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for servers that are still starting, for a list.
const LISTING_TIMEOUT: Duration = Duration::from_secs(15);
/// Arguments are limited to less by the command.
const MAX_QUERY_BYTES: u64 = 256 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolQuery {
    /// The definition of a tool.
    Find {
        name: String,
    },
    Call {
        name: String,
        arguments: Value,
    },
    List,
    /// What MCP clients are listed.
    Surface {
        requested: Option<Surface>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAnswer {
    Found(Option<Value>),
    Called(CallReply),
    Listed(ToolList),
    Surface(SurfaceReport),
    Failed(Refusal),
}

/// Reply of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallReply {
    /// As the REST API has it.
    pub whole: String,
    pub outcome: Result<Value, Refusal>,
}

/// What MCP clients of a profile are listed, and why.
#[derive(Debug, Serialize, Deserialize)]
pub struct SurfaceReport {
    pub surface: Surface,
    pub reason: String,
    /// Definitions, as clients get them.
    pub listed: Vec<Value>,
    /// Number of all tools of the profile.
    pub all: usize,
}

/// Tools of a profile, and what is missing.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ToolList {
    pub tools: Vec<Value>,
    /// Definitions of disabled toolboxes.
    pub disabled_tools: Vec<Value>,
    pub disabled_toolboxes: Vec<String>,
    /// Toolbox of every native tool, by the tool's name.
    pub toolboxes: Vec<(String, String)>,
    /// Servers whose tools are missing, with the state.
    pub missing_servers: Vec<(String, SourceStatus)>,
    /// Toolbox or server of every listed tool, by the tool's name.
    pub sources: Vec<(String, String)>,
    pub changes: ListChangeCounts,
}

/// How often the lists of clients have changed since the hub started.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ListChangeCounts {
    /// Changes that clients were notified of.
    pub announced: u64,
    /// Bytes of the lists of tools after those changes, which a model reads again.
    pub announced_bytes: u64,
    /// Changes of servers that clients did not see.
    pub withheld: u64,
}

impl From<ListChanges> for ListChangeCounts {
    fn from(ListChanges { announced, announced_bytes, withheld }: ListChanges) -> Self {
        Self { announced, announced_bytes, withheld }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    Starting,
    Down(String),
}

/// Answers queries until the input ends.
pub async fn serve(
    hub: &Hub,
    profile: &str,
    input: &mut (impl AsyncBufRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
) {
    loop {
        let mut line = Vec::new();
        let read = input.take(MAX_QUERY_BYTES).read_until(b'\n', &mut line).await;
        let Some(query) = read.ok().and_then(|_| from_line(&line)) else { return };
        let answer = answer(hub, profile, query, CancellationToken::new()).await;
        if output.write_all(&to_line(&answer)).await.is_err() {
            return;
        }
    }
}

/// Answers one query.
pub async fn answer(hub: &Hub, profile: &str, query: ToolQuery, cancel: CancellationToken) -> ToolAnswer {
    let answered = match query {
        ToolQuery::Find { name } => find(hub, profile, &name)
            .await
            .map(|found| ToolAnswer::Found(found.map(|tool| value(&tool.to_json())))),
        ToolQuery::Call { name, arguments } => {
            Ok(ToolAnswer::Called(call(hub, profile, name, arguments, cancel).await))
        }
        ToolQuery::List => list(hub, profile).await.map(ToolAnswer::Listed),
        ToolQuery::Surface { requested } => surface(hub, profile, requested).await.map(ToolAnswer::Surface),
    };
    answered.unwrap_or_else(|error| ToolAnswer::Failed(Refusal::from(&error)))
}

/// Finds a tool, after the servers have listed theirs.
async fn find(hub: &Hub, profile: &str, name: &str) -> Result<Option<JsonObject>, AppError> {
    let find = |entry: &Entry| entry.item.members.clone();
    if let Some(entry) = hub.view(profile)?.by_name(ItemKind::Tool, name) {
        return Ok(Some(find(entry)));
    }
    hub.wait_until_listed(profile, CALL_LISTING_TIMEOUT).await;
    Ok(hub.view(profile)?.by_name(ItemKind::Tool, name).map(find))
}

/// Calls a tool. An unknown one is refused here, so that the refusal is audited.
async fn call(
    hub: &Hub,
    profile: &str,
    name: String,
    arguments: Value,
    cancel: CancellationToken,
) -> CallReply {
    let operation = Operation::tool(name.clone(), Json::from(arguments));
    let request = Request {
        profile: profile.to_owned(),
        cancel,
        peer: Arc::new(SilentPeer { key: octo_mcp::next_client_key() }),
        ..Request::new(operation, Arc::new(Caller::local()), Frontend::Cli)
    };
    let called = hub.call(request).await;
    let whole = octo_web::tool_reply(&called, &name);
    let outcome = called.outcome.map(|result| value(&result.to_json()));
    CallReply { whole, outcome: outcome.map_err(|error| Refusal::from(&AppError::from(error))) }
}

async fn surface(hub: &Hub, profile: &str, requested: Option<Surface>) -> Result<SurfaceReport, AppError> {
    hub.wait_until_listed(profile, LISTING_TIMEOUT).await;
    let SurfaceChoice { surface, reason } = hub.surface(profile, &Caller::local(), requested)?;
    let mut report = SurfaceReport {
        surface,
        reason: reason.to_string(),
        listed: Vec::new(),
        all: hub.view(profile)?.list(ItemKind::Tool).len(),
    };
    let (epoch, caller) = (ClientEpoch::default(), Caller::local());
    let options = ListOptions { surface: Some(surface), structure: None };
    let mut cursor: Option<String> = None;
    loop {
        let features = ClientFeatures::default();
        let cursor_text = cursor.as_deref();
        let request =
            ListRequest { kind: ItemKind::Tool, caller: &caller, features, options, cursor: cursor_text };
        let page = hub.list_in_epoch(&epoch, profile, request).await?;
        report.listed.extend(page.items.elements().unwrap_or_default().iter().map(value));
        cursor = page.next;
        if cursor.is_none() {
            return Ok(report);
        }
    }
}

async fn list(hub: &Hub, profile: &str) -> Result<ToolList, AppError> {
    hub.wait_until_listed(profile, LISTING_TIMEOUT).await;
    let view = hub.view(profile)?;
    let source = |entry: &Entry| (entry.listed_name.to_string(), entry.item.source.name().to_owned());
    let mut list = ToolList {
        sources: view.list(ItemKind::Tool).iter().map(source).collect(),
        changes: hub.list_changes().into(),
        ..ToolList::default()
    };
    let mut cursor: Option<String> = None;
    loop {
        let page = hub.list(profile, ItemKind::Tool, &Caller::local(), cursor.as_deref()).await?;
        list.tools.extend(page.items.elements().unwrap_or_default().iter().map(value));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    for (name, is_native, state, listing) in hub.sources() {
        match state {
            SourceState::Down(why) => list.missing_servers.push((name.clone(), SourceStatus::Down(why))),
            SourceState::Starting => list.missing_servers.push((name.clone(), SourceStatus::Starting)),
            SourceState::Off(_) if !listing.tools.is_empty() => {
                list.disabled_toolboxes.push(name.clone());
                list.disabled_tools.extend(listing.tools.iter().map(|tool| value(&tool.members.to_json())));
            }
            SourceState::Off(_) | SourceState::Ready => {}
        }
        if is_native {
            list.toolboxes.extend(listing.tools.iter().map(|tool| (tool.key.clone(), name.clone())));
        }
    }
    Ok(list)
}

fn value(json: &Json) -> Value {
    json.to().unwrap_or_default()
}

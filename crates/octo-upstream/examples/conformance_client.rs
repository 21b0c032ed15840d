//! The hub's MCP client under the official conformance suite:
//!
//! `conformance client --command target/debug/examples/conformance_client --requirements 2026-07-28`
//!
//! The suite gives the server's URL as the last argument and the scenario in the environment.

#![expect(clippy::disallowed_methods, reason = "the suite speaks to its client through the environment")]

use aws_lc_rs::digest;
use octo_grants::Net;
use octo_grants::net::{NetRequest as Get, NetSpec};
use octo_model::Secret;
use octo_model::{Caller, Json, JsonObject, Kind, Method, Operation, ToolError};
use octo_oauth::{Auth, ClientIdentity, LoginPrompt, LoginSpec, Logins};
use octo_ports::{Owner, Stores};
use octo_toolkit::{AskError, BoxFuture, CallContext, Listing, ListingState, Peer, Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A person who agrees to everything and keeps the defaults.
struct AcceptingPeer(JsonObject);

impl AcceptingPeer {
    fn peer() -> Arc<dyn Peer> {
        let abilities = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
        Arc::new(Self(Json::from(abilities).members().unwrap_or_default()))
    }
}

impl Peer for AcceptingPeer {
    fn capabilities(&self) -> &JsonObject {
        &self.0
    }

    fn notify(&self, method: &str, params: JsonObject) {
        tracing::info!(method, ?params, "notice");
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async move {
            match method {
                "elicitation/create" => {
                    Ok(JsonObject::new().with("action", "accept").with("content", fill_form(&params)))
                }
                "roots/list" => Ok(JsonObject::new().with("roots", Json::array([]))),
                _ => Err(AskError::Unable),
            }
        })
    }
}

/// The form with its defaults; fields without one are answered with yes.
fn fill_form(params: &JsonObject) -> Json {
    let properties = params.object("requestedSchema").object("properties");
    let fields = properties.iter().filter_map(|(name, schema)| {
        let schema = schema.members().ok()?;
        let yes = (schema.text("type").as_deref() == Some("boolean")).then(|| Json::from(true));
        Some((name.to_owned(), schema.get("default").cloned().or(yes)?))
    });
    fields.collect::<JsonObject>().to_json()
}

struct Client {
    upstream: Arc<Upstream>,
    peer: Arc<dyn Peer>,
}

impl Client {
    fn cx(&self) -> CallContext {
        let deadline = Instant::now() + Duration::from_secs(20);
        CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new())
            .with_peer(Arc::clone(&self.peer))
    }

    async fn ready(&self) -> Result<Arc<Listing>, Failure> {
        let mut listing = self.upstream.listing();
        let settled = listing.wait_for(|now: &ListingState| now.state != SourceState::Starting).await?;
        match &settled.state {
            SourceState::Ready => Ok(settled.listing.clone()),
            other => Err(format!("not ready: {other:?}").into()),
        }
    }

    async fn run(&self, method: Method, name: &str, params: JsonObject) -> Result<JsonObject, ToolError> {
        let mut params = params;
        loop {
            let op = Operation { method, name: name.to_owned(), params: params.clone() };
            let result = self.upstream.run(op, &self.cx()).await?;
            if result.text("resultType").as_deref() != Some("input_required") {
                return Ok(result);
            }
            params = self.answer_input_requests(params, &result).await;
        }
    }

    /// The next round: the same parameters, the answers, and the state unchanged.
    async fn answer_input_requests(&self, mut params: JsonObject, result: &JsonObject) -> JsonObject {
        let mut answers = JsonObject::new();
        for (key, question) in result.object("inputRequests").iter() {
            let question = question.members().unwrap_or_default();
            let method = question.text("method").unwrap_or_default();
            if let Ok(answer) = self.peer.ask(&method, question.object("params")).await {
                answers.set(key, answer);
            }
        }
        params.set("inputResponses", answers);
        params.remove("requestState");
        if let Some(state) = result.get("requestState") {
            params.set("requestState", state.clone());
        }
        params
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<JsonObject, ToolError> {
        self.run(Method::CallTool, tool, JsonObject::new().with("arguments", Json::from(arguments))).await
    }

    async fn request(&self, method: &str, params: JsonObject) -> Result<JsonObject, ToolError> {
        self.upstream.request(method, params, &self.cx()).await
    }
}

async fn scenario(client: &Client, name: &str) -> Result<(), Failure> {
    let lists = client.ready().await?;
    match name {
        "tools_call" => drop(client.call("add_numbers", json!({"a": 2, "b": 3})).await?),
        "elicitation-sep1034-client-defaults" => {
            client.call("test_client_elicitation_defaults", json!({})).await?;
        }
        "sse-retry" => drop(client.call("test_reconnection", json!({})).await?),
        "request-metadata" => drop(client.request("tools/list", JsonObject::new()).await?),
        "sep-2322-client-request-state" => {
            for tool in &lists.tools {
                client.call(&tool.key, json!({})).await?;
            }
        }
        "http-standard-headers" => call_all(client, &lists).await?,
        "http-custom-headers" => {
            let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
            for call in context.get("toolCalls").and_then(Value::as_array).into_iter().flatten() {
                let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
                client.call(name, call.get("arguments").cloned().unwrap_or_default()).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in &lists.tools {
                client.call(&tool.key, json!({"region": "eu", "value": "x"})).await?;
            }
        }
        "json-schema-2020-12-preservation" => echo_schema(client, &lists).await?,
        skills if skills.starts_with("sep-2640-client") => load_skills(client, skills).await?,
        _ => {}
    }
    Ok(())
}

async fn echo_schema(client: &Client, lists: &Listing) -> Result<(), Failure> {
    let tool = lists.tools.iter().find(|tool| tool.key == "json_schema_2020_12_tool").ok_or("no tool")?;
    let schema = tool.members.get("inputSchema").ok_or("no schema")?.clone();
    let arguments = JsonObject::new().with("arguments", JsonObject::new().with("schema", schema));
    client.run(Method::CallTool, "json_schema_echo", arguments).await?;
    Ok(())
}

async fn call_all(client: &Client, lists: &Listing) -> Result<(), ToolError> {
    for tool in &lists.tools {
        client.call(&tool.key, json!({})).await?;
    }
    for prompt in &lists.prompts {
        client.run(Method::GetPrompt, &prompt.key, JsonObject::new()).await?;
    }
    for resource in &lists.resources {
        client.run(Method::ReadResource, &resource.key, JsonObject::new()).await?;
    }
    Ok(())
}

/// Lists skills; if the scenario loads one, reads each file only after the previous one has been verified.
async fn load_skills(client: &Client, scenario: &str) -> Result<(), Failure> {
    let listed = client.request("skills/list", JsonObject::new()).await?;
    if scenario.ends_with("no-prefetch") {
        return Ok(());
    }
    for skill in listed.list("skills") {
        let skill = skill.members()?;
        for file in skill.list("resources") {
            let file = file.members()?;
            let uri = file.text("uri").unwrap_or_default();
            let read = client.run(Method::ReadResource, &uri, JsonObject::new()).await?;
            let contents = read.list("contents").first().ok_or("nothing read")?.members()?;
            verify_skill_file(&skill, &file, &contents.text("text").unwrap_or_default())?;
        }
    }
    Ok(())
}

fn verify_skill_file(skill: &JsonObject, file: &JsonObject, text: &str) -> Result<(), Failure> {
    let size: usize = file.get("size").ok_or("no size")?.to()?;
    let hex: String = digest::digest(&digest::SHA256, text.as_bytes())
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    if size != text.len() || file.text("digest") != Some(format!("sha256:{hex}")) {
        return Err("a file of the skill is not what was listed".into());
    }
    let head =
        text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---")).map_or("", |(head, _)| head);
    for (key, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if skill.object("frontmatter").text(key).as_deref() != Some(value) {
            return Err(format!("the skill's {key} is not what was listed").into());
        }
    }
    Ok(())
}

/// All servers of the suite are on this machine.
const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "::1"];
/// Maximum login attempts.
const MAX_LOGINS: usize = 3;

/// The authorization server that an operator with a client secret would configure.
async fn issuer(net: &Net, url: &str) -> Result<String, Failure> {
    let mut metadata = net.url(url)?;
    metadata.set_path(&format!("/.well-known/oauth-protected-resource{}", metadata.path()));
    let answer = net.send(Get::get(metadata)).await?;
    let document: Value = serde_json::from_slice(&answer.body)?;
    let issuer = document.pointer("/authorization_servers/0").and_then(Value::as_str);
    Ok(issuer.ok_or("the server names no authorization server")?.to_owned())
}

/// Client that logs in when the server requires it.
struct LoginClient {
    logins: Logins,
    net: Net,
    client: Client,
}

impl LoginClient {
    async fn new(url: &str) -> Result<Self, Failure> {
        let allow = LOOPBACK_HOSTS.map(ToOwned::to_owned).into();
        let net = Net::new(NetSpec { allow, ..NetSpec::default() })?;
        let mut identity = ClientIdentity::new("http://localhost:3000/callback");
        identity.metadata_url = Some("https://conformance-test.local/client-metadata.json".to_owned());
        let logins = Logins::new(&Stores::in_memory(), identity)?;
        let mut login = LoginSpec { net: net.clone(), ..LoginSpec::oauth("conformance", url) };
        let context: Value = std::env::var("MCP_CONFORMANCE_CONTEXT")
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        if let Auth::OAuth(oauth) = &mut login.auth {
            let text = |name: &str| context.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
            oauth.client_id = text("client_id");
            oauth.client_secret = text("client_secret").map(Secret::new);
            if oauth.client_secret.is_some() {
                oauth.issuer = Some(issuer(&net, url).await?);
            }
        }
        logins.register(login);
        let mut spec = UpstreamSpec::http("conformance", url);
        spec.net = net.clone();
        spec.accounts = Some(logins.account(Owner::from(&Caller::local()), "conformance")?.into());
        let client = Client { upstream: Upstream::start(spec), peer: AcceptingPeer::peer() };
        Ok(Self { logins, net, client })
    }

    /// Uses the server twice, so that it can change its behaviour in between.
    async fn call_with_login(&self) -> Result<(), Failure> {
        for _ in 0..2 {
            let mut left = MAX_LOGINS;
            while let Err(error) = self.call_everything().await {
                if error.kind != Kind::Unauthorized || left == 0 {
                    return Err(error.into());
                }
                left -= 1;
                self.log_in().await?;
            }
        }
        Ok(())
    }

    async fn call_everything(&self) -> Result<(), ToolError> {
        let listed = self.client.request("tools/list", JsonObject::new()).await?;
        for tool in listed.list("tools") {
            let name = tool.member("name").and_then(|name| name.to_text()).unwrap_or_default();
            self.client.call(&name, json!({})).await?;
        }
        Ok(())
    }

    /// The suite's authorization servers agree and redirect immediately.
    async fn log_in(&self) -> Result<(), Failure> {
        let LoginPrompt::Open { url, .. } = self.logins.begin(&Caller::local(), "conformance").await? else {
            return Err("not with a browser".into());
        };
        let answer = self.net.send(Get { max_redirects: 0, ..Get::get(self.net.url(&url)?) }).await?;
        let back =
            answer.headers.get("location").and_then(|back| back.to_str().ok()).ok_or("not sent back")?;
        self.logins.complete(&Caller::local(), "conformance", back).await?;
        Ok(())
    }
}

async fn run(url: &str, name: &str) -> Result<(), Failure> {
    if name.starts_with("auth/") {
        let guest = LoginClient::new(url).await?;
        let outcome = guest.call_with_login().await;
        guest.client.upstream.stop().await;
        return outcome;
    }
    let client = Client {
        upstream: Upstream::start(UpstreamSpec::http("conformance", url)),
        peer: AcceptingPeer::peer(),
    };
    let outcome = scenario(&client, name).await;
    client.upstream.stop().await;
    outcome
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter("debug,hyper=info,hyper_util=info")
        .init();
    let Some(url) = std::env::args().next_back() else {
        return ExitCode::FAILURE;
    };
    let name = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    match run(&url, &name).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!(%why, "failed");
            ExitCode::FAILURE
        }
    }
}

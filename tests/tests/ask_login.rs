//! A call that meets a server which needs a login, through the real hub, with clients of both eras.

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
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use octo_tests::eventually;
use octo_tests::http::Http;
use octo_tests::hub::{Home, Server};
use octo_tests::mcp::{Legacy, Modern, Turn, silent};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

/// An authorization server that agrees to everything, and a server that it protects.
#[derive(Clone)]
struct World {
    base: String,
    /// Access tokens that are good.
    tokens: Arc<Mutex<HashSet<String>>>,
}

impl World {
    async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let world = Self { base: format!("http://{}", listener.local_addr()?), tokens: Arc::default() };
        let own = world.clone();
        let handler = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let answer = own.answer(&uri, &headers, &body);
            async move { answer }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Ok(world)
    }

    fn answer(&self, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
        let own = &self.base;
        match uri.path() {
            "/.well-known/oauth-protected-resource/mcp" => {
                told(json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]}))
            }
            "/.well-known/oauth-authorization-server" => told(json!({
                "issuer": own, "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token"),
                "registration_endpoint": format!("{own}/register"), "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => (StatusCode::CREATED, told(json!({"client_id": "c"}))).into_response(),
            "/authorize" => {
                let asked = pairs(uri.query().unwrap_or_default());
                let back = format!("{}?code=c0de&state={}&iss={own}", asked["redirect_uri"], asked["state"]);
                (StatusCode::FOUND, [("location", back)]).into_response()
            }
            "/token" => {
                let mut tokens = self.tokens.lock().unwrap();
                let token = format!("token-{}", tokens.len());
                tokens.insert(token.clone());
                told(json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
            }
            "/mcp" => self.mcp(headers, body),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn mcp(&self, headers: &HeaderMap, body: &[u8]) -> Response {
        let token =
            headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.tokens.lock().unwrap().contains(token)) {
            let at = format!(
                "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
                self.base
            );
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", at)]).into_response();
        }
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}})
            }
            "tools/list" => json!({"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "seen"}]}),
            _ => {
                return told(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}));
            }
        };
        told(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

fn told(body: Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

/// The parameters of an address, plain enough for this one.
fn pairs(query: &str) -> BTreeMap<String, String> {
    let plain = |text: &str| text.replace("%3A", ":").replace("%2F", "/");
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (plain(k), plain(v))).collect()
}

/// What a browser does: it goes where it is sent, and from there back to the hub.
async fn browse(url: String) -> Result<()> {
    let away = Http::default().get(&url, &[]).await?;
    let back = away.header("location").context("not sent back")?.replace("localhost", "127.0.0.1");
    let page = Http::default().get(&back, &[]).await?;
    ensure!(page.status == 200, "{}", page.status);
    Ok(())
}

/// A person who agrees to open the address, and does.
fn agrees(_method: &str, params: &Value) -> Value {
    if params["mode"] != "url" {
        return json!({"action": "cancel"});
    }
    let url = params["url"].as_str().unwrap_or_default().to_owned();
    tokio::spawn(async move { browse(url).await.expect("the browser comes back") });
    json!({"action": "accept"})
}

fn declines(_method: &str, _params: &Value) -> Value {
    json!({"action": "decline"})
}

/// A hub whose only server was logged in at once, so that its tools are known, and has forgotten its tokens since.
async fn forgotten() -> Result<(World, Home, Server)> {
    let world = World::start().await?;
    let home = Home::new(
        &json!({"servers": {"w": {"url": format!("{}/mcp", world.base), "auth": {"type": "oauth2-pkce"}}}}),
    )?;
    let hub = home.serve().await?;
    let agent = Modern::new(&hub.mcp(), json!({}), silent);
    let begun = agent.tool("server_login", json!({"server": "w"})).await?;
    let url = begun.result()?["structuredContent"]["url"].as_str().context("no address")?.to_owned();
    browse(url).await?;
    eventually("its tool answers", async || {
        let turn = agent.tool("w__look", json!({})).await.ok()?;
        turn.result().ok().filter(|result| result["isError"] != true).map(drop)
    })
    .await?;
    world.tokens.lock().unwrap().clear();
    Ok((world, home, hub))
}

fn text(turn: &Turn) -> Result<String> {
    Ok(turn.result()?["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_legacy_client_is_asked_within_the_call() -> Result<()> {
    let (_world, _home, hub) = forgotten().await?;
    let client = Legacy::connect(&hub.mcp(), json!({"elicitation": {"url": {}}}), agrees).await?;
    let turn = client.tool("w__look", json!({})).await?;
    assert_eq!(text(&turn)?, "seen", "{turn:?}");
    let asked = turn.notices("elicitation/create");
    assert_eq!((asked.len(), &asked[0]["params"]["mode"]), (1, &json!("url")), "{asked:?}");
    let ended = turn.notices("notifications/elicitation/complete");
    assert_eq!(ended[0]["params"]["elicitationId"], asked[0]["params"]["elicitationId"], "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_modern_client_asks_again_and_gets_its_answer() -> Result<()> {
    let (_world, _home, hub) = forgotten().await?;
    let client = Modern::new(&hub.mcp(), json!({"elicitation": {"url": {}}}), agrees);
    let first = client.once("tools/call", json!({"name": "w__look", "arguments": {}})).await?;
    let result = first.result()?;
    assert_eq!(result["resultType"], "input_required", "{result}");
    let (_, question) =
        result["inputRequests"].as_object().context("no questions")?.iter().next().context("none")?;
    assert_eq!(
        (&question["method"], &question["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url"))
    );
    assert!(question["params"].get("elicitationId").is_none(), "this revision has no such name: {question}");
    // The whole way, with a call that begins anew: the login that waits is shared.
    let turn = client.tool("w__look", json!({})).await?;
    assert_eq!(text(&turn)?, "seen", "{turn:?}");
    assert!(turn.notices("notifications/elicitation/complete").is_empty());
    Ok(())
}

#[tokio::test]
async fn other_clients_and_other_people_see_the_error() -> Result<()> {
    let (_world, _home, hub) = forgotten().await?;
    let plain = Legacy::connect(&hub.mcp(), json!({"elicitation": {}}), agrees).await?;
    let turn = plain.tool("w__look", json!({})).await?;
    let said = text(&turn)?;
    assert!(said.contains("server_login with server w"), "{said}");
    assert!(turn.notices("elicitation/create").is_empty());
    for turn in [
        Legacy::connect(&hub.mcp(), json!({"elicitation": {"url": {}}}), declines)
            .await?
            .tool("w__look", json!({}))
            .await?,
        Modern::new(&hub.mcp(), json!({"elicitation": {"url": {}}}), declines)
            .tool("w__look", json!({}))
            .await?,
    ] {
        assert!(text(&turn)?.contains("declined"), "{turn:?}");
    }
    Ok(())
}

//! A call to a server that requires a login, through the real hub, with clients of both eras.

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
use octo_tests::http_client::{HttpClient, HttpReply};
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{Exchange, LEGACY, LegacyClient, ModernClient, answer_nothing};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An authorization server that accepts everything, and a server that it protects.
#[derive(Clone)]
struct AuthServer {
    base: String,
    /// Valid access tokens.
    tokens: Arc<Mutex<HashSet<String>>>,
    /// Lifetime of an access token in seconds. Short-lived ones come with a refresh token, which is always refused.
    token_ttl: u32,
}

const HOUR: u32 = 3600;

impl AuthServer {
    async fn start() -> Result<Self> {
        Self::with_token_ttl(HOUR).await
    }

    async fn with_token_ttl(token_ttl: u32) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let world =
            Self { base: format!("http://{}", listener.local_addr()?), tokens: Arc::default(), token_ttl };
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
                json_response(json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]}))
            }
            "/.well-known/oauth-authorization-server" => json_response(json!({
                "issuer": own, "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token"),
                "registration_endpoint": format!("{own}/register"), "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => (StatusCode::CREATED, json_response(json!({"client_id": "c"}))).into_response(),
            "/authorize" => {
                let asked = query_pairs(uri.query().unwrap_or_default());
                let back = format!("{}?code=c0de&state={}&iss={own}", asked["redirect_uri"], asked["state"]);
                (StatusCode::FOUND, [("location", back)]).into_response()
            }
            "/token" => {
                if query_pairs(&String::from_utf8_lossy(body))["grant_type"] == "refresh_token" {
                    let refused = json_response(json!({"error": "invalid_grant"}));
                    return (StatusCode::BAD_REQUEST, refused).into_response();
                }
                let mut tokens = self.tokens.lock().unwrap();
                let token = format!("token-{}", tokens.len());
                tokens.insert(token.clone());
                let mut given =
                    json!({"access_token": token, "token_type": "Bearer", "expires_in": self.token_ttl});
                if self.token_ttl < HOUR {
                    given["refresh_token"] = json!("refresh");
                }
                json_response(given)
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
                return json_response(
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}),
                );
            }
        };
        json_response(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

fn json_response(body: Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

/// Query parameters of a URL, decoding only `:` and `/`.
fn query_pairs(query: &str) -> BTreeMap<String, String> {
    let plain = |text: &str| text.replace("%3A", ":").replace("%2F", "/");
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (plain(k), plain(v))).collect()
}

/// Acts as a browser: follows the redirects and returns to the hub.
async fn complete_in_browser(url: String) -> Result<()> {
    let away = HttpClient::default().get(&url, &[]).await?;
    let back = away.header("location").context("not sent back")?.replace("localhost", "127.0.0.1");
    let page = HttpClient::default().get(&back, &[]).await?;
    ensure!(page.status == 200, "{}", page.status);
    Ok(())
}

/// A person who agrees to open the URL, and does.
fn accept_and_browse(_method: &str, params: &Value) -> Value {
    if params["mode"] != "url" {
        return json!({"action": "cancel"});
    }
    let url = params["url"].as_str().unwrap_or_default().to_owned();
    tokio::spawn(async move { complete_in_browser(url).await.expect("the browser comes back") });
    json!({"action": "accept"})
}

fn decline(_method: &str, _params: &Value) -> Value {
    json!({"action": "decline"})
}

const ANN_TOKEN: &str = "anns-token-for-tests";
const BOSS_TOKEN: &str = "boss-token-for-tests";
/// The token's hash in the settings.
const ANN_SHA256: &str = "87c272b4612ce783026bcb53d51116a9bf8b8b1e5415e8fac68a73dab887473f";
const BOSS_SHA256: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";

/// Sends a request to the admin API; returns `result`.
async fn admin_result(hub: &RunningHub, method: &str, path: &str, token: &str) -> Result<Value> {
    let bearer = format!("Bearer {token}");
    let url = format!("{}{path}", hub.admin_url);
    let answer =
        HttpClient::default().send(method, &url, &[("authorization", &bearer)], Bytes::new()).await?;
    Ok(answer.json().await?["result"].clone())
}

/// A page that a browser was shown, and its cookie.
struct BrowserPage {
    status: u16,
    text: String,
    location: Option<String>,
    cookie: Option<String>,
}

/// Sends one request of a browser with these headers.
async fn browser_request(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<BrowserPage> {
    let url = url.replace("localhost", "127.0.0.1");
    let answer = HttpClient::default().send(method, &url, headers, Bytes::new()).await?;
    let header = |name: &str| answer.header(name).map(str::to_owned);
    let (status, location, cookie) = (answer.status, header("location"), header("set-cookie"));
    Ok(BrowserPage { status, location, cookie, text: answer.text().await? })
}

/// The part of a `Set-Cookie` that a browser sends back.
fn cookie_pair(cookie: &str) -> &str {
    cookie.split(';').next().unwrap_or_default()
}

/// Starts a login as this caller in a separate browser; returns the callback URL and the cookie.
async fn begin_in_browser(hub: &RunningHub, token: &str) -> Result<(String, String)> {
    let begun = admin_result(hub, "POST", "/servers/w/auth/start", token).await?;
    let start = begun["url"].as_str().context("no address")?;
    let left = browser_request("POST", start, &[]).await?;
    let away = HttpClient::default().get(&left.location.context("not sent away")?, &[]).await?;
    let cookie = left.cookie.context("no cookie")?;
    Ok((away.header("location").context("not sent back")?.to_owned(), cookie_pair(&cookie).to_owned()))
}

async fn is_connected(hub: &RunningHub, token: &str) -> Result<bool> {
    Ok(admin_result(hub, "GET", "/servers/w/auth/status", token).await?["connected"] == true)
}

async fn hub_with_two_callers(life: u32) -> Result<(AuthServer, HubHome, RunningHub)> {
    let world = AuthServer::with_token_ttl(life).await?;
    let home = HubHome::new(&json!({
        "servers": {"w": {"url": format!("{}/mcp", world.base), "auth": {"type": "oauth2-pkce"}}},
        "auth": {"tokens": [
            {"name": "ann", "sha256": ANN_SHA256}, {"name": "boss", "sha256": BOSS_SHA256, "scopes": ["admin"]},
        ]},
    }))?;
    let hub = home.serve().await?;
    Ok((world, home, hub))
}

#[tokio::test]
async fn only_the_browser_that_began_a_login_finishes_it() -> Result<()> {
    let (_world, _home, hub) = hub_with_two_callers(HOUR).await?;
    let begun = admin_result(&hub, "POST", "/servers/w/auth/start", ANN_TOKEN).await?;
    let (start, auth_url) = (begun["url"].as_str().unwrap(), begun["auth_url"].as_str().unwrap_or_default());
    let state = begun["state"].as_str().unwrap_or_default();
    assert!(!state.is_empty() && auth_url.contains(state) && start.contains("/auth/start/"), "{begun}");
    assert!(!start.contains(state), "the page is no hint at the state");

    // Looking changes nothing, and other pages cannot press the button.
    let page = browser_request("GET", start, &[]).await?;
    assert_eq!((page.status, page.cookie), (200, None));
    assert!(page.text.contains("ann asked this hub for a login at w"), "{}", page.text);
    for header in [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        let refused = browser_request("POST", start, &[header]).await?;
        assert_eq!((refused.status, refused.cookie), (403, None), "{header:?}");
    }
    assert_eq!(browser_request("GET", &format!("{start}x"), &[]).await?.status, 404);
    assert_eq!(browser_request("POST", &format!("{start}x"), &[]).await?.status, 404);

    let own = format!("http://{}", hub.admin_url.trim_start_matches("http://"));
    let left = browser_request("POST", start, &[("origin", &own), ("sec-fetch-site", "same-origin")]).await?;
    assert_eq!((left.status, left.location.as_deref()), (303, Some(auth_url)));
    let cookie = left.cookie.context("no cookie")?;
    for part in ["; HttpOnly", "; SameSite=Lax", "; Path=/auth/callback", "; Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "the callback is not https: {cookie}");
    let cookie = cookie_pair(&cookie);

    // Another browser comes too late; the same one may press the button again.
    assert_eq!(browser_request("POST", start, &[]).await?.status, 403);
    assert_eq!(browser_request("POST", start, &[("cookie", cookie)]).await?.status, 303);

    let away = HttpClient::default().get(auth_url, &[]).await?;
    let back = away.header("location").context("not sent back")?.to_owned();
    let (name, _) = cookie.split_once('=').context("no value")?;
    for wrong in [
        String::new(),
        "other=1".to_owned(),
        format!("{name}=x"),
        format!("{cookie}x"),
        format!("{cookie}; {name}=x"),
    ] {
        let page = browser_request("GET", &back, &[("cookie", &wrong)]).await?;
        assert!(page.text.contains("Almost done"), "{wrong}: {}", page.text);
        assert!(!is_connected(&hub, ANN_TOKEN).await?, "{wrong}");
    }
    let page = browser_request("GET", &back, &[("cookie", cookie)]).await?;
    assert!(page.text.contains("You are logged in"), "{}", page.text);
    assert!(is_connected(&hub, ANN_TOKEN).await? && !is_connected(&hub, BOSS_TOKEN).await?);

    // Nothing of it counts twice.
    assert!(browser_request("GET", &back, &[("cookie", cookie)]).await?.text.contains("Almost done"));
    assert_eq!(browser_request("POST", start, &[("cookie", cookie)]).await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn a_login_of_somebody_else_is_not_finished_in_my_browser() -> Result<()> {
    let (_world, _home, hub) = hub_with_two_callers(HOUR).await?;
    let (anns, anns_cookie) = begin_in_browser(&hub, ANN_TOKEN).await?;
    let (boss_back, boss_cookie) = begin_in_browser(&hub, BOSS_TOKEN).await?;
    // Ann's code, opened by the boss; the boss's, by Ann; and each with the cookie under the other's name.
    let value = |cookie: &str| cookie.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or_default();
    let name = |cookie: &str| cookie.split_once('=').map(|(name, _)| name.to_owned()).unwrap_or_default();
    let renamed = format!("{}={}", name(&anns_cookie), value(&boss_cookie));
    for (back, cookie) in [(&anns, &boss_cookie), (&boss_back, &anns_cookie), (&anns, &renamed)] {
        let page = browser_request("GET", back, &[("cookie", cookie)]).await?;
        assert!(page.text.contains("Almost done"), "{}", page.text);
    }
    // A mixed answer: the code of one login with the state of the other, and another issuer than was asked.
    let state = |back: &str| {
        query_pairs(back.split_once('?').map(|(_, query)| query).unwrap_or_default())["state"].clone()
    };
    let foreign = anns.replace("&iss=http", "&iss=https");
    let page = browser_request("GET", &foreign, &[("cookie", &anns_cookie)]).await?;
    assert!(page.text.contains("another authorization server"), "{}", page.text);
    let replaced = boss_back.replace(&state(&boss_back), &state(&anns));
    let page = browser_request("GET", &replaced, &[("cookie", &boss_cookie)]).await?;
    assert!(page.text.contains("Almost done"), "{}", page.text);
    assert!(!is_connected(&hub, ANN_TOKEN).await? && !is_connected(&hub, BOSS_TOKEN).await?);

    // A login that was begun again is finished with its own cookie only; one that was begun with a paste in mind, by pasting.
    let (again, again_cookie) = begin_in_browser(&hub, ANN_TOKEN).await?;
    assert!(browser_request("GET", &again, &[("cookie", &anns_cookie)]).await?.text.contains("Almost done"));
    let both = format!("{anns_cookie}; {again_cookie}");
    assert!(browser_request("GET", &again, &[("cookie", &both)]).await?.text.contains("You are logged in"));
    let bearer = format!("Bearer {BOSS_TOKEN}");
    let complete = format!("{}/servers/w/auth/complete", hub.admin_url);
    let pasted = HttpClient::default()
        .post(&complete, &[("authorization", &bearer)], &json!({"answer": boss_back}))
        .await?;
    assert_eq!(pasted.status, 200);
    assert!(is_connected(&hub, ANN_TOKEN).await? && is_connected(&hub, BOSS_TOKEN).await?);
    Ok(())
}

/// A legacy client with its notification stream, which subscribes to warnings.
async fn notification_stream(hub: &RunningHub, token: &str) -> Result<(LegacyClient, HttpReply)> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let client =
        LegacyClient::connect_as(&hub.mcp_url(), LEGACY, json!({}), answer_nothing, &headers).await?;
    client.call("logging/setLevel", json!({"level": "warning"})).await?.result()?;
    let session = client.session.clone();
    let headers = [
        ("authorization", bearer.as_str()),
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let stream = client.http.get(&hub.mcp_url(), &headers).await?;
    ensure!(stream.status == 200, "{}", stream.status);
    Ok((client, stream))
}

/// The next log message of a stream.
async fn next_log_message(stream: &mut HttpReply) -> Result<Value> {
    loop {
        let message = stream.next_message().await?.context("the stream ended")?;
        if message["method"] == "notifications/message" {
            return Ok(message["params"].clone());
        }
    }
}

/// Login checks of `/ready`, as a caller sees them.
async fn login_checks(hub: &RunningHub, token: &str) -> Result<Vec<Value>> {
    let bearer = format!("Bearer {token}");
    let ready =
        HttpClient::default().get(&format!("{}/ready", hub.base_url), &[("authorization", &bearer)]).await?;
    let ready = ready.json().await?;
    let checks = ready["checks"].as_array().context("no checks")?;
    let about_logins = |check: &&Value| check["name"].as_str().is_some_and(|name| name.starts_with("login"));
    Ok(checks.iter().filter(about_logins).cloned().collect())
}

#[tokio::test]
async fn an_unused_login_that_is_lost_is_told_of_everywhere() -> Result<()> {
    let (_world, home, hub) = hub_with_two_callers(6).await?;
    let (_client, mut stream) = notification_stream(&hub, ANN_TOKEN).await?;
    let (_other, mut others) = notification_stream(&hub, BOSS_TOKEN).await?;
    let (anns, cookie) = begin_in_browser(&hub, ANN_TOKEN).await?;
    assert!(browser_request("GET", &anns, &[("cookie", &cookie)]).await?.text.contains("You are logged in"));
    assert!(login_checks(&hub, ANN_TOKEN).await?.is_empty());

    let warning = tokio::time::timeout(Duration::from_secs(20), next_log_message(&mut stream)).await??;
    assert_eq!(warning["level"], "warning", "{warning}");
    assert!(
        warning["data"].as_str().is_some_and(|text| text.contains("server_login with server w")),
        "{warning}"
    );

    let (own, admins) = (login_checks(&hub, ANN_TOKEN).await?, login_checks(&hub, BOSS_TOKEN).await?);
    assert_eq!(own, admins, "an administrator sees whose it was");
    assert_eq!(
        (own.len(), &own[0]["name"], &own[0]["state"]),
        (1, &json!("login w of ann"), &json!("degraded"))
    );
    assert!(own[0]["reason"].as_str().is_some_and(|why| why.contains("server_login")), "{own:?}");

    let (_, out, err) = home.run(&["doctor", "--json"]).await?;
    let findings: Value = serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?;
    let lost = findings["checks"].as_array().context("none")?.iter().find(|one| one["name"] == "login");
    let lost = lost.with_context(|| format!("{findings}"))?;
    assert_eq!(lost["state"], "warn", "{lost}");
    assert!(lost["message"].as_str().is_some_and(|text| text.contains("of ann at w was lost")), "{lost}");
    assert!(
        lost["hint"].as_str().is_some_and(|text| text.contains("server_login with server w, as ann")),
        "{lost}"
    );

    let listed = admin_result(&hub, "GET", "/servers/w", ANN_TOKEN).await?;
    assert_eq!(listed["servers"][0]["state"], "needs_login", "{listed}");
    assert_eq!(listed["servers"][0]["login"]["state"], "lost", "{listed}");
    // It was nobody else's business.
    let silence = tokio::time::timeout(Duration::from_millis(300), next_log_message(&mut others)).await;
    assert!(silence.is_err(), "{silence:?}");
    Ok(())
}

#[tokio::test]
async fn the_command_line_names_a_lost_login_and_what_to_run() -> Result<()> {
    let world = AuthServer::with_token_ttl(6).await?;
    let server = json!({"url": format!("{}/mcp", world.base), "auth": {"type": "oauth2-pkce"}});
    let home = HubHome::new(&json!({"servers": {"w": server}}))?;
    let hub = home.serve().await?;
    let begun = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing)
        .call_tool("server_login", json!({"server": "w"}))
        .await?;
    let begun = begun.result()?["structuredContent"].clone();
    assert_eq!(begun["url"], begun["auth_url"], "nobody else can come here: {begun}");
    complete_in_browser(begun["url"].as_str().context("no address")?.to_owned()).await?;
    let listed = eventually("the login is lost", async || {
        let (_, out, _) = home.run(&["servers", "list", "--json"]).await.ok()?;
        let listed: Value = serde_json::from_str(&out).ok()?;
        (listed["servers"][0]["state"] == "needs_login").then_some(listed)
    })
    .await?;
    let why = listed["servers"][0]["reason"].as_str().unwrap_or_default();
    assert!(why.ends_with("octoprox login w"), "{listed}");
    let (_, out, _) = home.run(&["doctor", "--json"]).await?;
    let findings: Value = serde_json::from_str(&out)?;
    let next = findings["checks"].as_array().context("none")?.iter().find(|one| one["name"] == "login");
    assert_eq!(next.context("no finding")?["hint"], "octoprox login w", "{findings}");
    Ok(())
}

/// A hub whose only server was logged in, so that its tools are known, and whose tokens have been revoked since.
async fn hub_with_revoked_tokens() -> Result<(AuthServer, HubHome, RunningHub)> {
    let world = AuthServer::start().await?;
    let home = HubHome::new(
        &json!({"servers": {"w": {"url": format!("{}/mcp", world.base), "auth": {"type": "oauth2-pkce"}}}}),
    )?;
    let hub = home.serve().await?;
    let agent = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let begun = agent.call_tool("server_login", json!({"server": "w"})).await?;
    let url = begun.result()?["structuredContent"]["url"].as_str().context("no address")?.to_owned();
    complete_in_browser(url).await?;
    eventually("its tool answers", async || {
        let turn = agent.call_tool("w__look", json!({})).await.ok()?;
        turn.result().ok().filter(|result| result["isError"] != true).map(drop)
    })
    .await?;
    world.tokens.lock().unwrap().clear();
    Ok((world, home, hub))
}

fn result_text(turn: &Exchange) -> Result<String> {
    Ok(turn.result()?["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_legacy_client_is_asked_within_the_call() -> Result<()> {
    let (_world, _home, hub) = hub_with_revoked_tokens().await?;
    let client =
        LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {"url": {}}}), accept_and_browse).await?;
    let turn = client.call_tool("w__look", json!({})).await?;
    assert_eq!(result_text(&turn)?, "seen", "{turn:?}");
    let asked = turn.notifications("elicitation/create");
    assert_eq!((asked.len(), &asked[0]["params"]["mode"]), (1, &json!("url")), "{asked:?}");
    let ended = turn.notifications("notifications/elicitation/complete");
    assert_eq!(ended[0]["params"]["elicitationId"], asked[0]["params"]["elicitationId"], "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_modern_client_asks_again_and_gets_its_answer() -> Result<()> {
    let (_world, _home, hub) = hub_with_revoked_tokens().await?;
    let client = ModernClient::new(&hub.mcp_url(), json!({"elicitation": {"url": {}}}), accept_and_browse);
    let first = client.request("tools/call", json!({"name": "w__look", "arguments": {}})).await?;
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
    let turn = client.call_tool("w__look", json!({})).await?;
    assert_eq!(result_text(&turn)?, "seen", "{turn:?}");
    assert!(turn.notifications("notifications/elicitation/complete").is_empty());
    Ok(())
}

#[tokio::test]
async fn other_clients_and_other_people_see_the_error() -> Result<()> {
    let (_world, _home, hub) = hub_with_revoked_tokens().await?;
    let plain = LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {}}), accept_and_browse).await?;
    let turn = plain.call_tool("w__look", json!({})).await?;
    let said = result_text(&turn)?;
    assert!(said.contains("server_login with server w"), "{said}");
    assert!(turn.notifications("elicitation/create").is_empty());
    for turn in [
        LegacyClient::connect(&hub.mcp_url(), json!({"elicitation": {"url": {}}}), decline)
            .await?
            .call_tool("w__look", json!({}))
            .await?,
        ModernClient::new(&hub.mcp_url(), json!({"elicitation": {"url": {}}}), decline)
            .call_tool("w__look", json!({}))
            .await?,
    ] {
        assert!(result_text(&turn)?.contains("declined"), "{turn:?}");
    }
    Ok(())
}

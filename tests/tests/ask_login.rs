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
use octo_tests::http::{Answer, Http};
use octo_tests::hub::{Home, Server};
use octo_tests::mcp::{LEGACY, Legacy, Modern, Turn, silent};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An authorization server that agrees to everything, and a server that it protects.
#[derive(Clone)]
struct World {
    base: String,
    /// Access tokens that are good.
    tokens: Arc<Mutex<HashSet<String>>>,
    /// Seconds that an access token lives for. Short ones come with a refresh token, which nobody takes.
    life: u32,
}

const HOUR: u32 = 3600;

impl World {
    async fn start() -> Result<Self> {
        Self::with_life(HOUR).await
    }

    async fn with_life(life: u32) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let world = Self { base: format!("http://{}", listener.local_addr()?), tokens: Arc::default(), life };
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
                if pairs(&String::from_utf8_lossy(body))["grant_type"] == "refresh_token" {
                    let refused = told(json!({"error": "invalid_grant"}));
                    return (StatusCode::BAD_REQUEST, refused).into_response();
                }
                let mut tokens = self.tokens.lock().unwrap();
                let token = format!("token-{}", tokens.len());
                tokens.insert(token.clone());
                let mut given =
                    json!({"access_token": token, "token_type": "Bearer", "expires_in": self.life});
                if self.life < HOUR {
                    given["refresh_token"] = json!("refresh");
                }
                told(given)
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

const ANN: &str = "anns-token-for-tests";
const BOSS: &str = "boss-token-for-tests";
/// What the settings know of them.
const ANNS_HASH: &str = "87c272b4612ce783026bcb53d51116a9bf8b8b1e5415e8fac68a73dab887473f";
const BOSS_HASH: &str = "6af592c3a55c8c04e20580a19cf8d500bd80394312f8332c9cad79d745e4e10d";

/// A request of the admin API: what it answers under `result`.
async fn told_by(hub: &Server, method: &str, path: &str, token: &str) -> Result<Value> {
    let bearer = format!("Bearer {token}");
    let url = format!("{}{path}", hub.admin);
    let answer = Http::default().send(method, &url, &[("authorization", &bearer)], Bytes::new()).await?;
    Ok(answer.json().await?["result"].clone())
}

/// What a browser was shown, and the cookie that it was given.
struct Shown {
    status: u16,
    text: String,
    location: Option<String>,
    cookie: Option<String>,
}

/// One request of a browser that came from these headers' page.
async fn seen(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Shown> {
    let url = url.replace("localhost", "127.0.0.1");
    let answer = Http::default().send(method, &url, headers, Bytes::new()).await?;
    let header = |name: &str| answer.header(name).map(str::to_owned);
    let (status, location, cookie) = (answer.status, header("location"), header("set-cookie"));
    Ok(Shown { status, location, cookie, text: answer.text().await? })
}

/// The part of a `Set-Cookie` that a browser sends back.
fn sent_back(cookie: &str) -> &str {
    cookie.split(';').next().unwrap_or_default()
}

/// Begins a login as this caller, in a browser of their own: where the authorization server sends it back to, and its cookie.
async fn begun_in_browser(hub: &Server, token: &str) -> Result<(String, String)> {
    let begun = told_by(hub, "POST", "/servers/w/auth/start", token).await?;
    let start = begun["url"].as_str().context("no address")?;
    let left = seen("POST", start, &[]).await?;
    let away = Http::default().get(&left.location.context("not sent away")?, &[]).await?;
    let cookie = left.cookie.context("no cookie")?;
    Ok((away.header("location").context("not sent back")?.to_owned(), sent_back(&cookie).to_owned()))
}

async fn is_connected(hub: &Server, token: &str) -> Result<bool> {
    Ok(told_by(hub, "GET", "/servers/w/auth/status", token).await?["connected"] == true)
}

async fn hub_of_two(life: u32) -> Result<(World, Home, Server)> {
    let world = World::with_life(life).await?;
    let home = Home::new(&json!({
        "servers": {"w": {"url": format!("{}/mcp", world.base), "auth": {"type": "oauth2-pkce"}}},
        "auth": {"tokens": [
            {"name": "ann", "sha256": ANNS_HASH}, {"name": "boss", "sha256": BOSS_HASH, "scopes": ["admin"]},
        ]},
    }))?;
    let hub = home.serve().await?;
    Ok((world, home, hub))
}

#[tokio::test]
async fn only_the_browser_that_began_a_login_finishes_it() -> Result<()> {
    let (_world, _home, hub) = hub_of_two(HOUR).await?;
    let begun = told_by(&hub, "POST", "/servers/w/auth/start", ANN).await?;
    let (start, auth_url) = (begun["url"].as_str().unwrap(), begun["auth_url"].as_str().unwrap_or_default());
    let state = begun["state"].as_str().unwrap_or_default();
    assert!(!state.is_empty() && auth_url.contains(state) && start.contains("/auth/start/"), "{begun}");
    assert!(!start.contains(state), "the page is no hint at the state");

    // Looking changes nothing, and other pages cannot press the button.
    let page = seen("GET", start, &[]).await?;
    assert_eq!((page.status, page.cookie), (200, None));
    assert!(page.text.contains("ann asked this hub for a login at w"), "{}", page.text);
    for header in [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        let refused = seen("POST", start, &[header]).await?;
        assert_eq!((refused.status, refused.cookie), (403, None), "{header:?}");
    }
    assert_eq!(seen("GET", &format!("{start}x"), &[]).await?.status, 404);
    assert_eq!(seen("POST", &format!("{start}x"), &[]).await?.status, 404);

    let own = format!("http://{}", hub.admin.trim_start_matches("http://"));
    let left = seen("POST", start, &[("origin", &own), ("sec-fetch-site", "same-origin")]).await?;
    assert_eq!((left.status, left.location.as_deref()), (303, Some(auth_url)));
    let cookie = left.cookie.context("no cookie")?;
    for part in ["; HttpOnly", "; SameSite=Lax", "; Path=/auth/callback", "; Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "the callback is not https: {cookie}");
    let cookie = sent_back(&cookie);

    // Another browser comes too late; the same one may press the button again.
    assert_eq!(seen("POST", start, &[]).await?.status, 403);
    assert_eq!(seen("POST", start, &[("cookie", cookie)]).await?.status, 303);

    let away = Http::default().get(auth_url, &[]).await?;
    let back = away.header("location").context("not sent back")?.to_owned();
    let (name, _) = cookie.split_once('=').context("no value")?;
    for wrong in [
        String::new(),
        "other=1".to_owned(),
        format!("{name}=x"),
        format!("{cookie}x"),
        format!("{cookie}; {name}=x"),
    ] {
        let page = seen("GET", &back, &[("cookie", &wrong)]).await?;
        assert!(page.text.contains("Almost done"), "{wrong}: {}", page.text);
        assert!(!is_connected(&hub, ANN).await?, "{wrong}");
    }
    let page = seen("GET", &back, &[("cookie", cookie)]).await?;
    assert!(page.text.contains("You are logged in"), "{}", page.text);
    assert!(is_connected(&hub, ANN).await? && !is_connected(&hub, BOSS).await?);

    // Nothing of it counts twice.
    assert!(seen("GET", &back, &[("cookie", cookie)]).await?.text.contains("Almost done"));
    assert_eq!(seen("POST", start, &[("cookie", cookie)]).await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn a_login_of_somebody_else_is_not_finished_in_my_browser() -> Result<()> {
    let (_world, _home, hub) = hub_of_two(HOUR).await?;
    let (anns, anns_cookie) = begun_in_browser(&hub, ANN).await?;
    let (boss_back, boss_cookie) = begun_in_browser(&hub, BOSS).await?;
    // Ann's code, opened by the boss; the boss's, by Ann; and each with the cookie under the other's name.
    let value = |cookie: &str| cookie.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or_default();
    let name = |cookie: &str| cookie.split_once('=').map(|(name, _)| name.to_owned()).unwrap_or_default();
    let renamed = format!("{}={}", name(&anns_cookie), value(&boss_cookie));
    for (back, cookie) in [(&anns, &boss_cookie), (&boss_back, &anns_cookie), (&anns, &renamed)] {
        let page = seen("GET", back, &[("cookie", cookie)]).await?;
        assert!(page.text.contains("Almost done"), "{}", page.text);
    }
    // A mixed answer: the code of one login with the state of the other, and another issuer than was asked.
    let state =
        |back: &str| pairs(back.split_once('?').map(|(_, query)| query).unwrap_or_default())["state"].clone();
    let foreign = anns.replace("&iss=http", "&iss=https");
    let page = seen("GET", &foreign, &[("cookie", &anns_cookie)]).await?;
    assert!(page.text.contains("another authorization server"), "{}", page.text);
    let replaced = boss_back.replace(&state(&boss_back), &state(&anns));
    let page = seen("GET", &replaced, &[("cookie", &boss_cookie)]).await?;
    assert!(page.text.contains("Almost done"), "{}", page.text);
    assert!(!is_connected(&hub, ANN).await? && !is_connected(&hub, BOSS).await?);

    // A login that was begun again is finished with its own cookie only; one that was begun with a paste in mind, by pasting.
    let (again, again_cookie) = begun_in_browser(&hub, ANN).await?;
    assert!(seen("GET", &again, &[("cookie", &anns_cookie)]).await?.text.contains("Almost done"));
    let both = format!("{anns_cookie}; {again_cookie}");
    assert!(seen("GET", &again, &[("cookie", &both)]).await?.text.contains("You are logged in"));
    let bearer = format!("Bearer {BOSS}");
    let complete = format!("{}/servers/w/auth/complete", hub.admin);
    let pasted =
        Http::default().post(&complete, &[("authorization", &bearer)], &json!({"answer": boss_back})).await?;
    assert_eq!(pasted.status, 200);
    assert!(is_connected(&hub, ANN).await? && is_connected(&hub, BOSS).await?);
    Ok(())
}

/// A client of the legacy era with its stream for notices, which wants warnings.
async fn listener(hub: &Server, token: &str) -> Result<(Legacy, Answer)> {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let client = Legacy::connect_as(&hub.mcp(), LEGACY, json!({}), silent, &headers).await?;
    client.call("logging/setLevel", json!({"level": "warning"})).await?.result()?;
    let session = client.session.clone();
    let headers = [
        ("authorization", bearer.as_str()),
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let stream = client.http.get(&hub.mcp(), &headers).await?;
    ensure!(stream.status == 200, "{}", stream.status);
    Ok((client, stream))
}

/// The next log message of a stream.
async fn logged(stream: &mut Answer) -> Result<Value> {
    loop {
        let message = stream.message().await?.context("the stream ended")?;
        if message["method"] == "notifications/message" {
            return Ok(message["params"].clone());
        }
    }
}

/// The checks of `/ready` about logins, as a caller sees them.
async fn login_checks(hub: &Server, token: &str) -> Result<Vec<Value>> {
    let bearer = format!("Bearer {token}");
    let ready = Http::default().get(&format!("{}/ready", hub.base), &[("authorization", &bearer)]).await?;
    let ready = ready.json().await?;
    let checks = ready["checks"].as_array().context("no checks")?;
    let about_logins = |check: &&Value| check["name"].as_str().is_some_and(|name| name.starts_with("login"));
    Ok(checks.iter().filter(about_logins).cloned().collect())
}

#[tokio::test]
async fn an_unused_login_that_is_lost_is_told_of_everywhere() -> Result<()> {
    let (_world, home, hub) = hub_of_two(6).await?;
    let (_client, mut stream) = listener(&hub, ANN).await?;
    let (_other, mut others) = listener(&hub, BOSS).await?;
    let (anns, cookie) = begun_in_browser(&hub, ANN).await?;
    assert!(seen("GET", &anns, &[("cookie", &cookie)]).await?.text.contains("You are logged in"));
    assert!(login_checks(&hub, ANN).await?.is_empty());

    let warning = tokio::time::timeout(Duration::from_secs(20), logged(&mut stream)).await??;
    assert_eq!(warning["level"], "warning", "{warning}");
    assert!(
        warning["data"].as_str().is_some_and(|text| text.contains("server_login with server w")),
        "{warning}"
    );

    let (own, admins) = (login_checks(&hub, ANN).await?, login_checks(&hub, BOSS).await?);
    assert_eq!(own, admins, "an administrator sees whose it was");
    assert_eq!(
        (own.len(), &own[0]["name"], &own[0]["state"]),
        (1, &json!("login w of ann"), &json!("degraded"))
    );
    assert!(own[0]["why"].as_str().is_some_and(|why| why.contains("server_login")), "{own:?}");

    let (_, out, err) = home.run(&["doctor", "--json"]).await?;
    let findings: Value = serde_json::from_str(&out).with_context(|| format!("{out} {err}"))?;
    let lost = findings["checks"].as_array().context("none")?.iter().find(|one| one["name"] == "login");
    let lost = lost.with_context(|| format!("{findings}"))?;
    assert_eq!(lost["state"], "warn", "{lost}");
    assert!(lost["says"].as_str().is_some_and(|text| text.contains("of ann at w was lost")), "{lost}");
    assert!(
        lost["next"].as_str().is_some_and(|text| text.contains("server_login with server w, as ann")),
        "{lost}"
    );

    let listed = told_by(&hub, "GET", "/servers/w", ANN).await?;
    assert_eq!(listed["servers"][0]["state"], "needs_login", "{listed}");
    assert_eq!(listed["servers"][0]["login"]["state"], "lost", "{listed}");
    // It was nobody else's business.
    let silence = tokio::time::timeout(Duration::from_millis(300), logged(&mut others)).await;
    assert!(silence.is_err(), "{silence:?}");
    Ok(())
}

#[tokio::test]
async fn the_command_line_names_a_lost_login_and_what_to_run() -> Result<()> {
    let world = World::with_life(6).await?;
    let server = json!({"url": format!("{}/mcp", world.base), "auth": {"type": "oauth2-pkce"}});
    let home = Home::new(&json!({"servers": {"w": server}}))?;
    let hub = home.serve().await?;
    let begun =
        Modern::new(&hub.mcp(), json!({}), silent).tool("server_login", json!({"server": "w"})).await?;
    let begun = begun.result()?["structuredContent"].clone();
    assert_eq!(begun["url"], begun["auth_url"], "nobody else can come here: {begun}");
    browse(begun["url"].as_str().context("no address")?.to_owned()).await?;
    let listed = eventually("the login is lost", async || {
        let (_, out, _) = home.run(&["servers", "list", "--json"]).await.ok()?;
        let listed: Value = serde_json::from_str(&out).ok()?;
        (listed["servers"][0]["state"] == "needs_login").then_some(listed)
    })
    .await?;
    let why = listed["servers"][0]["why"].as_str().unwrap_or_default();
    assert!(why.ends_with("octoprox login w"), "{listed}");
    let (_, out, _) = home.run(&["doctor", "--json"]).await?;
    let findings: Value = serde_json::from_str(&out)?;
    let next = findings["checks"].as_array().context("none")?.iter().find(|one| one["name"] == "login");
    assert_eq!(next.context("no finding")?["next"], "octoprox login w", "{findings}");
    Ok(())
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

//! Logins at a real authorization server (oidc-provider) with a protected MCP server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests start the servers that they ask, and fail where they must"
)]

#[path = "login/auth_server.rs"]
mod auth_server;
mod common;

use auth_server::{ada, age_login, authorization_url, logins, net};
use common::{RecordingPeer, call, wait_listing, wait_ready};
use http::{HeaderMap, Method};
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetResponse};
use octo_model::Kind;
use octo_oauth::{Auth, ClientIdentity, Flow, LoginPrompt, LoginSpec, LoginState, Logins, LogoutOutcome};
use octo_ports::{Owner, Stores};
use octo_toolkit::SourceState as Listed;
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use url::Url;

struct Servers {
    issuer: String,
    mcp: String,
    _process: Child,
}

fn service(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "{name} is not set: run scripts/services install npm oidc, and eval \"$(scripts/services env)\""
        )
    })
}

impl Servers {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/oidc/serve.mjs");
        let mut process = Command::new(service("NODE24"))
            .arg(script)
            .env("OIDC_PROVIDER", service("OIDC_PROVIDER"))
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        Self { issuer: text("issuer"), mcp: text("mcp"), _process: process }
    }

    fn spec(&self) -> LoginSpec {
        LoginSpec { net: net(&["127.0.0.1"]), ..LoginSpec::oauth("s", &self.mcp) }
    }

    fn upstream(&self, logins: &Logins) -> Arc<Upstream> {
        let mut spec = UpstreamSpec::http("s", &self.mcp);
        spec.accounts = Some(logins.account(Owner::from(&ada()), "s").unwrap().into());
        Upstream::start(spec)
    }
}

/// Headless browser: cookies, forms, redirects.
struct Browser {
    net: Net,
    cookies: BTreeMap<String, String>,
}

/// Value of an attribute in the first tag that has it.
fn attribute(page: &str, before: &str) -> Option<String> {
    let rest = page.split_once(before)?.1;
    Some(rest.split_once('"')?.0.replace("&amp;", "&"))
}

impl Browser {
    fn new() -> Self {
        Self { net: net(&["127.0.0.1"]), cookies: BTreeMap::new() }
    }

    async fn send(&mut self, url: &Url, form: Option<&[(&str, &str)]>) -> NetResponse {
        let mut headers = HeaderMap::new();
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            headers.insert("cookie", cookies.join("; ").parse().unwrap());
        }
        let mut ask = NetRequest { headers, max_redirects: 0, ..NetRequest::get(url.clone()) };
        if let Some(form) = form {
            ask.method = Method::POST;
            ask.headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
            let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            ask.body = Some(body.into());
        }
        let answer = self.net.send(ask).await.unwrap();
        for cookie in answer.headers.get_all("set-cookie") {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    /// Logs in as Ada and agrees to everything, until the browser is redirected to the hub or nothing is left to do.
    async fn agree(&mut self, url: &str) -> Url {
        let mut url: Url = url.parse().unwrap();
        let mut form: Option<Vec<(String, String)>> = None;
        for _ in 0..20 {
            let pairs: Option<Vec<(&str, &str)>> = form
                .as_ref()
                .map(|form| form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect());
            let answer = self.send(&url, pairs.as_deref()).await;
            form = None;
            if let Some(next) = answer.headers.get("location") {
                url = url.join(next.to_str().unwrap()).unwrap();
                if url.as_str().starts_with(auth_server::REDIRECT) {
                    return url;
                }
                continue;
            }
            let page = String::from_utf8_lossy(&answer.body).into_owned();
            let Some(action) = attribute(&page, "action=\"") else { return url };
            let mut pairs: Vec<(String, String)> = vec![];
            for hidden in ["prompt", "xsrf", "user_code", "confirm"] {
                if let Some(value) = attribute(&page, &format!("name=\"{hidden}\" value=\"")) {
                    pairs.push((hidden.to_owned(), value));
                }
            }
            pairs.push(("login".to_owned(), "ada".to_owned()));
            pairs.push(("password".to_owned(), "x".to_owned()));
            if page.contains("user_code") {
                pairs.push(("confirm".to_owned(), "yes".to_owned()));
            }
            url = url.join(&action).unwrap();
            form = Some(pairs);
        }
        panic!("the login does not end: {url}");
    }
}

async fn log_in(logins: &Logins) {
    let url = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    let back = Browser::new().agree(&url).await;
    logins.callback(back.query().unwrap(), None).await.unwrap();
}

async fn whoami(upstream: &Upstream) -> Value {
    call(upstream, &RecordingPeer::new(1, None).peer(), "whoami", json!({})).await.unwrap()["content"][0]["text"]
        .clone()
}

#[tokio::test]
async fn a_person_logs_in_renews_and_logs_out() {
    let servers = Servers::start(&[]).await;
    let store = Stores::in_memory();
    let logins = logins(&store, servers.spec());
    let upstream = servers.upstream(&logins);
    wait_listing(&upstream, |now| matches!(&now.state, Listed::Down(why) if why.contains("login"))).await;
    log_in(&logins).await;
    wait_ready(&upstream).await;
    assert_eq!(whoami(&upstream).await, "ada");
    let status = logins.status(&ada(), "s").await.unwrap();
    assert_eq!(
        (status.state, status.issuer.as_deref()),
        (LoginState::Connected, Some(servers.issuer.as_str()))
    );
    assert_eq!(status.scopes, ["mcp:read", "mcp:write"]);

    let first = store.credentials.all(&Owner::from(&ada()), "s").await.unwrap().remove(0);
    for _ in 0..3 {
        age_login(&store, "s", 4000).await;
        // A new connection reads the store immediately.
        let again = servers.upstream(&logins);
        wait_ready(&again).await;
        assert_eq!(whoami(&again).await, "ada");
        again.stop().await;
    }
    let renewed = store.credentials.all(&Owner::from(&ada()), "s").await.unwrap().remove(0);
    assert!(renewed.secret != first.secret && renewed.revision > first.revision);

    // Reuse of an old refresh token is detected by the server, and the login ends for all.
    store.credentials.put(&first.slot, first.secret.clone(), None).await.unwrap();
    age_login(&store, "s", 4000).await;
    let stolen = servers.upstream(&logins);
    wait_listing(&stolen, |now| matches!(&now.state, Listed::Down(why) if why.contains("login"))).await;
    stolen.stop().await;
    let status = logins.status(&ada(), "s").await.unwrap();
    assert!(status.state == LoginState::Lost && status.reason.unwrap().contains("revoked"));

    log_in(&logins).await;
    assert_eq!(logins.logout(&ada(), "s").await.unwrap(), LogoutOutcome::Revoked);
    upstream.stop().await;
}

#[tokio::test]
async fn a_login_that_nobody_uses_outlives_its_first_refresh_token() {
    let servers = Servers::start(&[("ACCESS_TTL", "8"), ("REFRESH_TTL", "24")]).await;
    let logins = logins(&Stores::in_memory(), servers.spec());
    log_in(&logins).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let _running = stop.clone().drop_guard();
    tokio::spawn(logins.clone().keep_alive(stop));
    // Both tokens of the login would have expired by then.
    tokio::time::sleep(std::time::Duration::from_secs(26)).await;
    let status = logins.status(&ada(), "s").await.unwrap();
    assert_eq!(status.state, LoginState::Connected, "{status:?}");
    let upstream = servers.upstream(&logins);
    wait_ready(&upstream).await;
    assert_eq!(whoami(&upstream).await, "ada");
    upstream.stop().await;
}

#[tokio::test]
async fn a_code_is_entered_on_another_machine() {
    let servers = Servers::start(&[]).await;
    let mut spec = servers.spec();
    if let Auth::OAuth(oauth) = &mut spec.auth {
        oauth.flow = Flow::Device;
    }
    let logins = logins(&Stores::in_memory(), spec);
    let begun = logins.begin(&ada(), "s").await.unwrap();
    let LoginPrompt::Enter { url_with_code, user_code, .. } = begun else { panic!("{begun:?}") };
    assert!(!user_code.is_empty());
    Browser::new().agree(&url_with_code.unwrap()).await;
    for _ in 0..2000 {
        if logins.status(&ada(), "s").await.unwrap().state == LoginState::Connected {
            let upstream = servers.upstream(&logins);
            wait_ready(&upstream).await;
            assert_eq!(whoami(&upstream).await, "ada");
            upstream.stop().await;
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{:?}", logins.status(&ada(), "s").await);
}

#[tokio::test]
async fn a_metadata_document_is_enough() {
    let id = "https://hub.example/client.json";
    let mut identity = ClientIdentity::new(auth_server::REDIRECT);
    identity.metadata_url = Some(id.to_owned());
    let logins = Logins::new(&Stores::in_memory(), identity).unwrap();
    let document: Value = logins.metadata_document().to().unwrap();
    let servers = Servers::start(&[("CLIENT_DOCUMENT", &document.to_string())]).await;
    logins.register(servers.spec());
    let url = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    assert!(url.contains("client_id=https%3A%2F%2Fhub.example%2Fclient.json"), "{url}");
    let back = Browser::new().agree(&url).await;
    logins.complete(&ada(), "s", back.as_str()).await.unwrap();
    let upstream = servers.upstream(&logins);
    wait_ready(&upstream).await;
    assert_eq!(whoami(&upstream).await, "ada");
    upstream.stop().await;
}

#[tokio::test]
async fn a_token_for_another_audience_and_a_code_without_its_verifier_are_worth_nothing() {
    let (servers, other) = (Servers::start(&[]).await, Servers::start(&[]).await);
    let store = Stores::in_memory();
    let first = logins(&store, servers.spec());
    log_in(&first).await;
    // The same token, as if issued by the other server.
    let kept = store.credentials.all(&Owner::from(&ada()), "s").await.unwrap().remove(0);
    let mut grant: Value = serde_json::from_str(kept.secret.expose()).unwrap();
    grant["url"] = json!(other.mcp);
    grant["refresh"] = Value::Null;
    let forged = Stores::in_memory();
    forged.credentials.put(&kept.slot, octo_model::Secret::new(grant.to_string()), None).await.unwrap();
    let second = logins(&forged, other.spec());
    let upstream = other.upstream(&second);
    let error = call(&upstream, &RecordingPeer::new(1, None).peer(), "whoami", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthorized, "{error}");
    upstream.stop().await;

    // Eve's code in Ada's login: the challenge does not match.
    let hers = authorization_url(first.begin(&octo_model::Caller::named("eve"), "s").await.unwrap());
    let stolen = Browser::new().agree(&hers).await;
    let code = stolen.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    let mine: Url = authorization_url(first.begin(&ada(), "s").await.unwrap()).parse().unwrap();
    let state = mine.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let mut mixed: Url = auth_server::REDIRECT.parse().unwrap();
    mixed
        .query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &state)
        .append_pair("iss", &servers.issuer);
    let error = first.complete(&ada(), "s", mixed.as_str()).await.unwrap_err();
    assert!(error.text().contains("invalid_grant"), "{error}");
}

//! Authorization server and protected MCP server in one, scripted by the test; records all requests.
#![allow(dead_code, reason = "each test file uses its part")]

use crate::common::mock_http::{RecordedRequest, json_body, legacy_preamble, status, tools};
use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use octo_grants::Net;
use octo_grants::net::NetSpec;
use octo_model::Caller;
use octo_oauth::{ClientIdentity, LoginPrompt, LoginSpec, Logins};
use octo_ports::{Owner, Stores};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub const REDIRECT: &str = "http://localhost:3100/auth/callback";

/// One request as the servers saw it.
#[derive(Clone, Debug)]
pub struct AuthServerRequest {
    pub at: Instant,
    pub path: String,
    pub form: BTreeMap<String, String>,
    pub authorization: Option<String>,
    pub json: Value,
}

/// Behaviour and state of the servers.
pub struct ServerRules {
    /// Members that replace those of the authorization server's metadata; null removes one.
    pub metadata: Value,
    /// The same for the protected resource's metadata.
    pub protected: Value,
    /// Lifetime of an access token, in seconds.
    pub life: i64,
    /// Error with which refresh tokens are rejected.
    pub refuse: Option<(u16, &'static str)>,
    pub slow: Duration,
    /// Scope that a call needs; any if empty.
    pub scope: Option<String>,
    /// Redirect target of requests to `/mcp` and `/token`.
    pub moved: HashMap<String, String>,
    /// Responses to a polling device, in turn; the last one repeats.
    pub device: Vec<&'static str>,
    pub interval: u64,
    /// Members that replace those of the device authorization response.
    pub device_answer: Value,
    codes: HashMap<String, Value>,
    pub access: HashMap<String, String>,
    refresh: HashMap<String, String>,
    pub revoked: Vec<String>,
    /// Refresh tokens that were used a second time.
    pub reused: usize,
    minted: usize,
    pub key: Option<(String, String)>,
}

pub struct AuthServer {
    pub base: String,
    pub rules: Arc<Mutex<ServerRules>>,
    pub seen: Arc<Mutex<Vec<AuthServerRequest>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for AuthServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn merged(mut base: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        let members = base.as_object_mut().unwrap();
        if value.is_null() {
            members.remove(name)
        } else {
            members.insert(name.clone(), value.clone())
        };
    }
    base
}

impl AuthServer {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let rules = Arc::new(Mutex::new(ServerRules {
            metadata: json!({}),
            protected: json!({}),
            life: 3600,
            refuse: None,
            slow: Duration::ZERO,
            scope: None,
            moved: HashMap::new(),
            device: vec!["granted"],
            interval: 1,
            device_answer: json!({}),
            codes: HashMap::new(),
            access: HashMap::new(),
            refresh: HashMap::new(),
            revoked: Vec::new(),
            reused: 0,
            minted: 0,
            key: None,
        }));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (world, log, own) = (rules.clone(), seen.clone(), base.clone());
        let app =
            axum::Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
                let (world, log, own) = (world.clone(), log.clone(), own.clone());
                async move {
                    let text = String::from_utf8_lossy(&body).into_owned();
                    let json: Value = serde_json::from_str(&text).unwrap_or_default();
                    let mut form = pairs(uri.query().unwrap_or_default());
                    if json.is_null() {
                        form.extend(pairs(&text));
                    }
                    let authorization =
                        headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
                    let seen = AuthServerRequest {
                        at: Instant::now(),
                        path: uri.path().to_owned(),
                        form,
                        authorization,
                        json,
                    };
                    log.lock().unwrap().push(seen.clone());
                    let slow = world.lock().unwrap().slow;
                    if seen.path == "/token" && !slow.is_zero() {
                        tokio::time::sleep(slow).await;
                    }
                    world.lock().unwrap().answer(&own, method, headers, &seen)
                }
            });
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base, rules, seen, task }
    }

    pub fn rules(&self) -> MutexGuard<'_, ServerRules> {
        self.rules.lock().unwrap()
    }

    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.base)
    }

    pub fn requests_to(&self, path: &str) -> Vec<AuthServerRequest> {
        self.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }

    /// Token requests with this grant type.
    pub fn token_requests(&self, grant: &str) -> Vec<AuthServerRequest> {
        let all = self.requests_to("/token").into_iter();
        all.filter(|seen| seen.form.get("grant_type").is_some_and(|kind| kind.contains(grant))).collect()
    }

    /// What a person who agrees does: returns the URL that the browser is redirected to.
    pub fn approve(&self, url: &str) -> url::Url {
        let url: url::Url = url.parse().unwrap();
        let asked = pairs(url.query().unwrap());
        assert_eq!(asked["code_challenge_method"], "S256");
        let mut rules = self.rules();
        let code = rules.next_token("code");
        rules.codes.insert(code.clone(), json!(asked));
        let mut back: url::Url = asked["redirect_uri"].parse().unwrap();
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &asked["state"])
            .append_pair("iss", &self.base);
        back
    }

    pub fn spec(&self, server: &str) -> LoginSpec {
        LoginSpec::oauth(server, self.mcp())
    }
}

impl ServerRules {
    fn next_token(&mut self, kind: &str) -> String {
        self.minted += 1;
        format!("c4nary-{kind}-{}", self.minted)
    }

    fn answer(
        &mut self,
        own: &str,
        method: Method,
        headers: HeaderMap,
        seen: &AuthServerRequest,
    ) -> Response {
        if let Some(target) = self.moved.get(&seen.path) {
            return (StatusCode::TEMPORARY_REDIRECT, [("location", target.clone())]).into_response();
        }
        match seen.path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => {
                let usual = json!({"resource": format!("{own}/mcp"), "authorization_servers": [own], "scopes_supported": ["read", "write"]});
                json_body(merged(usual, &self.protected))
            }
            "/.well-known/oauth-authorization-server" => json_body(merged(metadata(own), &self.metadata)),
            "/register" => {
                let id = self.next_token("client");
                (StatusCode::CREATED, json_body(json!({"client_id": id}))).into_response()
            }
            "/token" => self.token(seen),
            "/device" => {
                let (code, interval) = (self.next_token("device"), self.interval);
                let usual = json!({"device_code": code, "user_code": "ABCD-1234", "verification_uri": format!("{own}/go"), "verification_uri_complete": format!("{own}/go?c=ABCD-1234"), "expires_in": 60, "interval": interval});
                json_body(merged(usual, &self.device_answer))
            }
            "/revoke" => {
                let token = seen.form["token"].clone();
                self.access.remove(&token);
                self.refresh.remove(&token);
                self.revoked.push(token);
                status(200)
            }
            "/mcp" => self.mcp(own, method, headers, seen),
            _ => status(404),
        }
    }

    fn token(&mut self, seen: &AuthServerRequest) -> Response {
        let form = &seen.form;
        let no = |code: u16, error: &str| {
            (StatusCode::from_u16(code).unwrap(), json_body(json!({"error": error}))).into_response()
        };
        let scope = match form["grant_type"].as_str() {
            "authorization_code" => {
                let Some(asked) = self.codes.remove(&form["code"]) else { return no(400, "invalid_grant") };
                let proven = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
                let same = |name: &str| asked[name] == form[name].as_str();
                if asked["code_challenge"] != proven.as_str() || !same("redirect_uri") || !same("resource") {
                    return no(400, "invalid_grant");
                }
                asked["scope"].as_str().unwrap_or_default().to_owned()
            }
            "refresh_token" => {
                if let Some((code, error)) = self.refuse {
                    return no(code, error);
                }
                let Some(scope) = self.refresh.remove(&form["refresh_token"]) else {
                    self.reused += 1;
                    return no(400, "invalid_grant");
                };
                scope
            }
            _ => match if self.device.len() > 1 { self.device.remove(0) } else { self.device[0] } {
                "granted" => String::new(),
                error => return no(400, error),
            },
        };
        let (access, refresh) = (self.next_token("access"), self.next_token("refresh"));
        self.access.insert(access.clone(), scope.clone());
        self.refresh.insert(refresh.clone(), scope);
        json_body(
            json!({"access_token": access, "token_type": "Bearer", "expires_in": self.life, "refresh_token": refresh}),
        )
    }

    fn mcp(&mut self, own: &str, method: Method, headers: HeaderMap, seen: &AuthServerRequest) -> Response {
        let at = format!("resource_metadata=\"{own}/.well-known/oauth-protected-resource/mcp\"");
        if let Some((name, value)) = &self.key {
            let given = headers.get(name).and_then(|given| given.to_str().ok());
            if given.or(seen.form.get(name).map(String::as_str)) != Some(value.as_str()) {
                return status(401);
            }
        } else {
            let token = seen.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
            let Some(scopes) = token.and_then(|token| self.access.get(token)) else {
                let header = [("www-authenticate", format!("Bearer {at}"))];
                return (StatusCode::UNAUTHORIZED, header).into_response();
            };
            let is_call = seen.json["method"] == "tools/call";
            if let Some(scope) = self.scope.as_ref().filter(|_| is_call)
                && !scopes.split(' ').any(|one| one == scope)
            {
                let header = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\", {at}");
                return (StatusCode::FORBIDDEN, [("www-authenticate", header)]).into_response();
            }
        }
        let hit = RecordedRequest { method, path: seen.path.clone(), headers, body: seen.json.clone() };
        legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| match hit.rpc_method() {
            "tools/list" => tools(&hit, &["a"]),
            _ => json_body(hit.result(json!({"content": []}))),
        })
    }
}

fn metadata(own: &str) -> Value {
    json!({
        "issuer": own,
        "authorization_endpoint": format!("{own}/authorize"),
        "token_endpoint": format!("{own}/token"),
        "registration_endpoint": format!("{own}/register"),
        "revocation_endpoint": format!("{own}/revoke"),
        "device_authorization_endpoint": format!("{own}/device"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// Logins of a hub, with one server.
pub fn logins(store: &Stores, spec: LoginSpec) -> Logins {
    let logins = Logins::new(store, ClientIdentity::new(REDIRECT)).unwrap();
    logins.register(spec);
    logins
}

/// Egress with these addresses allowed in addition to public ones.
pub fn net(allow: &[&str]) -> Net {
    let allow = allow.iter().map(ToString::to_string).collect();
    Net::new(NetSpec { allow, ..NetSpec::default() }).unwrap()
}

pub fn ada() -> Caller {
    Caller::named("ada")
}

/// The upstream that Ada uses.
pub fn upstream(world: &AuthServer, logins: &Logins, server: &str) -> Arc<Upstream> {
    let mut spec = UpstreamSpec::http(server, world.mcp());
    spec.accounts = Some(logins.account(Owner::from(&ada()), server).unwrap().into());
    Upstream::start(spec)
}

pub fn authorization_url(begun: LoginPrompt) -> String {
    match begun {
        LoginPrompt::Open { url, .. } => url,
        other => panic!("{other:?}"),
    }
}

/// Logs Ada in through the browser.
pub async fn log_in(world: &AuthServer, logins: &Logins, server: &str) {
    let url = authorization_url(logins.begin(&ada(), server).await.unwrap());
    logins.callback(world.approve(&url).query().unwrap(), None).await.unwrap();
}

/// Changes the stored login as if time had passed.
pub async fn age_login(store: &Stores, server: &str, seconds: i64) {
    change_login(store, server, |grant| {
        for member in ["obtained", "expires"] {
            if let Some(time) = grant[member].as_i64() {
                grant[member] = json!(time - seconds);
            }
        }
    })
    .await;
}

/// Changes the stored login as another process could.
pub async fn change_login(store: &Stores, server: &str, change: impl FnOnce(&mut Value)) {
    let kept = store.credentials.all(&Owner::from(&ada()), server).await.unwrap().remove(0);
    let mut grant: Value = serde_json::from_str(kept.secret.expose()).unwrap();
    change(&mut grant);
    store.credentials.put(&kept.slot, octo_model::Secret::new(grant.to_string()), None).await.unwrap();
}

/// Waits for a condition.
pub async fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

/// All different.
pub fn distinct<T: std::hash::Hash + Eq>(all: impl IntoIterator<Item = T>) -> usize {
    all.into_iter().collect::<HashSet<_>>().len()
}

//! Refresh by several processes with one credential store: the test starts itself twice, and both refresh the same
//! login.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests are the servers that are asked, start themselves, and fail where they must"
)]

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use octo_model::Secret;
use octo_model::{Caller, JsonObject, Operation};
use octo_oauth::{ClientIdentity, LoginPrompt, LoginSpec, Logins};
use octo_ports::{Credentials, Owner};
use octo_store::{Options, sqlite};
use octo_toolkit::{CallContext, Source};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

const WORKER_VARIABLE: &str = "OCTOPROX_TEST_LOGINS";
const CALLERS: usize = 100;

#[derive(Default)]
struct AuthServer {
    access: HashSet<String>,
    refresh: HashSet<String>,
    refreshed: usize,
    reused: usize,
    issued: usize,
}

fn json_body(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

impl AuthServer {
    fn answer(&mut self, own: &str, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response {
        match uri.path() {
            "/.well-known/oauth-protected-resource/mcp" => {
                json_body(&json!({"resource": format!("{own}/mcp"), "authorization_servers": [own]}))
            }
            "/.well-known/oauth-authorization-server" => json_body(&json!({
                "issuer": own,
                "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"),
                "registration_endpoint": format!("{own}/register"),
                "code_challenge_methods_supported": ["S256"],
            })),
            "/register" => json_body(&json!({"client_id": "hub"})),
            "/token" => self.token(body),
            "/mcp" => self.mcp(headers, body),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn token(&mut self, body: &Bytes) -> Response {
        let form: BTreeMap<String, String> = url::form_urlencoded::parse(body).into_owned().collect();
        if form["grant_type"] == "refresh_token" {
            if !self.refresh.remove(&form["refresh_token"]) {
                self.reused += 1;
                return (StatusCode::BAD_REQUEST, json_body(&json!({"error": "invalid_grant"})))
                    .into_response();
            }
            self.refreshed += 1;
        }
        self.issued += 1;
        let (access, refresh) = (format!("access-{}", self.issued), format!("refresh-{}", self.issued));
        self.access.insert(access.clone());
        self.refresh.insert(refresh.clone());
        json_body(
            &json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}),
        )
    }

    fn mcp(&self, headers: &HeaderMap, body: &Bytes) -> Response {
        let bearer =
            headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if !bearer.is_some_and(|token| self.access.contains(token)) {
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response();
        }
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
            }
            Some("tools/list") => json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => json!({"content": []}),
            Some(notice) if notice.starts_with("notifications/") => {
                return StatusCode::ACCEPTED.into_response();
            }
            Some(_) => return StatusCode::BAD_REQUEST.into_response(),
            None => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
        };
        json_body(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

async fn serve() -> (String, Arc<Mutex<AuthServer>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
    let world = Arc::new(Mutex::new(AuthServer::default()));
    let (base, state) = (own.clone(), world.clone());
    let app = axum::Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
        let answer = state.lock().unwrap().answer(&base, &uri, &headers, &body);
        async move { answer }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (own, world)
}

fn open_logins(dir: &Path, own: &str) -> (Credentials, Logins) {
    let stores = sqlite(dir, Options::default()).unwrap();
    let logins = Logins::new(&stores, ClientIdentity::new("http://localhost:3100/auth/callback")).unwrap();
    logins.register(LoginSpec::oauth("s", format!("{own}/mcp")));
    (stores.credentials, logins)
}

async fn log_in(logins: &Logins) {
    let LoginPrompt::Open { url, .. } = logins.begin(&Caller::local(), "s").await.unwrap() else {
        unreachable!()
    };
    let url: url::Url = url.parse().unwrap();
    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    logins.callback(&format!("code=x&state={state}"), None).await.unwrap();
}

/// Body of each child process: concurrent calls on every command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the other test"]
async fn worker() {
    let Ok(told) = std::env::var(WORKER_VARIABLE) else { return };
    let (own, dir) = told.split_once(' ').unwrap();
    let (_, logins) = open_logins(Path::new(dir), own);
    let mut spec = UpstreamSpec::http("s", format!("{own}/mcp"));
    spec.accounts = Some(logins.account(Owner::from(&Caller::local()), "s").unwrap().into());
    let upstream = Upstream::start(spec);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..line.parse::<usize>().unwrap() {
            let upstream = upstream.clone();
            calls.spawn(async move {
                let cx = CallContext::new(
                    Arc::new(Caller::local()),
                    Instant::now() + Duration::from_secs(30),
                    CancellationToken::new(),
                );
                let arguments = JsonObject::new().to_json();
                upstream.run(Operation::tool("a", arguments), &cx).await
            });
        }
        let failed: Vec<_> = calls.join_all().await.into_iter().filter_map(Result::err).collect();
        println!("\nfailed {} {:?}", failed.len(), failed.first());
    }
    upstream.stop().await;
}

struct WorkerProcess {
    _process: Child,
    to: ChildStdin,
    from: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl WorkerProcess {
    fn start(told: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["worker", "--exact", "--ignored", "--nocapture"])
            .env(WORKER_VARIABLE, told)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { _process: process, to, from: BufReader::new(from).lines() }
    }

    async fn send_callers(&mut self, callers: usize) {
        self.to.write_all(format!("{callers}\n").as_bytes()).await.unwrap();
    }

    async fn read_failures(&mut self) -> String {
        while let Some(line) = self.from.next_line().await.unwrap() {
            if let Some(failed) = line.strip_prefix("failed ") {
                return failed.to_owned();
            }
        }
        "it ended".to_owned()
    }
}

/// Ages the login by more than an hour.
async fn expire_login(store: &Credentials) {
    let kept = store.all(&Owner::from(&Caller::local()), "s").await.unwrap().remove(0);
    let mut grant: Value = serde_json::from_str(kept.secret.expose()).unwrap();
    for member in ["obtained", "expires"] {
        grant[member] = json!(grant[member].as_i64().unwrap() - 4000);
    }
    store.put(&kept.slot, Secret::new(grant.to_string()), None).await.unwrap();
}

async fn refresh_rounds(count: usize) {
    let temp = tempfile::tempdir().unwrap();
    let (own, world) = serve().await;
    let (store, logins) = open_logins(temp.path(), &own);
    log_in(&logins).await;
    let told = format!("{own} {}", temp.path().display());
    let mut workers = [WorkerProcess::start(&told), WorkerProcess::start(&told)];
    for round in 1..=count {
        expire_login(&store).await;
        world.lock().unwrap().access.clear();
        for worker in &mut workers {
            worker.send_callers(CALLERS).await;
        }
        for worker in &mut workers {
            assert_eq!(worker.read_failures().await, "0 None", "round {round}");
        }
        let world = world.lock().unwrap();
        assert_eq!((world.refreshed, world.reused), (round, 0), "round {round}");
    }
    drop(workers);
    for file in std::fs::read_dir(temp.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for secret in [&b"access-"[..], b"refresh-"] {
            assert!(!bytes.windows(secret.len()).any(|part| part == secret), "a token in clear");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_callers_in_two_processes_renew_once_each_time() {
    refresh_rounds(20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn two_hundred_callers_in_two_processes_renew_once_a_thousand_times() {
    refresh_rounds(1000).await;
}

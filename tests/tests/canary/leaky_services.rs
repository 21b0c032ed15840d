//! Services behind the hub: a server that requires a key, one that requires a login, an authorization server, a span
//! collector. The servers leak as much as servers can: they repeat what they refuse.

use anyhow::Result;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
pub struct LeakyServices {
    base: String,
    /// Every token ever issued.
    pub tokens: Vec<String>,
    access: Option<String>,
    refresh: Option<String>,
    pub renewals: usize,
    /// Requests with a secret, by path.
    pub requests: Vec<(String, String)>,
    pub spans: Vec<u8>,
    /// Refuses every refresh from now on.
    pub revoked: bool,
}

fn json_response(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

/// A secret that cannot be guessed and is easy to find.
pub fn canary_secret(kind: &str, number: usize) -> String {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("canary{kind}{number}x{:x}x{:x}", std::process::id(), time.as_nanos())
}

impl LeakyServices {
    fn answer(&mut self, uri: &Uri, headers: &HeaderMap, sent: &Bytes) -> Response {
        let own = self.base.clone();
        match uri.path() {
            "/v1/traces" => {
                self.spans.extend_from_slice(sent);
                StatusCode::OK.into_response()
            }
            "/.well-known/oauth-protected-resource/login" => {
                json_response(&json!({"resource": format!("{own}/login"), "authorization_servers": [own]}))
            }
            "/.well-known/oauth-authorization-server" => json_response(&json!({
                "issuer": own,
                "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            })),
            "/token" => self.token(headers, sent),
            "/login" => {
                let sent_token = header(headers, "authorization");
                let wanted = self.access.as_ref().map(|token| format!("Bearer {token}"));
                self.protected_mcp(uri, sent, &sent_token, wanted == Some(sent_token.clone()))
            }
            "/header" => self.protected_mcp(uri, sent, &header(headers, "x-api-key"), true),
            "/keyed" => self.protected_mcp(uri, sent, &header(headers, "x-key"), true),
            "/query" => self.protected_mcp(uri, sent, uri.query().unwrap_or_default(), true),
            "/refused" => self.protected_mcp(uri, sent, &header(headers, "x-api-key"), false),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    fn token(&mut self, headers: &HeaderMap, sent: &Bytes) -> Response {
        let form = String::from_utf8_lossy(sent).into_owned();
        self.requests.push(("/token".to_owned(), header(headers, "authorization") + &form));
        let renews = form.contains("grant_type=refresh_token");
        let known = self.refresh.as_ref().is_some_and(|token| form.contains(token.as_str()));
        if self.revoked || (renews && !known) {
            let refused = json!({"error": "invalid_grant", "error_description": format!("not good: {form}")});
            return (StatusCode::BAD_REQUEST, json_response(&refused)).into_response();
        }
        self.renewals += usize::from(renews);
        let number = self.tokens.len();
        let (access, refresh) = (canary_secret("access", number), canary_secret("refresh", number));
        self.tokens.extend([access.clone(), refresh.clone()]);
        let reply = json_response(
            &json!({"access_token": access, "token_type": "Bearer", "expires_in": 2, "refresh_token": refresh}),
        );
        (self.access, self.refresh) = (Some(access), Some(refresh));
        reply
    }

    fn protected_mcp(&mut self, uri: &Uri, sent: &Bytes, secret: &str, allowed: bool) -> Response {
        self.requests.push((uri.path().to_owned(), secret.to_owned()));
        if !allowed {
            let own = format!(
                "Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource{}\"",
                self.base,
                uri.path()
            );
            let told = json!({"error": format!("this is not good enough: {secret}")});
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", own)], json_response(&told))
                .into_response();
        }
        let message: Value = serde_json::from_slice(sent).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
            }
            Some("tools/list") => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                json!({"tools": [tool("works"), tool("fails")]})
            }
            Some("tools/call") if message["params"]["name"] == "fails" => {
                let error = json!({"code": -32000, "message": "it does not work"});
                return json_response(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
            Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
            Some(notice) if notice.starts_with("notifications/") => {
                return StatusCode::ACCEPTED.into_response();
            }
            Some(_) => return StatusCode::BAD_REQUEST.into_response(),
            None => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
        };
        json_response(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Serves until the test ends; returns its URL.
pub async fn serve() -> Result<(String, Arc<Mutex<LeakyServices>>)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let world = Arc::new(Mutex::new(LeakyServices { base: base.clone(), ..LeakyServices::default() }));
    let state = Arc::clone(&world);
    let app = axum::Router::new().fallback(move |uri: Uri, headers: HeaderMap, sent: Bytes| {
        let answer = state.lock().unwrap_or_else(PoisonError::into_inner).answer(&uri, &headers, &sent);
        async move { answer }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((base, world))
}

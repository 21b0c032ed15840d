//! Fake forge on loopback that records its requests.
#![expect(clippy::disallowed_methods, reason = "tests listen on loopback")]

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use jiff::Timestamp;
use octo_toolkit::net::NetSpec;
use octo_toolkit::{Capabilities, Clock, JqRunner, Net, PointerJq, ToolFixture, Toolbox};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use url::Url;

/// Time of all tests.
pub const NOW: &str = "2026-11-15T10:00:00Z";

/// A recorded request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: Method,
    /// As sent, not decoded.
    pub path: String,
    pub query: HashMap<String, String>,
    pub headers: HeaderMap,
    pub body: String,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// A number in the query, or `otherwise`.
    pub fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.query.get(name).map_or(otherwise, |text| text.parse().unwrap())
    }
}

#[derive(Debug, Clone)]
pub struct FakeReply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl FakeReply {
    pub fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::text(status, value.to_string()).with("content-type", "application/json")
    }

    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

pub struct FakeServer {
    pub url: Url,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl FakeServer {
    pub async fn serve<F>(answer: F) -> Self
    where
        F: Fn(&RecordedRequest) -> FakeReply + Clone + Send + Sync + 'static,
    {
        let asked: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let record = Arc::clone(&asked);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
            let seen = RecordedRequest {
                method,
                path: uri.path().to_owned(),
                query: query.into_owned().collect(),
                headers,
                body: String::from_utf8(body.to_vec()).unwrap(),
            };
            let reply = answer(&seen);
            record.lock().unwrap().push(seen);
            async move {
                let mut response = (StatusCode::from_u16(reply.status).unwrap(), reply.body).into_response();
                response.headers_mut().remove("content-type");
                for (name, value) in reply.headers {
                    response.headers_mut().append(name, value.parse().unwrap());
                }
                response
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Self { url, requests: asked }
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Paths of all requests so far, sorted; clears the record.
    pub fn take_paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.requests.lock().unwrap().drain(..).map(|seen| seen.path).collect();
        paths.sort();
        paths
    }

    pub fn url_for(&self, path: &str) -> Url {
        self.url.join(path).unwrap()
    }
}

/// A test bench whose net reaches loopback and no other private address, and whose clock is stopped.
pub fn bench(toolbox: Toolbox) -> ToolFixture {
    ToolFixture::new(toolbox, capabilities())
}

pub fn capabilities() -> Capabilities {
    let spec = NetSpec { allow: vec!["127.0.0.1".to_owned()], ..NetSpec::default() };
    Capabilities::default()
        .with(Net::new(spec).unwrap())
        .with(Clock::fixed(now()))
        .with(JqRunner::new(Arc::new(PointerJq)))
}

pub fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A server that accepts a connection, signals it, and never replies.
pub async fn silent_server() -> (Url, Arc<Notify>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let reached = Arc::new(Notify::new());
    let tell = Arc::clone(&reached);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            held.push(connection);
            tell.notify_one();
        }
    });
    (url, reached)
}

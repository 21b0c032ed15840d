//! HTTP server on loopback that stands for another one and records its requests.
#![expect(clippy::disallowed_methods, reason = "tests listen on loopback")]

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use octo_toolkit::net::NetSpec;
use octo_toolkit::{Capabilities, JqRunner, Net, PointerJq, ToolFixture, Toolbox};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use url::Url;

/// A recorded request.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: Method,
    pub path: String,
    pub query: HashMap<String, String>,
    /// All pairs, for repeated names.
    pub pairs: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub form: HashMap<String, String>,
}

impl RecordedRequest {
    pub fn get(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> &str {
        self.form.get(name).map(String::as_str).unwrap_or_default()
    }
}

pub struct FakeServer {
    pub url: Url,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl FakeServer {
    /// Responds to every request with status, one header and body.
    pub async fn serve<F>(answer: F) -> Self
    where
        F: Fn(&RecordedRequest) -> (u16, (&'static str, String), String) + Clone + Send + Sync + 'static,
    {
        Self::serve_any(answer).await
    }

    async fn serve_any<F, B>(answer: F) -> Self
    where
        F: Fn(&RecordedRequest) -> (u16, (&'static str, String), B) + Clone + Send + Sync + 'static,
        B: IntoResponse + Send + 'static,
    {
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let record = Arc::clone(&requests);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let pairs = pairs(uri.query().unwrap_or_default().as_bytes());
            let request = RecordedRequest {
                method,
                path: uri.path().to_owned(),
                query: pairs.iter().cloned().collect(),
                pairs,
                headers,
                form: self::pairs(&body).into_iter().collect(),
            };
            let (status, header, body) = answer(&request);
            record.lock().unwrap().push(request);
            async move { (StatusCode::from_u16(status).unwrap(), [header], body).into_response() }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Self { url, requests }
    }

    /// Responds to every request with a PDF file.
    pub async fn serve_bytes(
        answer: impl Fn(&RecordedRequest) -> Vec<u8> + Clone + Send + Sync + 'static,
    ) -> Self {
        let kind = || ("content-type", "application/pdf".to_owned());
        Self::serve_any(move |seen| (200, kind(), answer(seen))).await
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn pairs(text: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

pub fn json(value: serde_json::Value) -> (u16, (&'static str, String), String) {
    (200, ("content-type", "application/json".to_owned()), value.to_string())
}

pub fn html(status: u16, body: &str) -> (u16, (&'static str, String), String) {
    (status, ("content-type", "text/html; charset=utf-8".to_owned()), body.to_owned())
}

/// Test fixture whose network grant reaches loopback and no other private address.
pub fn bench(toolbox: Toolbox) -> ToolFixture {
    ToolFixture::new(toolbox, capabilities())
}

pub fn capabilities() -> Capabilities {
    let spec = NetSpec { allow: vec!["127.0.0.1".to_owned()], ..NetSpec::default() };
    Capabilities::default()
        .with(Net::new(spec).unwrap())
        .with(crate::pdf::tests::pdf_capability())
        .with(JqRunner::new(Arc::new(PointerJq)))
}

/// URL that nothing listens on.
pub fn unused_url() -> Url {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap()
}

//! Minimal HTTP client for tests.

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use octo_wire::sse::Decoder;
use serde_json::Value;

#[derive(Clone)]
pub struct HttpClient(Client<HttpConnector, Full<Bytes>>);

impl Default for HttpClient {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Client::builder(TokioExecutor::new()).pool_max_idle_per_host(256).build(connector))
    }
}

pub type Headers<'a> = &'a [(&'a str, &'a str)];

impl HttpClient {
    pub async fn send(
        &self,
        method: &str,
        url: &str,
        headers: Headers<'_>,
        body: Bytes,
    ) -> Result<HttpReply> {
        let mut request = ::http::Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.0.request(request.body(Full::new(body))?).await?;
        Ok(HttpReply::new(response))
    }

    pub async fn post(&self, url: &str, headers: Headers<'_>, body: &Value) -> Result<HttpReply> {
        let mut all =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        all.extend_from_slice(headers);
        self.send("POST", url, &all, serde_json::to_vec(body)?.into()).await
    }

    pub async fn get(&self, url: &str, headers: Headers<'_>) -> Result<HttpReply> {
        self.send("GET", url, headers, Bytes::new()).await
    }
}

/// A response whose messages are read one by one, from JSON or a stream.
pub struct HttpReply {
    pub status: u16,
    pub headers: ::http::HeaderMap,
    body: Incoming,
    decoder: Option<Decoder>,
}

impl HttpReply {
    fn new(response: ::http::Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let kind = head.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let decoder = kind.starts_with("text/event-stream").then(|| Decoder::new(256 << 20));
        Self { status: head.status.as_u16(), headers: head.headers, body, decoder }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn is_stream(&self) -> bool {
        self.decoder.is_some()
    }

    pub async fn text(self) -> Result<String> {
        Ok(String::from_utf8(self.body.collect().await?.to_bytes().to_vec())?)
    }

    pub async fn json(self) -> Result<Value> {
        let text = self.text().await?;
        serde_json::from_str(&text).with_context(|| format!("not JSON: {text}"))
    }

    /// The next event of a stream with its id.
    pub async fn next_event(&mut self) -> Result<Option<(Option<String>, Bytes)>> {
        loop {
            let decoder = self.decoder.as_mut().context("not a stream")?;
            if let Some(event) = decoder.next_event() {
                return Ok(Some((event.id, event.data)));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        decoder.push(&data).map_err(|_| anyhow::anyhow!("a line is too long"))?;
                    }
                }
            }
        }
    }

    /// The next message; None at the end.
    pub async fn next_message(&mut self) -> Result<Option<Value>> {
        if self.decoder.is_none() {
            let mut text = Vec::new();
            while let Some(frame) = self.body.frame().await {
                if let Ok(data) = frame?.into_data() {
                    text.extend_from_slice(&data);
                }
            }
            return if text.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&text)?)) };
        }
        while let Some((_, data)) = self.next_event().await? {
            if !data.is_empty() {
                return Ok(Some(serde_json::from_slice(&data)?));
            }
        }
        Ok(None)
    }
}

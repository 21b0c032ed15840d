//! API that records its requests, with a document that can be changed.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Default)]
struct ServerScript {
    version: u64,
    document: String,
    fails: bool,
    seen: Vec<RecordedRequest>,
}

#[derive(Clone)]
pub struct Server {
    pub url: String,
    shown: Arc<Mutex<ServerScript>>,
}

impl Server {
    pub async fn start() -> Self {
        let shown: Arc<Mutex<ServerScript>> = Arc::default();
        let state = Arc::clone(&shown);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let seen = RecordedRequest { method, uri, headers, body };
            let answer = answer(&mut state.lock().unwrap(), seen);
            async move { answer }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        let server = Self { url, shown };
        server.set_document(json!({}));
        server
    }

    /// The usual document with other members merged in; invalid for null.
    pub fn set_document(&self, more: Value) {
        let mut whole = document("/v1");
        for (name, value) in more.as_object().into_iter().flatten() {
            match (whole.get_mut(name), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                _ => whole[name] = value.clone(),
            }
        }
        let mut shown = self.shown.lock().unwrap();
        shown.version += 1;
        shown.document = if more.is_null() { "{".to_owned() } else { whole.to_string() };
    }

    pub fn set_failing(&self, fails: bool) {
        self.shown.lock().unwrap().fails = fails;
    }

    pub fn all(&self) -> Vec<RecordedRequest> {
        self.shown.lock().unwrap().seen.clone()
    }

    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// The last request that was not for the document.
    pub fn last(&self) -> RecordedRequest {
        self.all().into_iter().rfind(|seen| seen.uri.path() != "/v1/openapi.json").unwrap()
    }

    pub async fn wait_for(&self, what: &str, mut is_so: impl FnMut(&[RecordedRequest]) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so(&self.all()) {
            assert!(Instant::now() < deadline, "it never came to be that {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn answer(shown: &mut ServerScript, seen: RecordedRequest) -> Response {
    let (path, headers) = (seen.uri.path().to_owned(), seen.headers.clone());
    shown.seen.push(seen);
    let json = [("content-type", "application/json")];
    if shown.fails {
        return (StatusCode::INTERNAL_SERVER_ERROR, "down").into_response();
    }
    let status = path.strip_prefix("/v1/limits/").and_then(|status| status.parse::<u16>().ok());
    if let Some(status) = status {
        let status = StatusCode::from_u16(status).unwrap();
        let pause = [("retry-after", "30")];
        let because = (status, json, "{\"why\": \"because\"}");
        return match status.as_u16() {
            429 | 503 => (pause, because).into_response(),
            _ => because.into_response(),
        };
    }
    match path.as_str() {
        "/v1/openapi.json" => {
            let tag = format!("\"{}\"", shown.version);
            if headers.get("if-none-match").is_some_and(|known| *known == *tag) {
                return StatusCode::NOT_MODIFIED.into_response();
            }
            ([("etag", tag)], json, shown.document.clone()).into_response()
        }
        "/v1/pets/7" => (json, "{\"id\": 12345678901234567890.10, \"name\": \"Rex\"}").into_response(),
        "/v1/pets/7/face" => ([("content-type", "image/png")], vec![137u8, 80, 78, 71, 0, 1]).into_response(),
        _ => (StatusCode::CREATED, json, "{}").into_response(),
    }
}

pub fn document(server: &str) -> Value {
    let id = json!({"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}});
    let pet = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}});
    json!({
        "openapi": "3.0.3", "info": {"title": "Pets", "version": "2"}, "servers": [{"url": server}],
        "paths": {
            "/pets/{id}": {
                "parameters": [id.clone()],
                "get": {"operationId": "getPet", "summary": "Find a pet by its number",
                    "parameters": [{"name": "fields", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}}],
                    "responses": {"200": {"description": "A pet", "content": pet.clone()}}},
                "delete": {"operationId": "deletePet", "summary": "Remove a pet", "responses": {"204": {"description": "Gone"}}},
            },
            "/pets": {"post": {"operationId": "createPet", "summary": "Register a new pet",
                "requestBody": {"required": true, "content": pet}, "responses": {"201": {"description": "Made"}}}},
            "/files/{name}": {"get": {"responses": {}}},
            "/pets/{id}/face": {"get": {"operationId": "getFace", "parameters": [id],
                "responses": {"200": {"description": "A picture", "content": {"image/png": {}}}}}},
            "/away": {"get": {"operationId": "away", "servers": [{"url": "http://127.0.0.2:9"}],
                "parameters": [{"name": "x-api-key", "in": "header", "required": false, "schema": {"type": "string"}}], "responses": {}}},
            "/limits/{status}": {"get": {"operationId": "limits", "responses": {}}},
        },
        "components": {"schemas": {"Pet": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "mother": {"$ref": "#/components/schemas/Pet"}}}}},
    })
}

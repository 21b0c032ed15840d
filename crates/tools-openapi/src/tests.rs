//! The tools against a local server that records its requests.
#![expect(clippy::disallowed_methods, reason = "tests listen on loopback")]

mod spec_sources;
mod url_injection;

use crate::toolbox;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use octo_grants::net::NetSpec;
use octo_grants::{Capabilities, JqRunner, Net};
use octo_ports::in_memory;
use octo_toolkit::{Kind, PointerJq, ToolError, ToolFixture};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
struct RecordedRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

#[derive(Clone)]
struct RecordingServer {
    url: String,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl RecordingServer {
    async fn start() -> Self {
        let seen: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let record = Arc::clone(&seen);
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            record.lock().unwrap().push(RecordedRequest {
                method,
                uri: uri.clone(),
                headers: headers.clone(),
                body,
            });
            async move { answer(uri.path(), &headers) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Self { url, requests: seen }
    }

    fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(path: &str, asked: &HeaderMap) -> axum::response::Response {
    let json = [("content-type", "application/json")];
    match path {
        // Echoes the request, like services for testing.
        "/v1/files/echo" => {
            let sent = asked.get("authorization").and_then(|sent| sent.to_str().ok()).unwrap_or_default();
            let token = sent.trim_start_matches("Bearer ");
            let head = [("content-type", "application/json"), ("x-sent", sent)];
            (head, json!({"headers": {"Authorization": sent}, "token": token}).to_string()).into_response()
        }
        "/v1/openapi.json" => (json, document("/v1").to_string()).into_response(),
        "/v1/pets/7" => (json, "{\"id\": 12345678901234567890.10, \"name\": \"Rex\"}").into_response(),
        "/v1/pets/8" => ([("content-type", "image/png")], vec![137u8, 80, 78, 71, 0, 1]).into_response(),
        "/v1/pets/9" => ([("content-type", "text/plain; charset=utf-8")], "ä".repeat(1_000)).into_response(),
        "/v1/split.json" => (
            json,
            "{\"openapi\": \"3.0.0\", \"info\": {}, \"paths\": {\"/part\": {\"$ref\": \"part.yaml#/item\"}}}",
        )
            .into_response(),
        "/v1/part.yaml" => {
            "item:\n  get:\n    operationId: part\n    parameters: [{name: id, in: query, schema: {type: integer}}]\n"
                .into_response()
        }
        "/v1/missing.json" => (StatusCode::NOT_FOUND, "no").into_response(),
        _ => (StatusCode::CREATED, json, "{}").into_response(),
    }
}

fn document(server: &str) -> Value {
    json!({
        "openapi": "3.0.3", "info": {"title": "Pets", "version": "2"}, "servers": [{"url": server}],
        "paths": {
            "/pets/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
                "get": {"operationId": "getPet", "summary": "Find a pet by its number", "tags": ["pets"],
                    "parameters": [{"name": "fields", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "string"}}}],
                    "responses": {"200": {"description": "A pet", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}},
                "delete": {"operationId": "deletePet", "summary": "Remove a pet", "responses": {"204": {"description": "Gone"}}},
            },
            "/pets": {"post": {"operationId": "createPet", "summary": "Register a new pet",
                "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                "responses": {"201": {"description": "Made"}}}},
            "/files/{name}": {"get": {"operationId": "getFile", "parameters": [
                {"name": "name", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "q", "in": "query", "schema": {"type": "string"}},
                {"name": "X-Tag", "in": "header", "schema": {"type": "string"}}], "responses": {}}},
            "/elsewhere": {"get": {"operationId": "elsewhere", "servers": [{"url": "http://127.0.0.2:9"}], "responses": {}}},
        },
        "components": {"schemas": {"Pet": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "mother": {"$ref": "#/components/schemas/Pet"}}}}},
    })
}

fn doors() -> Capabilities {
    let net = NetSpec { allow: vec!["127.0.0.1".into(), "127.0.0.2".into()], ..NetSpec::default() };
    let jq = JqRunner::new(Arc::new(PointerJq));
    Capabilities::default().with(Net::new(net).unwrap()).with(in_memory::apis()).with(jq)
}

fn bench() -> ToolFixture {
    ToolFixture::new(toolbox(), doors())
}

async fn loaded(server: &RecordingServer) -> ToolFixture {
    let bench = bench();
    let load = json!({"name": "pets", "spec_url": format!("{}/v1/openapi.json", server.url), "auth_header": "Bearer s3cret"});
    bench.call("openapi_load", load).await.unwrap();
    bench
}

async fn call(bench: &ToolFixture, path: &str, method: &str, more: Value) -> Result<Value, ToolError> {
    let mut input = json!({"name": "pets", "path": path, "method": method});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    bench.call("openapi_call", input).await
}

#[tokio::test]
async fn a_document_from_its_address_knows_where_its_api_is() {
    let server = RecordingServer::start().await;
    let bench = bench();
    let load = json!({"name": "pets", "spec_url": format!("{}/v1/openapi.json", server.url), "auth_header": "Bearer s3cret"});
    let got = bench.call("openapi_load", load).await.unwrap();
    assert_eq!(got["endpoint_count"], 5);
    assert_eq!((&got["title"], &got["version"]), (&json!("Pets"), &json!("2")));
    assert_eq!(got["base_url"], format!("{}/v1", server.url));
    assert_eq!(got["auth_origin"], server.url);
    assert!(server.requests()[0].headers.get("authorization").is_none());
    let apis = bench.call("openapi_list_apis", json!({})).await.unwrap();
    assert_eq!(apis["apis"][0]["name"], "pets");
    assert_eq!(apis["apis"][0]["base_url"], format!("{}/v1", server.url));
    assert!(!apis.to_string().contains("s3cret"));
}

#[tokio::test]
async fn operations_are_found_described_and_called() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let found =
        bench.call("openapi_list_endpoints", json!({"name": "pets", "filter": "add a pet"})).await.unwrap();
    assert_eq!(found["endpoints"][0]["signature"], "createPet(body: Pet)");
    assert_eq!(found["endpoints"][0]["operation_id"], "createPet");
    let all =
        bench.call("openapi_list_endpoints", json!({"name": "pets", "limit": 2, "offset": 1})).await.unwrap();
    assert_eq!((all["total"].as_u64(), all["endpoints"].as_array().unwrap().len()), (Some(5), 2));
    let tagged = bench.call("openapi_list_endpoints", json!({"name": "pets", "tag": "Pets"})).await.unwrap();
    assert_eq!(tagged["total"], 1);
    let told = bench
        .call(
            "openapi_get_operation",
            json!({"name": "pets", "path": "/pets", "method": "post", "pointer": "#/components/schemas/Pet"}),
        )
        .await
        .unwrap();
    assert_eq!(told["operation_id"], "createPet");
    let schema = &told["request_body"]["content"]["application/json"];
    assert_eq!(schema["properties"]["mother"]["$ref"], "#/components/schemas/Pet");
    assert_eq!(told["schema"]["required"][0], "name");
    let got = call(
        &bench,
        "/pets/{id}",
        "GET",
        json!({"path_params": {"id": 7}, "query_params": {"fields": ["a", "b&c"]}}),
    )
    .await
    .unwrap();
    assert_eq!((&got["status_code"], &got["body"]["name"]), (&json!(200), &json!("Rex")));
    let seen = server.requests().pop().unwrap();
    assert_eq!(seen.uri, "/v1/pets/7?fields=a,b%26c");
    assert_eq!(seen.headers["authorization"], "Bearer s3cret");
    let made = call(&bench, "/pets", "POST", json!({"body": {"name": "Ada"}})).await.unwrap();
    assert_eq!(made["status_code"], 201);
    let seen = server.requests().pop().unwrap();
    assert_eq!((seen.method, &seen.body[..]), (Method::POST, &b"{\"name\":\"Ada\"}"[..]));
    assert_eq!(seen.headers["content-type"], "application/json");
}

#[tokio::test]
async fn an_operation_is_meant_by_its_name_or_by_a_path_with_values() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    for (input, uri) in [
        (json!({"path": "getPet", "method": "GET", "path_params": {"id": 7}}), "/v1/pets/7"),
        (json!({"path": "GETPET", "method": "get", "path_params": {"id": 7}}), "/v1/pets/7"),
        (json!({"path": "/pets/7", "method": "GET"}), "/v1/pets/7"),
        (json!({"path": "files/a%20b", "method": "GET", "query_params": {"q": "x"}}), "/v1/files/a%20b?q=x"),
        (json!({"path": "/files/{name}", "method": "GET", "path_params": {"name": "c"}}), "/v1/files/c"),
    ] {
        let mut input = input;
        input["name"] = json!("pets");
        bench.call("openapi_call", input.clone()).await.unwrap_or_else(|error| panic!("{input}: {error}"));
        assert_eq!(server.requests().pop().unwrap().uri, uri, "{input}");
    }
    let before = server.requests().len();
    for (input, kind, word) in [
        (json!({"path": "getPett", "method": "GET"}), Kind::NotFound, "getPet"),
        (json!({"path": "getPet", "method": "POST"}), Kind::Invalid, "GET /pets/{id}"),
        (json!({"path": "/pets/x", "method": "GET"}), Kind::Invalid, "integer"),
        (json!({"path": "/pets/7", "method": "GET", "path_params": {"id": 8}}), Kind::Invalid, "once"),
        (json!({"path": "/pets/7/8", "method": "GET"}), Kind::NotFound, "/pets/{id}"),
        (json!({"path": "/files/..", "method": "GET"}), Kind::Invalid, ""),
        (json!({"path": "/files/%2e%2e%2fpets", "method": "GET"}), Kind::Invalid, ""),
    ] {
        let mut input = input;
        input["name"] = json!("pets");
        let error = bench.call("openapi_call", input.clone()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{input}: {error}");
        assert!(error.text().contains(word), "{input}: {error}");
    }
    assert_eq!(server.requests().len(), before);
}

#[tokio::test]
async fn schemas_of_answers_are_folded_unless_asked_for() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let input = json!({"name": "pets", "path": "getPet", "method": "GET"});
    let told = bench.call("openapi_get_operation", input.clone()).await.unwrap();
    let content = |told: &Value| told["responses"]["200"]["content"]["application/json"].clone();
    assert_eq!(content(&told), json!({"$ref": "#/components/schemas/Pet"}));
    let mut input = input;
    input["include_responses"] = json!(true);
    let told = bench.call("openapi_get_operation", input).await.unwrap();
    assert_eq!(content(&told)["properties"]["name"]["type"], "string");
}

#[tokio::test]
async fn answers_are_cut_told_or_kept() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let picture = call(&bench, "/pets/{id}", "GET", json!({"path_params": {"id": 8}})).await.unwrap();
    assert_eq!(picture["body"], json!({"binary": true, "content_type": "image/png", "bytes": 6}));
    let cut = call(&bench, "/pets/{id}", "GET", json!({"path_params": {"id": 9}, "max_response_bytes": 101}))
        .await
        .unwrap();
    assert_eq!((cut["truncated"].as_bool(), cut["body"].as_str().unwrap().chars().count()), (Some(true), 50));
}

#[tokio::test]
async fn jq_selects_from_the_body_after_credentials_are_masked() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let get = |path: &'static str, jq: &'static str| call(&bench, path, "GET", json!({"jq": jq}));
    let name = get("/pets/7", "/name").await.unwrap();
    assert_eq!((&name["body"], &name["truncated"]), (&json!("Rex"), &json!(false)));
    let small =
        call(&bench, "/pets/7", "GET", json!({"jq": "/name", "max_response_bytes": 5})).await.unwrap();
    assert_eq!(small["body"], "Rex");
    let echoed = get("/files/echo", "/headers").await.unwrap();
    assert!(!echoed.to_string().contains("s3cret"), "{echoed}");
    for (path, jq, words) in [
        ("/pets/7", "/nosuch", "jq: "),
        ("/pets/8", "/name", "image/png"),
        ("/pets/9", "/name", "is not JSON"),
    ] {
        let error = get(path, jq).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{path}: {error}");
        assert!(error.text().contains(words), "{path}: {error}");
    }
    let made = call(&bench, "/pets", "POST", json!({"body": {"name": "Ada"}, "jq": "/id"})).await.unwrap();
    assert_eq!((&made["status_code"], &made["body"]), (&json!(201), &json!({})));
    assert!(made["notice"].as_str().unwrap().starts_with("The request was sent"), "{made}");
}

#[tokio::test]
async fn a_dry_run_sends_nothing_and_shows_no_secret() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let before = server.requests().len();
    let got = call(
        &bench,
        "/pets",
        "POST",
        json!({"body": {"name": "Ada"}, "dry_run": true, "headers": {"X-Api-Key": "k3y"}}),
    )
    .await
    .unwrap();
    let request = &got["request"];
    assert_eq!((&request["method"], &request["body"]), (&json!("POST"), &json!("{\"name\":\"Ada\"}")));
    assert_eq!(request["url"], format!("{}/v1/pets", server.url));
    assert_eq!(request["headers"]["authorization"], "***");
    assert!(!got.to_string().contains("s3cret") && !got.to_string().contains("k3y"));
    assert_eq!(server.requests().len(), before);
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_named_with_an_example() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let before = server.requests().len();
    for (path, method, more, kind, said) in [
        ("/pets/{id}", "GET", json!({}), Kind::Invalid, "`id` is required: an integer"),
        ("/pets/{id}", "GET", json!({"path_params": {"id": "x"}}), Kind::Invalid, "must be an integer"),
        ("/pets/{id}", "GET", json!({"path_params": {"id": 1, "no": 1}}), Kind::Invalid, "It has id"),
        ("/pets", "POST", json!({}), Kind::Invalid, "{\"name\":\"text\"}"),
        ("/pets", "POST", json!({"body": {"age": 1}}), Kind::Invalid, "is missing name"),
        (
            "/pets",
            "POST",
            json!({"body": {"name": "x"}, "content_type": "text/xml"}),
            Kind::Invalid,
            "accepts application/json",
        ),
        ("/pets/{id}", "POST", json!({}), Kind::NotFound, "GET, DELETE"),
        ("/pet", "GET", json!({}), Kind::NotFound, "/pets"),
        ("/pets", "POST", json!({"timeout_s": 0}), Kind::Invalid, "1 or more"),
    ] {
        let error = call(&bench, path, method, more.clone()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{method} {path} {more}: {error}");
        assert!(error.text().contains(said), "{method} {path} {more}: {error}");
    }
    assert_eq!(server.requests().len(), before);
    let error = bench.call("openapi_list_endpoints", json!({"name": "cats"})).await.unwrap_err();
    assert!(error.text().contains("Loaded APIs: pets"), "{error}");
}

#[tokio::test]
async fn documents_that_cannot_be_used_are_refused_with_the_reason() {
    let server = RecordingServer::start().await;
    let bench = bench();
    for (load, said) in [
        (json!({"spec_content": ""}), "empty"),
        (json!({"spec_content": "{\"openapi\": \"3.0.0\", "}), "not valid JSON"),
        (json!({"spec_content": "a: 1"}), "which version"),
        (json!({"spec_content": "openapi: 4.0.0"}), "4.0.0"),
        (json!({"spec_content": "openapi: 3.0.0\npaths: {}"}), "no usable operation"),
        (json!({"spec_content": "x", "spec_url": "http://127.0.0.1/"}), "Exactly one"),
        (json!({}), "Exactly one"),
        (json!({"spec_url": "file:///etc/passwd"}), "Unsupported scheme"),
        (json!({"spec_url": format!("{}/v1/missing.json", server.url)}), "404"),
        (json!({"spec_content": document("/v1").to_string(), "auth_header": "x"}), "names no server"),
        (
            json!({"spec_content": document("/v1").to_string(), "base_url_override": server.url, "auth_header": "a\nb"}),
            "invalid in a header",
        ),
        (json!({"spec_path": "x.json"}), "no workspace"),
        (json!({"name": "../x", "spec_content": "x"}), "The name must be"),
    ] {
        let mut input = json!({"name": "x"});
        input.as_object_mut().unwrap().extend(load.as_object().unwrap().clone());
        let error = bench.call("openapi_load", input).await.unwrap_err();
        assert!(error.text().contains(said) && error.hint.is_some(), "{load}: {error}");
    }
    assert_eq!(bench.call("openapi_list_apis", json!({})).await.unwrap(), json!({"apis": []}));
}

#[tokio::test]
async fn an_api_can_be_forgotten() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let unload = || bench.call("openapi_unload", json!({"name": "pets"}));
    assert_eq!(unload().await.unwrap()["unloaded"], true);
    assert_eq!(unload().await.unwrap()["unloaded"], false);
    assert_eq!(call(&bench, "/pets", "POST", json!({})).await.unwrap_err().kind, Kind::NotFound);
}

#[tokio::test]
async fn an_api_that_echoes_the_credential_does_not_tell_it() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let echo = |most: usize| json!({"path_params": {"name": "echo"}, "max_response_bytes": most});
    let got = call(&bench, "/files/{name}", "GET", echo(10_000)).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().headers["authorization"], "Bearer s3cret");
    assert_eq!(got["body"], json!({"headers": {"Authorization": "***"}, "token": "***"}), "{got}");
    assert_eq!(got["headers"]["x-sent"], "***");
    // Nor if the response ends within it.
    for most in 1..80 {
        let got = call(&bench, "/files/{name}", "GET", echo(most)).await.unwrap();
        assert!(!got.to_string().contains("s3cr"), "{most}: {got}");
    }
}

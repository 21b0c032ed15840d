//! APIs with a document as upstreams: their tools, their calls, and changes of the document.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts servers on loopback, and fails where a promise is broken"
)]

#[path = "openapi/api_server.rs"]
mod api_server;
#[path = "openapi/prism.rs"]
mod prism;

use api_server::{Server, document};
use octo_model::Secret;
use octo_model::{Caller, Json, Kind, Operation, ToolError};
use octo_openapi_source::{Api, DocumentSource, DocumentSpec, start};
use octo_toolkit::{CallContext, ListingState, Source, SourceState};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

fn cx() -> CallContext {
    let deadline = Instant::now() + Duration::from_secs(20);
    CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new())
}

async fn call(api: &Api, tool: &str, arguments: Value) -> Result<Value, ToolError> {
    let result = api.run(Operation::tool(tool, Json::from(arguments)), &cx()).await?;
    Ok(result.to_json().to().unwrap())
}

async fn until(api: &Api, what: impl FnMut(&ListingState) -> bool) -> ListingState {
    let mut listing = api.listing();
    let found = tokio::time::timeout(Duration::from_secs(20), listing.wait_for(what)).await;
    match found {
        Ok(found) => found.unwrap().clone(),
        Err(_) => panic!("still {:?}", api.listing().borrow().state),
    }
}

async fn ready(api: &Api) -> ListingState {
    until(api, |now| now.state == SourceState::Ready).await
}

fn names(listing: &ListingState) -> Vec<&str> {
    listing.listing.tools.iter().map(|tool| tool.key.as_str()).collect()
}

fn definition(listing: &ListingState, name: &str) -> Value {
    let tool = listing.listing.tools.iter().find(|tool| tool.key == name).unwrap();
    tool.members.to_json().to().unwrap()
}

fn at(server: &Server) -> DocumentSpec {
    DocumentSpec::new("pets", DocumentSource::Url(format!("{}/v1/openapi.json", server.url)))
}

#[tokio::test]
async fn each_operation_is_a_tool_with_a_schema_that_all_clients_take() {
    let server = Server::start().await;
    let api = start(at(&server));
    let listing = ready(&api).await;
    assert_eq!(
        names(&listing),
        ["getPet", "deletePet", "createPet", "get_files_name", "getFace", "away", "limits"]
    );
    let get = definition(&listing, "getPet");
    assert_eq!(get["description"], "Find a pet by its number");
    assert_eq!(
        get["inputSchema"],
        json!({"type": "object", "additionalProperties": false, "required": ["id"], "properties": {
            "id": {"type": "integer"}, "fields": {"type": "array", "items": {"type": "string"}}}})
    );
    assert_eq!(get["outputSchema"]["required"], json!(["status"]));
    let body = &definition(&listing, "createPet")["inputSchema"]["properties"]["body"];
    assert_eq!(body["required"], json!(["name"]));
    assert!(definition(&listing, "getFace").get("outputSchema").is_none());
    for (tool, reads, destroys, again) in
        [("getPet", true, false, true), ("createPet", false, false, false), ("deletePet", false, true, true)]
    {
        let hints = &definition(&listing, tool)["annotations"];
        let told =
            ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|hint| &hints[hint]);
        assert_eq!(told, [&json!(reads), &json!(destroys), &json!(again), &json!(true)], "{tool}");
    }
    let text =
        listing.listing.tools.iter().map(|tool| tool.members.to_json().to_string()).collect::<String>();
    assert!(!text.contains("$ref"), "{text}");
}

#[tokio::test]
async fn calls_are_made_by_parts_and_answers_keep_their_numbers() {
    let server = Server::start().await;
    let api = start(at(&server));
    let got = call(&api, "getPet", json!({"id": 7, "fields": ["a", "b&c"]})).await.unwrap();
    assert_eq!(got["structuredContent"]["status"], 200);
    let text = got["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("12345678901234567890.10"), "{text}");
    assert_eq!(got["isError"], false);
    assert_eq!(server.last().uri, "/v1/pets/7?fields=a,b%26c");
    let made = call(&api, "createPet", json!({"body": {"name": "Ada"}})).await.unwrap();
    assert_eq!(made["structuredContent"], json!({"status": 201, "body": {}}));
    let seen = server.last();
    assert_eq!((seen.method.as_str(), &seen.body[..]), ("POST", &b"{\"name\":\"Ada\"}"[..]));
    let face = call(&api, "getFace", json!({"id": 7})).await.unwrap();
    assert_eq!(face["content"][0], json!({"type": "image", "mimeType": "image/png", "data": "iVBORwAB"}));
    assert!(face.get("structuredContent").is_none());
    let before = server.count();
    for (tool, arguments) in [
        ("get_files_name", json!({"name": ".."})),
        ("get_files_name", json!({"name": "%2e%2e%2f"})),
        ("get_files_name", json!({"name": "a\r\nHost: x"})),
        ("get_files_name", json!({"name": "a", "Host": "evil.example"})),
        ("getPet", json!({})),
        ("getPet", json!({"id": "x"})),
        ("createPet", json!({})),
        ("getPet", json!([1])),
    ] {
        let error = call(&api, tool, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{tool} {arguments}: {error}");
    }
    assert_eq!(call(&api, "none", json!({})).await.unwrap_err().kind, Kind::NotFound);
    assert_eq!(server.count(), before);
    // What looks like another URL is one segment of this one.
    call(&api, "get_files_name", json!({"name": "//evil.example/x?y#z"})).await.unwrap();
    assert_eq!(server.last().uri.path(), "/v1/files/%2F%2Fevil.example%2Fx%3Fy%23z");
}

#[tokio::test]
async fn bad_statuses_are_failed_results_or_say_what_to_do() {
    let server = Server::start().await;
    let api = start(at(&server));
    let ask = |status: u16| call(&api, "limits", json!({"status": status}));
    let missing = ask(404).await.unwrap();
    assert_eq!(missing["isError"], true);
    assert_eq!(missing["structuredContent"], json!({"status": 404, "body": {"why": "because"}}));
    assert_eq!(ask(500).await.unwrap()["isError"], true);
    for (status, kind, said) in [
        (401, Kind::Unauthorized, "needs a valid key"),
        (403, Kind::Unauthorized, "does not allow"),
        (503, Kind::Unavailable, "is unavailable"),
        (429, Kind::Unavailable, "rate limiting"),
    ] {
        let error = ask(status).await.unwrap_err();
        assert_eq!(error.kind, kind, "{status}: {error}");
        assert!(error.text().contains(said) && error.hint.is_some(), "{status}: {error}");
        assert_eq!(error.retry_after.is_some(), kind == Kind::Unavailable, "{status}");
    }
}

#[tokio::test]
async fn keys_go_to_the_api_and_nowhere_else() {
    let server = Server::start().await;
    let elsewhere = Server::start().await;
    server.set_document(json!({"servers": [{"url": elsewhere.url}], "paths": {}}));
    let secret = || Some(("key".to_owned(), Secret::new("s3cret-q")));
    let header = ("X-Api-Key".to_owned(), "s3cret-h".to_owned());
    // A document that leads to another host does not get the key there.
    let api = start(DocumentSpec { headers: [header.clone()].into(), ..at(&server) });
    let listing = until(&api, |now| now.state != SourceState::Starting).await;
    let SourceState::Down(why) = listing.state else { panic!("{:?}", listing.state) };
    assert!(why.contains("another host") && why.contains("`url`") && !why.contains("s3cret"), "{why}");
    assert_eq!(elsewhere.count(), 0);
    api.stop().await;
    // Without a key it is untrusted and must not lead into a private network.
    let api = start(at(&server));
    ready(&api).await;
    let error = call(&api, "deletePet", json!({"id": 1})).await.unwrap_err();
    assert_eq!((error.kind, elsewhere.count()), (Kind::Denied, 0), "{error}");
    // With the URL in the settings it does.
    let url = Some(format!("{}/v1", elsewhere.url));
    let spec = DocumentSpec { headers: [header].into(), query_key: secret(), url, ..at(&server) };
    let api = start(spec);
    let listing = ready(&api).await;
    assert!(!definition(&listing, "away").to_string().contains("X-Api-Key"), "it is given already");
    call(&api, "deletePet", json!({"id": 1})).await.unwrap();
    let seen = elsewhere.last();
    assert_eq!(seen.uri, "/v1/pets/1?key=s3cret-q");
    assert_eq!(seen.headers["x-api-key"], "s3cret-h");
    assert!(
        server.all().iter().all(|seen| seen.headers.get("x-api-key").is_none()),
        "the document needs no key"
    );
    // A URL in the settings replaces all servers of the document.
    call(&api, "away", json!({})).await.unwrap();
    assert_eq!(elsewhere.last().uri.path(), "/v1/away");
}

#[tokio::test]
async fn an_operation_elsewhere_gets_no_key() {
    let server = Server::start().await;
    let spec =
        DocumentSpec { headers: [("Authorization".into(), "Bearer s3cret".into())].into(), ..at(&server) };
    let api = start(spec);
    call(&api, "deletePet", json!({"id": 1})).await.unwrap();
    assert_eq!(server.last().headers["authorization"], "Bearer s3cret");
    // It is on another loopback port, which is not configured.
    let error = call(&api, "away", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    let error = call(&api, "limits", json!({"status": 401})).await.unwrap_err();
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
}

#[tokio::test]
async fn a_document_at_an_address_is_asked_for_again_and_sent_once() {
    let server = Server::start().await;
    let api = start(DocumentSpec { refresh: Duration::from_secs(1), ..at(&server) });
    let first = ready(&api).await;
    server
        .wait_for("it was asked whether it has changed", |seen| {
            seen.iter().any(|seen| seen.headers.get("if-none-match").is_some_and(|tag| tag == "\"1\""))
        })
        .await;
    assert_eq!(api.listing().borrow().version, first.version);
    server.set_document(json!({"paths": {"/new": {"get": {"operationId": "brandNew", "responses": {}}}}}));
    let second = until(&api, |now| names(now).contains(&"brandNew")).await;
    assert_eq!(names(&second).len(), names(&first).len() + 1);
    // A document that is temporarily broken removes nothing.
    server.set_document(json!(null));
    until(&api, |now| matches!(now.state, SourceState::Down(_))).await;
    call(&api, "deletePet", json!({"id": 1})).await.unwrap();
    server.set_document(json!({}));
    let third = until(&api, |now| now.state == SourceState::Ready).await;
    assert_eq!(names(&third), names(&first));
    api.stop().await;
    let count = server.count();
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    assert_eq!(server.count(), count, "it is no longer followed");
}

#[tokio::test]
async fn a_server_that_comes_later_is_found() {
    let server = Server::start().await;
    server.set_failing(true);
    let api = start(at(&server));
    let down = until(&api, |now| matches!(now.state, SourceState::Down(_))).await;
    assert!(down.listing.tools.is_empty());
    let error = call(&api, "getPet", json!({"id": 7})).await.unwrap_err();
    assert_eq!((error.kind, error.retry_after.is_some()), (Kind::Unavailable, true), "{error}");
    server.set_failing(false);
    ready(&api).await;
}

#[tokio::test]
async fn a_file_is_followed() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pets.json");
    let api = start(DocumentSpec {
        url: Some(format!("{}/v1", server.url)),
        ..DocumentSpec::new("pets", DocumentSource::File(path.clone()))
    });
    until(&api, |now| matches!(now.state, SourceState::Down(_))).await;
    std::fs::write(&path, document("/v1").to_string()).unwrap();
    ready(&api).await;
    call(&api, "getPet", json!({"id": 7})).await.unwrap();
    let mut changed = document("/v1");
    changed["paths"]["/pets"]["put"] = json!({"operationId": "replaceAll", "responses": {}});
    let beside = folder.path().join("new");
    std::fs::write(&beside, changed.to_string()).unwrap();
    std::fs::rename(&beside, &path).unwrap();
    until(&api, |now| names(now).contains(&"replaceAll")).await;
    std::fs::write(&path, "{\"openapi\": ").unwrap();
    let listing = until(&api, |now| matches!(now.state, SourceState::Down(_))).await;
    assert!(names(&listing).contains(&"replaceAll"));
    call(&api, "getPet", json!({"id": 7})).await.unwrap();
}

#[tokio::test]
async fn a_document_of_the_largest_kind_is_ready_soon_and_stays_small() {
    let file = std::env::var("GITHUB_OPENAPI").expect("run eval \"$(scripts/services env)\" first");
    let begun = Instant::now();
    let api = start(DocumentSpec::new("github", DocumentSource::File(file.into())));
    let listing = ready(&api).await;
    let took = begun.elapsed();
    let size: usize = listing.listing.tools.iter().map(|tool| tool.members.to_json().bytes().len()).sum();
    let most = listing.listing.tools.iter().map(|tool| tool.members.to_json().bytes().len()).max().unwrap();
    let count = listing.listing.tools.len();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kilobytes = |word: &str| {
        let line = status.lines().find(|line| line.starts_with(word)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let (now, peak) = (kilobytes("VmRSS") / 1024, kilobytes("VmHWM") / 1024);
    println!(
        "github: {count} tools in {took:?}, {size} bytes of definitions, the largest {most}; {now} MB now, {peak} MB peak"
    );
    assert!(count > 1_200, "{count}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(size < 8 << 20 && most < 100_000, "{size} {most}");
    assert!(now < 100 && peak < 200, "{now} {peak}");
    let mut folded: Vec<String> =
        names(&listing).iter().map(|name| octo_model::normalized_name(name)).collect();
    folded.sort();
    folded.dedup();
    assert_eq!(folded.len(), count);
    for tool in &listing.listing.tools {
        let schema: Value = tool.members.get("inputSchema").unwrap().to().unwrap();
        assert!(octo_model::is_valid_name(&tool.key), "{}", tool.key);
        assert_eq!(schema["type"], "object");
        for odd in ["anyOf", "oneOf", "allOf", "not", "$ref"] {
            assert!(schema.get(odd).is_none(), "{} has {odd}", tool.key);
        }
        assert!(!schema.to_string().contains("\"$ref\""), "{}", tool.key);
    }
}

//! Independent validation of requests: Prism checks them against the same documents.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts servers on loopback, and fails where a promise is broken"
)]

use octo_grants::net::NetSpec;
use octo_grants::{Capabilities, JqRunner, Net};
use octo_openapi::{ApiOperation, Document, ParamLocation, SampleMembers, sample};
use octo_ports::in_memory;
use octo_toolkit::{PointerJq, ToolFixture};
use serde_json::{Map, Value, json};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Prism {
    child: Child,
    url: String,
}

impl Drop for Prism {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn service(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run eval \"$(scripts/services env)\" first"))
}

impl Prism {
    fn start(document: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let child = Command::new(service("NODE24"))
            .args([service("PRISM").as_str(), "mock", "--host", "127.0.0.1", "--port", &port, document])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }

    async fn ready(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let address = self.url.trim_start_matches("http://").to_owned();
        while tokio::net::TcpStream::connect(&address).await.is_err() {
            assert!(self.child.try_wait().unwrap().is_none(), "Prism has ended");
            assert!(Instant::now() < deadline, "Prism does not listen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A call of an operation, with all optional values or with as few as possible.
fn generated(document: &Document, operation: &ApiOperation, round: usize) -> Value {
    let how = if round == 0 { SampleMembers::Required } else { SampleMembers::RequiredAndOptional };
    let names = ["plain", "with space & sign", "ünïcode/slash?#", "1,2;3=4"];
    let mut given = json!({"path": operation.path, "method": operation.method});
    let mut places: [Map<String, Value>; 4] = Default::default();
    for param in &operation.params {
        if !param.required && how == SampleMembers::Required {
            continue;
        }
        let mut value = sample(document, &param.schema, how);
        if param.schema == json!({"type": "string"}) && param.location != ParamLocation::Header {
            value = json!(names[round % names.len()]);
        }
        let at = [ParamLocation::Path, ParamLocation::Query, ParamLocation::Header, ParamLocation::Cookie];
        let at = at.iter().position(|place| *place == param.location).unwrap();
        places[at].insert(param.name.clone(), value);
    }
    for (name, values) in ["path_params", "query_params", "headers", "cookie_params"].iter().zip(places) {
        given[*name] = Value::Object(values);
    }
    if let Some(media) = operation.body.as_ref().and_then(|body| body.media.first()) {
        let mut body = sample(document, &media.schema, how);
        if media.content_type == "multipart/form-data" && body.get("picture").is_some() {
            body["picture"] =
                json!({"filename": "a.png", "base64": "iVBORw0KGgo=", "content_type": "image/png"});
        }
        given["body"] = body;
    }
    given
}

#[tokio::test]
async fn a_hundred_generated_calls_are_accepted_by_prism() {
    let folder = format!("{}/tests/documents", env!("CARGO_MANIFEST_DIR"));
    let files = ["shop-2.0.yaml", "shop-3.0.yaml", "shop-3.1.json"].map(|file| format!("{folder}/{file}"));
    let mut servers = files.each_ref().map(|file| Prism::start(file));
    let net = Net::new(NetSpec { allow: vec!["127.0.0.1".into()], ..NetSpec::default() }).unwrap();
    let doors =
        Capabilities::default().with(net).with(in_memory::apis()).with(JqRunner::new(Arc::new(PointerJq)));
    let bench = ToolFixture::new(tools_openapi::toolbox(), doors);
    let (mut calls, mut refused) = (0, Vec::new());
    for (file, server) in files.iter().zip(&mut servers) {
        server.ready().await;
        let text = std::fs::read_to_string(file).unwrap();
        let load = json!({"name": "shop", "spec_content": text, "base_url_override": server.url});
        bench.call("openapi_load", load).await.unwrap();
        let document = Document::parse(text).unwrap();
        for listed in document.operations() {
            let operation = document.operation(&listed.path, &listed.method).unwrap();
            for round in 0..5 {
                let mut call = generated(&document, &operation, round);
                call["name"] = json!("shop");
                let answer = bench.call("openapi_call", call.clone()).await;
                let answer = answer.unwrap_or_else(|error| panic!("{call}: {error}"));
                calls += 1;
                let status = answer["status_code"].as_u64().unwrap();
                // Responses that Prism generates for recursive schemas are not always valid; only the request is
                // checked.
                let violations =
                    answer["headers"].get("sl-violations").and_then(Value::as_str).unwrap_or("[]");
                let violations: Vec<Value> = serde_json::from_str(violations).unwrap();
                let violated = violations.iter().any(|violation| violation["location"][0] == "request");
                if !(200..300).contains(&status) || violated {
                    refused.push(format!("{call}\n  -> {answer}"));
                }
            }
        }
    }
    println!("prism: {calls} calls, {} refused", refused.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(calls >= 100, "{calls}");
    let bad = format!("{}/items", servers[0].url);
    let answer = forbidden(&bad).await;
    assert_eq!(answer, 422, "Prism accepts everything, so its word means nothing");
}

/// A request that the first document forbids: a body without what it requires.
async fn forbidden(url: &str) -> u16 {
    let net = Net::new(NetSpec { allow: vec!["127.0.0.1".into()], ..NetSpec::default() }).unwrap();
    let mut ask = octo_grants::net::NetRequest::get(url.parse().unwrap());
    ask.method = http::Method::POST;
    ask.headers.insert("content-type", "application/json".parse().unwrap());
    ask.body = Some("{}".into());
    net.send(ask).await.unwrap().status.as_u16()
}

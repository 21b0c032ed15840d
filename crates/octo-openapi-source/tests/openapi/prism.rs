//! Independent validation of requests: Prism checks them against the same document.

use super::{call, definition, names, ready};
use octo_openapi::{Document as Parsed, SampleMembers, sample};
use octo_openapi_source::{DocumentSource, DocumentSpec, start};
use serde_json::{Map, Value, json};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
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
    async fn start(document: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let child = Command::new(service("NODE24"))
            .args([service("PRISM").as_str(), "mock", "--host", "127.0.0.1", "--port", &port, document])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut prism = Self { child, url: format!("http://127.0.0.1:{port}") };
        let deadline = Instant::now() + Duration::from_secs(60);
        while tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.is_err() {
            assert!(prism.child.try_wait().unwrap().is_none(), "Prism has ended");
            assert!(Instant::now() < deadline, "Prism does not listen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        prism
    }
}

/// Arguments generated from a tool's own schema.
fn arguments(document: &Parsed, schema: &Value, how: SampleMembers) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let all = schema["properties"].as_object().unwrap().iter();
    let wanted =
        all.filter(|(name, _)| how == SampleMembers::RequiredAndOptional || required.contains(&json!(name)));
    let sampled = wanted.map(|(name, schema)| (name.clone(), pruned(sample(document, schema, how))));
    sampled.collect::<Map<_, _>>().into()
}

/// Without empty objects: recursive schemas are left to the API.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let said = members.into_iter().filter(|(_, value)| *value != json!({}));
            said.map(|(name, value)| (name, pruned(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().filter(|item| *item != json!({})).collect(),
        plain => plain,
    }
}

#[tokio::test]
async fn what_the_schemas_ask_for_is_what_the_api_takes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools-openapi/tests/documents");
    let mut calls = 0;
    for file in ["shop-2.0.yaml", "shop-3.0.yaml", "shop-3.1.json"] {
        let path = format!("{folder}/{file}");
        let prism = Prism::start(&path).await;
        let document = Parsed::parse(std::fs::read_to_string(&path).unwrap()).unwrap();
        let api = start(DocumentSpec {
            url: Some(prism.url.clone()),
            ..DocumentSpec::new("shop", DocumentSource::File(path.into()))
        });
        let listing = ready(&api).await;
        for name in names(&listing) {
            for how in [SampleMembers::Required, SampleMembers::RequiredAndOptional] {
                let schema = &definition(&listing, name)["inputSchema"];
                let arguments = arguments(&document, schema, how);
                let got = call(&api, name, arguments.clone()).await;
                let got = got.unwrap_or_else(|error| panic!("{file} {name} {arguments}: {error}"));
                let status = got["structuredContent"]["status"].as_u64().unwrap();
                assert!((200..300).contains(&status), "{file} {name} {arguments}: {got}");
                calls += 1;
            }
        }
        if file == "shop-2.0.yaml" {
            let wrong = json!({"body": {"name": "x", "price": "free"}});
            let wrong = call(&api, "createItem", wrong).await.unwrap();
            let told = (&wrong["structuredContent"]["status"], &wrong["isError"]);
            assert_eq!(
                told,
                (&json!(422), &json!(true)),
                "Prism accepts everything, so its word means nothing"
            );
        }
    }
    println!("prism: {calls} calls");
    assert!(calls >= 40, "{calls}");
}

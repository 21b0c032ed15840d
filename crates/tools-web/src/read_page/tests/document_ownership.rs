//! A page that was read belongs to its principal, until it expires.

use crate::fake_server::{FakeServer, capabilities, html};
use crate::page_document::{CacheLimits, DocumentCache};
use crate::pdf;
use crate::read_page::ReadPage;
use octo_toolkit::{CallContext, Caller, Capabilities, Json, Kind, ToolError, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAGE: &str = "<title>Tea</title><main><article><h1>Tea</h1><p>The water should be hot, but it must not boil for long, \
    since tea wants air, as everybody says who has tried it both ways.</p></article></main>";

struct ReadPageFixture {
    toolbox: Toolbox,
    capabilities: Capabilities,
}

impl ReadPageFixture {
    fn new(room: CacheLimits) -> Self {
        let toolbox = Toolbox::new("readability", "Reads.").with(ReadPage(DocumentCache::with_limits(room)));
        Self { toolbox, capabilities: capabilities() }
    }

    async fn read(&self, caller: &Caller, input: Value) -> Result<Value, ToolError> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let cx = CallContext::new(Arc::new(caller.clone()), deadline, Default::default());
        let answer = self.toolbox.tools[0].run(Json::from(input), &self.capabilities, &cx).await?;
        answer.to().map_err(ToolError::internal)
    }
}

async fn site() -> FakeServer {
    FakeServer::serve(|_| html(200, PAGE)).await
}

#[tokio::test]
async fn nobody_else_gets_a_page_by_its_handle_or_out_of_the_cache() {
    let (fake, hub) = (site().await, ReadPageFixture::new(CacheLimits::default()));
    let (ann, bob) = (Caller::named("ann"), Caller::named("bob"));
    let url = fake.url.as_str();
    let handle = hub.read(&ann, json!({"url": url})).await.unwrap()["handle"].clone();
    let theirs = hub.read(&bob, json!({"url": url, "handle": handle})).await.unwrap_err();
    let nothing = hub.read(&bob, json!({"url": url, "handle": "page_0"})).await.unwrap_err();
    assert_eq!((theirs.kind, theirs.hint), (Kind::NotFound, nothing.hint));
    assert_eq!(fake.requests().len(), 1);
    let own = hub.read(&bob, json!({"url": url})).await.unwrap();
    assert_eq!((&own["cached"], fake.requests().len()), (&json!(false), 2));
    assert_eq!(own["handle"], handle, "the same text has the same handle");
    assert!(hub.read(&bob, json!({"url": url, "handle": handle})).await.is_ok());
}

#[tokio::test]
async fn a_page_is_read_again_when_its_time_is_over_or_its_place_taken() {
    let fake = FakeServer::serve(|seen| html(200, &format!("{PAGE}<p>{}</p>", seen.path))).await;
    let ann = Caller::named("ann");
    let at = |path: &str| fake.url.join(path).unwrap().to_string();
    let hub = ReadPageFixture::new(CacheLimits { max_documents: 2, ..CacheLimits::default() });
    let first = hub.read(&ann, json!({"url": at("1")})).await.unwrap()["handle"].clone();
    for path in ["2", "3"] {
        hub.read(&ann, json!({"url": at(path)})).await.unwrap();
    }
    let gone = hub.read(&ann, json!({"url": at("1"), "handle": first})).await.unwrap_err();
    assert_eq!(gone.kind, Kind::NotFound);
    assert_eq!(hub.read(&ann, json!({"url": at("3")})).await.unwrap()["cached"], true);
    assert_eq!(hub.read(&ann, json!({"url": at("1")})).await.unwrap()["cached"], false);
    let short =
        ReadPageFixture::new(CacheLimits { ttl: Duration::from_millis(50), ..CacheLimits::default() });
    let handle = short.read(&ann, json!({"url": at("1")})).await.unwrap()["handle"].clone();
    let late = Instant::now() + Duration::from_secs(5);
    while short.read(&ann, json!({"url": at("1"), "handle": handle})).await.is_ok() {
        assert!(Instant::now() < late, "it is kept for ever");
    }
    assert_eq!(short.read(&ann, json!({"url": at("1")})).await.unwrap()["cached"], false);
}

#[tokio::test]
async fn without_the_cache_the_new_page_is_kept_and_the_old_handle_stays_good() {
    let fake = FakeServer::serve(|seen| html(200, &format!("{PAGE}<p>{}</p>", seen.get("n")))).await;
    let (ann, hub) = (Caller::named("ann"), ReadPageFixture::new(CacheLimits::default()));
    let url = fake.url.as_str();
    let first = hub.read(&ann, json!({"url": url})).await.unwrap();
    let fresh = hub.read(&ann, json!({"url": url, "use_cache": false})).await.unwrap();
    assert_eq!((&fresh["cached"], fake.requests().len()), (&json!(false), 2));
    let again = hub.read(&ann, json!({"url": url})).await.unwrap();
    assert_eq!((&again["cached"], fake.requests().len()), (&json!(true), 2));
    let old = json!({"url": url, "use_cache": false, "handle": first["handle"]});
    let old = hub.read(&ann, old).await.unwrap();
    assert_eq!((&old["cached"], fake.requests().len()), (&json!(true), 2), "a handle is never fetched");
    let part = hub.read(&ann, json!({"url": format!("{url}#part")})).await.unwrap();
    assert_eq!(part["cached"], true, "a fragment is the same page");
}

#[tokio::test]
async fn a_pdf_is_a_document_with_pages_and_fetched_once() {
    let fake = FakeServer::serve_bytes(|_| pdf::tests::sample()).await;
    let (ann, hub) = (Caller::named("ann"), ReadPageFixture::new(CacheLimits::default()));
    let url = fake.url.join("tea.pdf").unwrap().to_string();
    let first = hub.read(&ann, json!({"url": url, "outline": true})).await.unwrap();
    let names: Vec<&str> =
        first["outline"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(names, ["Page 1", "Page 2"]);
    assert_eq!((&first["title"], &first["byline"]), (&json!("Tea"), &json!("Ann")));
    assert!(first["note"].as_str().unwrap().contains("2 pages"), "{first}");
    let handle = &first["handle"];
    let section = hub.read(&ann, json!({"url": url, "handle": handle, "section": "Page 2"})).await.unwrap();
    assert_eq!(section["content"], "## Page 2\n\nBlack tea\n");
    let found = hub.read(&ann, json!({"url": url, "handle": handle, "query": "black"})).await.unwrap();
    assert!(found["passages"][0]["text"].as_str().unwrap().contains("Black tea"), "{found}");
    assert_eq!(found["content"], "", "the passages are given once");
    assert_eq!(fake.requests().len(), 1);
}

//! Order of the engines, and how failures are reported.

use super::super::SearchSettings;
use super::call_search;
use crate::fake_server::{FakeServer, html, json, unused_url};
use octo_toolkit::{Kind, Secret};
use serde_json::json as value;

const DUCKDUCKGO_PAGE: &str =
    r#"<div class="result"><a class="result__a" href="https://duck.example/">D</a></div>"#;

struct FakeEngines {
    searxng: FakeServer,
    brave: FakeServer,
    duck: FakeServer,
}

/// Three engines, each of which responds or fails with 500.
async fn start_engines(searxng: bool, brave: bool, duck: bool) -> FakeEngines {
    let list = |url: &str| value!([{"url": url, "title": "T", "content": "c"}]);
    let (one, two) = (list("https://searxng.example/"), list("https://brave.example/"));
    FakeEngines {
        searxng: FakeServer::serve(
            move |_| if searxng { json(value!({"results": one})) } else { html(500, "") },
        )
        .await,
        brave: FakeServer::serve(
            move |_| if brave { json(value!({"web": {"results": two}})) } else { html(500, "") },
        )
        .await,
        duck: FakeServer::serve(move |_| html(if duck { 200 } else { 500 }, DUCKDUCKGO_PAGE)).await,
    }
}

impl FakeEngines {
    fn settings(&self) -> SearchSettings {
        SearchSettings {
            searxng_url: Some(self.searxng.url.clone()),
            brave_api_key: Some(Secret::new("key")),
            brave_url: Some(self.brave.url.clone()),
            duckduckgo_url: Some(self.duck.url.clone()),
        }
    }
}

#[tokio::test]
async fn the_first_that_answers_is_used_and_failures_are_told() {
    for (working, engine, failed) in [
        ((true, true, true), "searxng", &[][..]),
        ((false, true, true), "brave", &["searxng"]),
        ((false, false, true), "duckduckgo", &["searxng", "brave"]),
    ] {
        let three = start_engines(working.0, working.1, working.2).await;
        let answer = call_search(three.settings(), value!({"query": "q", "num_results": 1})).await.unwrap();
        assert_eq!(answer["engine"], engine);
        let told: Vec<&str> = answer["failed_engines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["engine"].as_str().unwrap())
            .collect();
        assert_eq!(told, failed);
        let asked = [&three.searxng, &three.brave, &three.duck].map(|fake| fake.requests().len());
        assert_eq!(asked.iter().sum::<usize>(), failed.len() + 1, "{engine}");
    }
    let none = start_engines(false, false, false).await;
    let error = call_search(none.settings(), value!({"query": "q"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    for name in ["searxng: ", "brave: ", "duckduckgo: "] {
        assert!(error.message.contains(name), "{}", error.message);
    }
}

#[tokio::test]
async fn named_engines_are_the_only_ones() {
    let all = start_engines(false, true, true).await;
    let answer =
        call_search(all.settings(), value!({"query": "q", "num_results": 1, "engines": ["DuckDuckGo"]}))
            .await
            .unwrap();
    assert_eq!(answer["engine"], "duckduckgo");
    assert!(all.brave.requests().is_empty());
    let error = call_search(all.settings(), value!({"query": "q", "engines": ["google"]})).await.unwrap_err();
    assert!(
        error.message.contains("searxng: ") && !error.message.contains("duckduckgo"),
        "{}",
        error.message
    );
    let bare = SearchSettings { duckduckgo_url: Some(unused_url()), ..SearchSettings::default() };
    let error = call_search(bare, value!({"query": "q", "engines": ["google"]})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
}

#[tokio::test]
async fn an_engine_that_hangs_leaves_time_for_the_others() {
    let three = start_engines(true, true, true).await;
    let silent = silent_server().await;
    let settings = SearchSettings { searxng_url: Some(silent), ..three.settings() };
    let answer = call_search(settings, value!({"query": "q", "num_results": 1})).await.unwrap();
    assert_eq!(answer["engine"], "brave");
    assert_eq!(answer["failed_engines"][0]["engine"], "searxng");
}

/// Accepts connections and sends nothing.
#[expect(clippy::disallowed_methods, reason = "tests listen on loopback")]
async fn silent_server() -> url::Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok(connection) = listener.accept().await {
            kept.push(connection);
        }
    });
    url::Url::parse(&url).unwrap()
}

#[tokio::test]
async fn bad_questions_are_refused_before_anything_is_asked() {
    let all = start_engines(true, true, true).await;
    for input in [
        value!({"query": "   "}),
        value!({"query": "x".repeat(1001)}),
        value!({"query": "q", "num_results": 0}),
        value!({"query": "q", "num_results": 51}),
        value!({"query": "q", "page": 0}),
        value!({"query": "q", "page": 21}),
        value!({"query": "q", "language": "English, please"}),
        value!({"query": "q", "time_range": "decade"}),
        value!({"query": "q", "categories": ["a,b"]}),
        value!({"query": "q", "engines": ["x".repeat(61)]}),
        value!({"query": "q", "unknown": 1}),
    ] {
        let error = call_search(all.settings(), input.clone()).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{input}");
    }
    assert!(
        all.searxng.requests().is_empty()
            && all.brave.requests().is_empty()
            && all.duck.requests().is_empty()
    );
}

#[tokio::test]
async fn long_texts_are_cut() {
    let long = "word ".repeat(2000);
    let fake = FakeServer::serve(move |_| {
        json(value!({"results": [{"url": "https://a.example/", "title": long, "content": long},
            {"url": format!("https://b.example/{}", "x".repeat(3000)), "title": "t"}]}))
    })
    .await;
    let settings = SearchSettings { searxng_url: Some(fake.url.clone()), ..SearchSettings::default() };
    let answer = call_search(settings, value!({"query": "q", "num_results": 1})).await.unwrap();
    let hit = &answer["results"][0];
    assert!(hit["title"].as_str().unwrap().chars().count() <= 201);
    assert!(hit["snippet"].as_str().unwrap().chars().count() <= 501);
    assert!(hit["snippet"].as_str().unwrap().ends_with('…'));
}

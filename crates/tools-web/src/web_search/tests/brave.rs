//! Brave responses, and which servers receive the API key.

use super::super::SearchSettings;
use super::{call_search, urls};
use crate::fake_server::{FakeServer, RecordedRequest, html, json, unused_url};
use octo_toolkit::Secret;
use serde_json::{Value, json as value};

const KEY: &str = "BSA-very-secret-key";

fn settings_for(fake: &FakeServer) -> SearchSettings {
    SearchSettings {
        brave_api_key: Some(Secret::new(KEY)),
        brave_url: Some(fake.url.clone()),
        duckduckgo_url: Some(unused_url()),
        ..SearchSettings::default()
    }
}

/// Twenty results a page, two pages.
fn web_answer(seen: &RecordedRequest) -> Value {
    let offset: usize = seen.get("offset").parse().unwrap();
    let results: Vec<Value> = (0..20)
        .map(|number| {
            value!({
                "title": format!("Title &amp; <strong>{}</strong>", offset * 20 + number),
                "url": format!("https://site.example/{}", offset * 20 + number),
                "is_source_local": false,
                "description": "It&#x27;s a <strong>snippet</strong>",
                "page_age": "2026-11-01T10:00:00",
                "profile": {"name": "Site"},
                "language": "en",
                "type": "search_result",
            })
        })
        .collect();
    value!({
        "type": "search",
        "query": {"original": "q", "altered": "queue", "more_results_available": offset < 1},
        "mixed": {"type": "mixed", "main": []},
        "web": {"type": "search", "results": results, "family_friendly": true},
    })
}

#[tokio::test]
async fn parameters_and_key_reach_brave() {
    let fake = FakeServer::serve(|seen| json(web_answer(seen))).await;
    let input = value!({"query": "q", "num_results": 30, "language": "ja", "time_range": "week", "safesearch": "off"});
    let answer = call_search(settings_for(&fake), input).await.unwrap();
    let asked = fake.requests();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].path, "/res/v1/web/search");
    assert_eq!(asked[0].headers["x-subscription-token"], KEY);
    for (name, expected) in [
        ("q", "q"),
        ("count", "20"),
        ("offset", "0"),
        ("search_lang", "jp"),
        ("freshness", "pw"),
        ("safesearch", "off"),
        ("text_decorations", "false"),
    ] {
        assert_eq!(asked[0].get(name), expected, "{name}");
    }
    assert_eq!(asked[1].get("offset"), "1");
    assert_eq!(urls(&answer).len(), 30);
    assert_eq!(answer["next"], 2);
    let first = &answer["results"][0];
    assert_eq!(first["title"], "Title & 0");
    assert_eq!(first["snippet"], "It's a snippet");
    assert_eq!(first["published"], "2026-11-01T10:00:00");
    assert_eq!(first["engine"], "brave");
    assert_eq!(answer["suggestions"], value!(["queue"]));
}

#[tokio::test]
async fn news_come_from_the_endpoint_for_news() {
    let fake = FakeServer::serve(|_| {
        json(value!({"type": "news", "query": {"original": "q"}, "results": [
            {"type": "news_result", "title": "N", "url": "https://n.example/1", "description": "d", "age": "2 hours ago"}]}))
    })
    .await;
    let answer =
        call_search(settings_for(&fake), value!({"query": "q", "categories": ["news"], "num_results": 1}))
            .await
            .unwrap();
    assert_eq!(fake.requests()[0].path, "/res/v1/news/search");
    assert_eq!(urls(&answer), ["https://n.example/1"]);
    assert_eq!(answer["results"][0]["published"], "2 hours ago");
}

fn local(seen: &RecordedRequest) -> (u16, (&'static str, String), String) {
    match seen.path.as_str() {
        "/res/v1/web/search" => {
            let mut found = web_answer(seen);
            found["locations"] = value!({"type": "locations", "results": [
                {"id": "one", "type": "location_result", "title": "Café One", "url": "https://one.example"},
                {"id": "two", "type": "location_result", "title": "Café Two"}]});
            json(found)
        }
        "/res/v1/local/pois" => json(value!({"type": "local_pois", "results": [
            {"id": "one", "title": "Café One", "url": "https://one.example", "postal_address": {"displayAddress": "1 Main St"},
             "contact": {"telephone": "+1 555"}, "rating": {"ratingValue": 4.5, "bestRating": 5.0, "reviewCount": 120},
             "price_range": "$$"},
            {"id": "two", "title": "Café Two", "coordinates": [48.85, 2.35]}]})),
        _ => json(
            value!({"type": "local_descriptions", "results": [{"type": "local_description", "id": "one", "description": "Cosy &amp; small"}]}),
        ),
    }
}

#[tokio::test]
async fn places_come_with_what_is_known_of_them() {
    let fake = FakeServer::serve(local).await;
    let answer = call_search(
        settings_for(&fake),
        value!({"query": "cafe", "categories": ["local"], "num_results": 5}),
    )
    .await
    .unwrap();
    let asked = fake.requests();
    let paths: Vec<&str> = asked.iter().map(|seen| seen.path.as_str()).collect();
    assert_eq!(paths, ["/res/v1/web/search", "/res/v1/local/pois", "/res/v1/local/descriptions"]);
    assert_eq!(asked[0].get("result_filter"), "web,locations,query");
    let ids: Vec<&str> =
        asked[1].pairs.iter().filter(|(name, _)| name == "ids").map(|(_, id)| id.as_str()).collect();
    assert_eq!(ids, ["one", "two"]);
    assert_eq!(answer["total_results"], 2);
    assert_eq!(
        answer["results"][0]["snippet"],
        "1 Main St · +1 555 · rated 4.5 of 5 (120 reviews) · $$ · Cosy & small"
    );
    assert!(urls(&answer)[1].starts_with("https://www.openstreetmap.org/?mlat=48.85"));
}

#[tokio::test]
async fn a_plan_without_places_still_lists_them() {
    let fake =
        FakeServer::serve(|seen| if seen.path.contains("local") { html(403, "{}") } else { local(seen) })
            .await;
    let answer =
        call_search(settings_for(&fake), value!({"query": "cafe", "categories": ["local"]})).await.unwrap();
    assert_eq!(urls(&answer), ["https://one.example/"]);
    assert_eq!(answer["failed_engines"][0]["engine"], "brave");
}

#[tokio::test]
async fn the_key_is_never_told_nor_sent_elsewhere() {
    let elsewhere = FakeServer::serve(|seen| json(web_answer(seen))).await;
    let other = elsewhere.url.clone();
    let echo = value!({"error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": format!("The token {KEY} is invalid"),
        "meta": {"component": "authentication"}, "status": 422}});
    for (status, body, reason, hint) in [
        (422, echo.to_string(), "it rejected the API key", "search.brave_api_key"),
        (401, KEY.to_owned(), "it rejected the API key", "search.brave_api_key"),
        (
            429,
            value!({"error": {"code": "RATE_LIMITED"}}).to_string(),
            "rate limiting requests (RATE_LIMITED)",
            "",
        ),
        (402, String::new(), "status 402", "quota"),
        (500, KEY.to_owned(), "status 500", ""),
        (302, String::new(), "it redirects", ""),
        (200, KEY.to_owned(), "is not JSON", ""),
    ] {
        let target = other.to_string();
        let fake = FakeServer::serve(move |_| (status, ("location", target.clone()), body.clone())).await;
        let error = call_search(settings_for(&fake), value!({"query": "q"})).await.unwrap_err();
        assert!(error.message.contains(reason), "{}", error.message);
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{:?}", error.hint);
        assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
        assert_eq!(fake.requests().len(), 1, "{status}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn what_brave_would_refuse_is_not_sent() {
    for (input, reason) in [
        (value!({"query": "a".repeat(401)}), "exceeds 400 characters or 50 words"),
        (value!({"query": "a ".repeat(51)}), "exceeds 400 characters or 50 words"),
        (value!({"query": "q", "categories": ["images"]}), "no results for categories images"),
    ] {
        let fake = FakeServer::serve(|seen| json(web_answer(seen))).await;
        let error = call_search(settings_for(&fake), input).await.unwrap_err();
        assert!(error.message.contains(reason), "{}", error.message);
        assert!(fake.requests().is_empty());
    }
    let fake = FakeServer::serve(|seen| json(web_answer(seen))).await;
    let settings = SearchSettings { brave_api_key: Some(Secret::new("a\nb")), ..settings_for(&fake) };
    let error = call_search(settings, value!({"query": "q"})).await.unwrap_err();
    assert!(error.message.contains("its API key is not a valid header value"), "{}", error.message);
    assert!(fake.requests().is_empty());
}

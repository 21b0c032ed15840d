//! SearXNG responses, valid and invalid.

use super::super::SearchSettings;
use super::{call_search, search, urls};
use crate::fake_server::{FakeServer, RecordedRequest, html, json, unused_url};
use octo_toolkit::Kind;
use serde_json::{Value, json as value};

fn settings_for(fake: &FakeServer) -> SearchSettings {
    SearchSettings {
        searxng_url: Some(fake.url.clone()),
        duckduckgo_url: Some(unused_url()),
        ..SearchSettings::default()
    }
}

fn item(number: u32) -> Value {
    value!({
        "url": format!("https://site{number}.example/page"),
        "title": format!("Title {number}"),
        "content": format!("Snippet {number}"),
        "engine": "bing",
        "engines": ["bing"],
        "parsed_url": ["https", format!("site{number}.example"), "/page", "", "", ""],
        "template": "default.html",
        "positions": [number],
        "score": 1.0,
        "category": "general",
    })
}

fn body(results: Vec<Value>) -> Value {
    value!({"query": "q", "number_of_results": 0, "results": results, "answers": [], "corrections": [],
        "infoboxes": [], "suggestions": [], "unresponsive_engines": []})
}

/// Ten results a page, four pages.
fn paged(seen: &RecordedRequest) -> (u16, (&'static str, String), String) {
    let page: u32 = seen.get("pageno").parse().unwrap();
    let results =
        if page <= 4 { (1..=10).map(|number| item((page - 1) * 10 + number)).collect() } else { Vec::new() };
    json(body(results))
}

#[tokio::test]
async fn parameters_reach_the_instance() {
    let fake = FakeServer::serve(paged).await;
    let settings =
        SearchSettings { searxng_url: Some(fake.url.join("searx").unwrap()), ..settings_for(&fake) };
    let input = value!({"query": "  rust   async ", "language": "pt-br", "time_range": "month", "categories": ["it", "local"],
        "safesearch": "strict"});
    call_search(settings, input).await.unwrap();
    let seen = fake.requests().remove(0);
    assert_eq!(seen.path, "/searx/search");
    for (name, expected) in [
        ("q", "rust async"),
        ("format", "json"),
        ("language", "pt-BR"),
        ("time_range", "month"),
        ("categories", "it,map"),
        ("safesearch", "2"),
        ("pageno", "1"),
        ("engines", ""),
    ] {
        assert_eq!(seen.get(name), expected, "{name}");
    }
    let fake = FakeServer::serve(paged).await;
    call_search(settings_for(&fake), value!({"query": "q", "engines": ["Google", "bing"]})).await.unwrap();
    let seen = fake.requests().remove(0);
    // Categories besides engines would add all engines of the categories.
    assert_eq!((seen.get("engines"), seen.get("categories")), ("google,bing", ""));
    assert_eq!((seen.get("language"), seen.get("safesearch")), ("en", "1"));
}

#[tokio::test]
async fn the_number_of_results_is_honoured() {
    for (wanted, requests, next) in
        [(1, 1, true), (10, 1, true), (11, 2, true), (25, 3, true), (40, 4, true), (50, 5, false)]
    {
        let fake = FakeServer::serve(paged).await;
        let answer =
            call_search(settings_for(&fake), value!({"query": "q", "num_results": wanted})).await.unwrap();
        let expected = wanted.min(40);
        assert_eq!(answer["results"].as_array().unwrap().len(), expected, "{wanted}");
        assert_eq!(answer["total_results"], expected);
        assert_eq!(fake.requests().len(), requests, "{wanted}");
        assert_eq!(answer.get("next").is_some(), next, "{wanted}");
        assert_eq!(urls(&answer)[0], "https://site1.example/page");
    }
}

#[tokio::test]
async fn the_next_page_goes_on_without_asking_again() {
    let fake = FakeServer::serve(paged).await;
    let bench = search(settings_for(&fake));
    let mut all = Vec::new();
    let mut page = 1;
    loop {
        let answer =
            bench.call("web_search", value!({"query": "q", "num_results": 7, "page": page})).await.unwrap();
        let ranks = answer["results"].as_array().unwrap().iter().map(|hit| hit["rank"].as_u64().unwrap());
        assert!(ranks.zip(all.len() as u64 + 1..).all(|(rank, place)| rank == place), "{answer}");
        all.extend(urls(&answer).into_iter().map(str::to_owned));
        match answer.get("next").and_then(Value::as_u64) {
            Some(next) => page = next,
            None => break,
        }
    }
    let expected: Vec<String> = (1..=40).map(|number| format!("https://site{number}.example/page")).collect();
    assert_eq!(all, expected);
    let pages: Vec<String> = fake.requests().iter().map(|seen| seen.get("pageno").to_owned()).collect();
    assert_eq!(pages, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn a_page_is_listed_once_and_what_engines_know_of_it_is_joined() {
    let fake = FakeServer::serve(|_| {
        json(value!({"results": [
            {"url": "https://a.example/x?utm_source=news", "title": "A", "content": "", "engine": "google", "engines": ["google"]},
            {"url": "http://www.a.example/x/", "title": "A again", "content": "text", "engine": "bing", "engines": ["bing"],
             "publishedDate": "2026-10-01T00:00:00"},
            {"url": "https://b.example/", "title": "B\u{200b}\u{e0041} \u{202e}x", "content": "Vec<T> &amp; more", "engines": ["bing", "qwant"], "score": 2.5},
            {"url": "magnet:?xt=urn:btih:1", "title": "no page"},
            {"title": "no address"},
        ], "suggestions": ["other words"], "corrections": ["words"],
           "answers": ["42", {"answer": "43", "url": "https://c.example"}], "unresponsive_engines": [["yahoo", "timeout"]]}))
    })
    .await;
    let answer = call_search(settings_for(&fake), value!({"query": "q", "num_results": 5})).await.unwrap();
    assert_eq!(urls(&answer), ["https://a.example/x", "https://b.example/"]);
    let first = &answer["results"][0];
    assert_eq!(first["engine"], "google, bing");
    assert_eq!(first["snippet"], "text");
    assert_eq!(first["published"], "2026-10-01T00:00:00");
    let second = &answer["results"][1];
    assert_eq!(second["title"], "B x", "hidden characters are left out");
    assert_eq!(second["snippet"], "Vec<T> &amp; more", "the instance gives text, not HTML");
    assert_eq!(second["score"], 2.5);
    assert_eq!(answer["suggestions"], value!(["words", "other words"]));
    assert_eq!(answer["answers"], value!(["42", "43"]));
    assert_eq!(answer["failed_engines"], value!([{"engine": "searxng/yahoo", "reason": "timeout"}]));
    assert_eq!(answer["engine"], "searxng");
}

#[tokio::test]
async fn a_true_empty_answer_is_no_error() {
    let fake = FakeServer::serve(|_| json(body(Vec::new()))).await;
    let answer = call_search(settings_for(&fake), value!({"query": "q"})).await.unwrap();
    assert_eq!(answer["total_results"], 0);
    assert_eq!(answer["failed_engines"], value!([]));
    assert!(answer.get("next").is_none());
}

#[tokio::test]
async fn failures_name_their_reason_and_what_to_do() {
    let blocked =
        value!({"results": [], "unresponsive_engines": [["google", "CAPTCHA"], ["bing", "timeout", true]]});
    for (status, body, reason, hint) in [
        (
            403,
            "<h1>Forbidden</h1>".to_owned(),
            "it does not allow JSON (status 403)",
            "add `json` to search.formats",
        ),
        (429, String::new(), "it is rate limiting", "limiter"),
        (404, String::new(), "status 404", "search.searxng_url"),
        (500, String::new(), "status 500", "Try again later"),
        (200, "<html>searx</html>".to_owned(), "is not JSON", "search.searxng_url"),
        (200, "{}".to_owned(), "has no `results`", "search.searxng_url"),
        (
            200,
            blocked.to_string(),
            "its engines failed: google (CAPTCHA), bing (timeout)",
            "Try other engines",
        ),
    ] {
        let fake = FakeServer::serve(move |_| html(status, &body)).await;
        let error = call_search(settings_for(&fake), value!({"query": "q"})).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable, "{reason}");
        assert!(error.message.contains("searxng: "), "{}", error.message);
        assert!(error.message.contains(reason), "{}", error.message);
        assert!(error.message.contains("duckduckgo: "), "{}", error.message);
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{:?}", error.hint);
    }
}

#[tokio::test]
async fn a_later_page_that_fails_keeps_the_first_and_is_told() {
    let fake =
        FakeServer::serve(|seen| if seen.get("pageno") == "1" { paged(seen) } else { html(500, "") }).await;
    let answer = call_search(settings_for(&fake), value!({"query": "q", "num_results": 20})).await.unwrap();
    assert_eq!(answer["total_results"], 10);
    assert_eq!(answer["failed_engines"][0]["engine"], "searxng");
    assert!(answer["failed_engines"][0]["reason"].as_str().unwrap().contains("500"));
}

#[tokio::test]
async fn an_engine_that_repeats_itself_is_not_asked_for_ever() {
    let fake = FakeServer::serve(|_| json(body((1..=10).map(item).collect()))).await;
    let answer = call_search(settings_for(&fake), value!({"query": "q", "num_results": 50})).await.unwrap();
    assert_eq!(answer["total_results"], 10);
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn engines_that_the_instance_does_not_have_are_told() {
    let fake = FakeServer::serve(paged).await;
    let error =
        call_search(settings_for(&fake), value!({"query": "q", "engines": ["google"]})).await.unwrap_err();
    assert!(error.message.contains("it has none of the engines google"), "{}", error.message);
    let answer =
        call_search(settings_for(&fake), value!({"query": "q", "engines": ["searxng"]})).await.unwrap();
    assert_eq!(answer["engine"], "searxng");
    assert_eq!(fake.requests()[1].get("engines"), "");
}

#[tokio::test]
async fn an_instance_on_a_private_address_that_is_not_allowed_says_who_can_change_it() {
    let fake = FakeServer::serve(paged).await;
    let net = octo_toolkit::Net::new(octo_toolkit::net::NetSpec::default()).unwrap();
    let toolbox = crate::search_toolbox(settings_for(&fake));
    let bench = octo_toolkit::ToolFixture::new(toolbox, octo_toolkit::Capabilities::default().with(net));
    let error = bench.call("web_search", value!({"query": "q", "engines": ["searxng"]})).await.unwrap_err();
    assert!(error.message.contains("searxng: "), "{}", error.message);
    assert!(error.hint.as_deref().unwrap_or_default().contains("operator can allow"), "{:?}", error.hint);
    assert!(fake.requests().is_empty());
}

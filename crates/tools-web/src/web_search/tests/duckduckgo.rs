//! DuckDuckGo's page in its various forms.

use super::super::SearchSettings;
use super::{call_search, urls};
use crate::fake_server::{FakeServer, RecordedRequest, html};
use http::Method;
use serde_json::json as value;

fn settings_for(fake: &FakeServer) -> SearchSettings {
    SearchSettings { duckduckgo_url: Some(fake.url.join("html/").unwrap()), ..SearchSettings::default() }
}

fn page(results: &str, more: &str) -> String {
    format!(
        r#"<!DOCTYPE html><html><head><title>q at DuckDuckGo</title></head><body class="body--html">
        <div class="serp__results"><div id="links" class="results">{results}{more}</div></div></body></html>"#
    )
}

fn result(number: u32) -> String {
    format!(
        r#"<div class="result results_links results_links_deep web-result ">
          <div class="links_main links_deep result__body">
            <h2 class="result__title"><a rel="nofollow" class="result__a"
              href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fsite{number}.example%2Fa%3Fb%3Dc%26utm_source%3Dx&amp;rut=abc">Title <b>{number}</b> &amp; more</a></h2>
            <div class="result__extras"><div class="result__extras__url">
              <a class="result__url" href="//duckduckgo.com/l/?uddg=x">site{number}.example</a>
              <span>&nbsp; &nbsp; 2026-10-0{number}T00:00:00.0000000</span></div></div>
            <a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">Some <b>words</b>
              here</a></div></div>"#
    )
}

const AD: &str = r#"<div class="result results_links results_links_deep result--ad ">
    <a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=shop.example">Buy</a></div>"#;

const HIDDEN_AD: &str = r#"<div class="result results_links web-result">
    <a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=shop.example">Buy too</a></div>"#;

const DIRECT: &str = r#"<div class="result web-result"><h2><a class="result__a" href="https://direct.example/">Direct</a></h2></div>"#;

const NEXT: &str = r#"<div class="nav-link"><form action="/html/" method="post">
    <input type="submit" class='btn btn--alt' value="Previous"/><input type="hidden" name="q" value="q"/>
    <input type="hidden" name="s" value="0"/></form></div>
    <div class="nav-link"><form action="/html/" method="post"><input type="submit" class='btn btn--alt' value="Next" />
    <input type="hidden" name="q" value="q" /><input type="hidden" name="s" value="10" />
    <input type="hidden" name="nextParams" value="" /><input type="hidden" name="v" value="l" />
    <input type="hidden" name="o" value="json" /><input type="hidden" name="dc" value="11" />
    <input type="hidden" name="api" value="d.js" /><input type="hidden" name="vqd" value="4-123" />
    <input name="kl" value="wt-wt" type="hidden" /></form></div>"#;

fn two_pages(seen: &RecordedRequest) -> (u16, (&'static str, String), String) {
    match seen.field("s") {
        "" => html(200, &page(&format!("{AD}{}{HIDDEN_AD}{}{DIRECT}", result(1), result(2)), NEXT)),
        _ => html(200, &page(&format!("{}{}", result(2), result(3)), "")),
    }
}

#[tokio::test]
async fn results_are_read_and_links_unwrapped() {
    let fake = FakeServer::serve(two_pages).await;
    let input = value!({"query": "a b", "num_results": 10, "language": "de", "time_range": "year", "safesearch": "off"});
    let answer = call_search(settings_for(&fake), input).await.unwrap();
    assert_eq!(
        urls(&answer),
        [
            "https://site1.example/a?b=c",
            "https://site2.example/a?b=c",
            "https://direct.example/",
            "https://site3.example/a?b=c"
        ]
    );
    let first = &answer["results"][0];
    assert_eq!(first["title"], "Title 1 & more");
    assert_eq!(first["snippet"], "Some words here");
    assert_eq!(first["published"], "2026-10-01");
    assert_eq!(answer["engine"], "duckduckgo");
    assert!(answer.get("next").is_none());
    let asked = fake.requests();
    assert_eq!(asked.len(), 2);
    assert_eq!((&asked[0].method, asked[0].path.as_str()), (&Method::POST, "/html/"));
    for (name, expected) in [("q", "a b"), ("kl", "de-de"), ("df", "y"), ("kp", "-2")] {
        assert_eq!(asked[0].field(name), expected, "{name}");
    }
    assert_eq!((asked[1].field("s"), asked[1].field("vqd"), asked[1].field("dc")), ("10", "4-123", "11"));
}

#[tokio::test]
async fn languages_become_regions() {
    for (language, expected) in [
        ("en", "wt-wt"),
        ("all", "wt-wt"),
        ("en-GB", "uk-en"),
        ("ja", "jp-jp"),
        ("pt-BR", "br-pt"),
        ("de-AT", "at-de"),
        ("sw", "wt-wt"),
    ] {
        let fake = FakeServer::serve(two_pages).await;
        call_search(settings_for(&fake), value!({"query": "q", "num_results": 1, "language": language}))
            .await
            .unwrap();
        assert_eq!(fake.requests()[0].field("kl"), expected, "{language}");
    }
}

#[tokio::test]
async fn captchas_and_strange_pages_are_errors_and_no_results_are_none() {
    let challenge = r#"<html><body><form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html&cc=botnet" method="POST">
        <div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div></form></body></html>"#;
    for (status, body, reason) in [
        (202, challenge, "it requires a CAPTCHA"),
        (200, challenge, "it requires a CAPTCHA"),
        (403, challenge, "it requires a CAPTCHA"),
        (202, "", "it requires a CAPTCHA"),
        (403, "<h1>Forbidden</h1>", "status 403"),
        (503, "", "status 503"),
        (200, "<html><body><h1>New design</h1></body></html>", "unknown format"),
        (200, "", "unknown format"),
    ] {
        let fake = FakeServer::serve(move |_| html(status, body)).await;
        let error = call_search(settings_for(&fake), value!({"query": "q"})).await.unwrap_err();
        assert!(error.message.contains("duckduckgo: "), "{}", error.message);
        assert!(error.message.contains(reason), "{status} {}", error.message);
        assert!(error.hint.as_deref().unwrap_or_default().contains("search.searxng_url"), "{:?}", error.hint);
    }
    let none =
        page(r#"<div class="result result--no-result"><div class="no-results">No results.</div></div>"#, "");
    let fake = FakeServer::serve(move |_| html(200, &none)).await;
    let answer = call_search(settings_for(&fake), value!({"query": "q"})).await.unwrap();
    assert_eq!(answer["total_results"], 0);
}

#[tokio::test]
async fn a_result_about_captchas_is_a_result() {
    let about = r#"<div class="result"><a class="result__a" href="https://a.example/">What anomaly-modal means</a>
        <a class="result__snippet">The anomaly.js and g-recaptcha scripts</a></div>"#;
    let fake = FakeServer::serve(move |_| html(200, &page(about, ""))).await;
    let answer = call_search(settings_for(&fake), value!({"query": "q"})).await.unwrap();
    assert_eq!(urls(&answer), ["https://a.example/"]);
}

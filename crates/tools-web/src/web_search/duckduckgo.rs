//! DuckDuckGo's HTML page without scripts. There is no API, so parsing is strict: a CAPTCHA or an unknown page is a
//! failure, never an empty result.

use super::engine_failure::{EngineFailure, OTHER_ENGINES};
use super::result_pager::{Cursor, EngineRequest, ResultPage};
use super::search_query::{SafeSearch, SearchQuery};
use super::search_result::SearchResult;
use crate::html_limits::limit_html;
use bytes::Bytes;
use dom_query::{Document, Selection};
use http::{HeaderValue, Method, StatusCode, header};
use octo_toolkit::net::NetRequest;
use url::{Url, form_urlencoded};

pub const NAME: &str = "duckduckgo";

const DEFAULT_URL: &str = "https://html.duckduckgo.com/html/";
const OTHER_ENGINES_HINT: &str = "Wait some minutes before searching again; the operator can set search.searxng_url or \
                             search.brave_api_key for engines that do not ask for CAPTCHAs.";

pub async fn fetch_page(asking: &EngineRequest<'_>, cursor: &Cursor) -> Result<ResultPage, EngineFailure> {
    let search_query = asking.query;
    if !search_query.has_only_categories(&["general", "it", "science"]) {
        return Err(EngineFailure::new(
            NAME,
            format!("it has no results for categories {}", search_query.categories.join(", ")),
        )
        .hint("Use general as the only category; use time_range for recent results."));
    }
    let url = match &asking.settings.duckduckgo_url {
        Some(url) => url.clone(),
        None => {
            Url::parse(DEFAULT_URL).map_err(|_| EngineFailure::new(NAME, "its URL is not http or https"))?
        }
    };
    let form = match cursor {
        Cursor::Number(_) => first_form(search_query),
        Cursor::Form(form) => form.clone(),
    };
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form).finish();
    let mut ask = NetRequest::get(url.clone());
    ask.method = Method::POST;
    ask.max_redirects = 2;
    ask.body = Some(Bytes::from(body));
    ask.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    ask.headers.insert(header::ACCEPT, HeaderValue::from_static("text/html"));
    if let Ok(locale) = HeaderValue::from_str(&format!("{};q=1.0, *;q=0.5", search_query.locale()))
        && search_query.language.is_some()
    {
        ask.headers.insert(header::ACCEPT_LANGUAGE, locale);
    }
    let answer = asking.send(NAME, ask).await?;
    let html = String::from_utf8_lossy(&answer.body);
    match answer.status {
        // A challenge has status 202, 403, 418 or 200.
        status if asks_for_captcha(&html) || status == StatusCode::ACCEPTED => Err(captcha_failure()),
        StatusCode::OK => parse_page(&html, &url),
        status => Err(EngineFailure::from_status(NAME, status, &answer.headers)
            .settings_hint(OTHER_ENGINES_HINT, OTHER_ENGINES)),
    }
}

fn captcha_failure() -> EngineFailure {
    EngineFailure::new(NAME, "it requires a CAPTCHA (bot detection)")
        .settings_hint(OTHER_ENGINES_HINT, OTHER_ENGINES)
}

/// Detected by names in the page's markup, which no result can contain.
fn asks_for_captcha(html: &str) -> bool {
    ["anomaly-modal", "anomaly.js", "id=\"challenge-form\"", "g-recaptcha", "cf-challenge"]
        .iter()
        .any(|mark| html.contains(mark))
        && !html.contains("result__a")
}

fn first_form(search_query: &SearchQuery) -> Vec<(String, String)> {
    let safe = match search_query.safesearch {
        SafeSearch::Off => "-2",
        SafeSearch::Moderate => "-1",
        SafeSearch::Strict => "1",
    };
    let time = search_query.time_range.map(|time| time.letter()).unwrap_or_default();
    let region = region(search_query);
    [("q", search_query.text.as_str()), ("b", ""), ("kl", &region), ("df", time), ("kp", safe)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// DuckDuckGo requires a country before the language; without one, the largest of the language or none.
fn region(search_query: &SearchQuery) -> String {
    let language = search_query.language.as_deref().unwrap_or("en");
    let country = match (&search_query.region, language) {
        (Some(region), _) if region == "GB" => "uk".to_owned(),
        (Some(region), _) => region.to_lowercase(),
        (None, "cs") => "cz".to_owned(),
        (None, "da") => "dk".to_owned(),
        (None, "el") => "gr".to_owned(),
        (None, "ja") => "jp".to_owned(),
        (None, "ko") => "kr".to_owned(),
        (None, "pt") => "br".to_owned(),
        (None, "sv") => "se".to_owned(),
        (None, "uk") => "ua".to_owned(),
        (None, "zh") => "cn".to_owned(),
        (None, "de" | "es" | "fi" | "fr" | "hu" | "it" | "nl" | "no" | "pl" | "ro" | "ru" | "tr") => {
            language.to_owned()
        }
        (None, _) => return "wt-wt".to_owned(),
    };
    let language = match language {
        "ja" => "jp",
        "ko" => "kr",
        "zh" if country != "cn" => "tzh",
        other => other,
    };
    format!("{country}-{language}")
}

fn parse_page(html: &str, base: &Url) -> Result<ResultPage, EngineFailure> {
    let page = Document::from(limit_html(html).as_ref());
    let hits: Vec<SearchResult> =
        page.select(".result").iter().filter_map(|result| parse_result(&result, base)).collect();
    if hits.is_empty() && !page.select(".no-results, .result--no-result").exists() {
        return Err(EngineFailure::new(NAME, "its page has an unknown format")
            .settings_hint(OTHER_ENGINES_HINT, OTHER_ENGINES));
    }
    let suggestions =
        page.select("#did_you_mean a, .did-you-mean a").iter().map(|link| link.text().to_string());
    Ok(ResultPage {
        suggestions: suggestions.collect(),
        next: next_form(&page).map(Cursor::Form),
        hits,
        ..ResultPage::default()
    })
}

fn parse_result(result: &Selection<'_>, base: &Url) -> Option<SearchResult> {
    if result.has_class("result--ad") {
        return None;
    }
    let link = result.select_single("a.result__a");
    let url = unwrap_redirect(base.join(link.attr("href")?.trim()).ok()?);
    if is_duckduckgo(&url) && url.path() == "/y.js" {
        return None;
    }
    let snippet = result.select_single(".result__snippet").text();
    let extras = result.select(".result__extras__url span");
    let dates = extras.iter().map(|span| span.text().trim().to_owned());
    let date = dates.filter_map(|text| text.get(..10).map(str::to_owned)).find(|text| is_date(text));
    Some(SearchResult::new(&link.text(), url.as_str(), &snippet, NAME)?.with_published(date.as_deref()))
}

fn is_date(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok()
}

fn is_duckduckgo(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"))
}

/// Results link through `/l/?uddg=ADDRESS` or directly to the page.
fn unwrap_redirect(url: Url) -> Url {
    if url.path() != "/l/" {
        return url;
    }
    let target =
        url.query_pairs().find(|(name, _)| name == "uddg").and_then(|(_, target)| Url::parse(&target).ok());
    target.unwrap_or(url)
}

/// Form of the button for the next page.
fn next_form(page: &Document) -> Option<Vec<(String, String)>> {
    let forms = page.select(".nav-link form");
    let onwards = |form: &Selection<'_>| {
        let button = form.select("input[type=submit]").attr_or("value", "").to_lowercase();
        form.select("input[name=s]").exists() && !button.starts_with("prev")
    };
    // The button for the previous page, if any, comes first.
    let form = forms.iter().filter(onwards).last()?;
    let inputs = form.select("input[type=hidden]");
    let fields = inputs
        .iter()
        .filter_map(|input| Some((input.attr("name")?.to_string(), input.attr_or("value", "").to_string())));
    Some(fields.take(30).collect())
}

#[cfg(test)]
mod tests {
    use super::parse_page;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};
    use url::Url;

    const PIECES: &[&str] = &[
        "<div class=result>",
        "<a class=result__a href=",
        "\"//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example\">",
        "%zz",
        "</a>",
        "</div>",
        "<span>",
        "2026-13-45",
        "<div class=result__extras__url>",
        "<form>",
        "<div class=nav-link>",
        "<input type=hidden name=s value=",
        "<table>",
        "<svg><title>",
        "\u{0}",
        "é…",
        "&#xffff;",
        ">",
        "\"",
        "<!--",
    ];

    proptest! {
        #[test]
        fn broken_pages_are_read_without_a_panic(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
            let html: String = pieces.iter().filter_map(|at| PIECES.get(*at)).copied().collect();
            let base = Url::parse("https://html.duckduckgo.com/html/").unwrap();
            if let Ok(page) = parse_page(&html, &base) {
                prop_assert!(page.hits.iter().all(|hit| hit.url.starts_with("http")));
            }
        }
    }

    #[test]
    fn a_page_nested_very_deep_is_read_in_time() {
        let began = Instant::now();
        let base = Url::parse("https://html.duckduckgo.com/html/").unwrap();
        for piece in ["<div class=result>", "<a class=result__a href=/>", "<div class=nav-link><form>", "<b>"]
        {
            let html = piece.repeat(20_000);
            let _ = parse_page(&html, &base);
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

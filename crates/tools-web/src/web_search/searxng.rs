//! SearXNG JSON API; also works with searx, its predecessor.

use super::engine_failure::EngineFailure;
use super::result_pager::{Cursor, EngineRequest, ResultPage};
use super::search_query::{SafeSearch, SearchQuery};
use super::search_result::SearchResult;
use http::{HeaderValue, header};
use octo_toolkit::net::{NetRequest, NetResponse};
use serde_json::Value;
use url::Url;

pub const NAME: &str = "searxng";

const MAX_PAGES: u32 = 20;
const CHECK_URL_HINT: &str =
    "The operator should check search.searxng_url: it must be the URL of the start page.";
const URL_SETTING: &[&str] = &["search.searxng_url"];
const ENGINES_FAILED_HINT: &str = "Try other engines or categories, or try again later; the operator can see in the SearXNG \
                              instance which engines are blocked and disable them.";

pub async fn fetch_page(asking: &EngineRequest<'_>, cursor: &Cursor) -> Result<ResultPage, EngineFailure> {
    let Cursor::Number(before) = *cursor else { return Ok(ResultPage::default()) };
    let Some(base) = &asking.settings.searxng_url else {
        return Err(EngineFailure::new(NAME, "no instance is configured"));
    };
    let mut ask = NetRequest::get(request_url(base, asking.query, before + 1)?);
    ask.max_redirects = 3;
    ask.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = asking.send(NAME, ask).await?;
    let mut page = parse_answer(&answer)?;
    check_engines(asking.query, &page)?;
    page.next = (before + 1 < MAX_PAGES && !page.hits.is_empty()).then_some(Cursor::Number(before + 1));
    Ok(page)
}

fn request_url(base: &Url, search_query: &SearchQuery, number: u32) -> Result<Url, EngineFailure> {
    let mut url = base.clone();
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EngineFailure::new(NAME, "its URL contains a user name or password, which is not sent")
            .settings_hint(CHECK_URL_HINT, URL_SETTING));
    }
    if !url.path().trim_end_matches('/').ends_with("/search") {
        let segments = url.path_segments_mut();
        segments
            .map_err(|()| EngineFailure::new(NAME, "its URL is not http or https"))?
            .pop_if_empty()
            .push("search");
    }
    url.set_fragment(None);
    {
        let mut query = url.query_pairs_mut();
        query.clear().append_pair("q", &search_query.text).append_pair("format", "json");
        query.append_pair("language", &search_query.locale()).append_pair("pageno", &number.to_string());
        let safe = match search_query.safesearch {
            SafeSearch::Off => "0",
            SafeSearch::Moderate => "1",
            SafeSearch::Strict => "2",
        };
        query.append_pair("safesearch", safe);
        if let Some(time) = search_query.time_range {
            query.append_pair("time_range", time.as_str());
        }
        // If both are given, SearXNG adds all engines of the categories to those named.
        let engines = requested_engines(search_query);
        if engines.is_empty() {
            let names = search_query
                .categories
                .iter()
                .map(|name| if name == "local" { "map" } else { name.as_str() });
            query.append_pair("categories", &names.collect::<Vec<_>>().join(","));
        } else {
            query.append_pair("engines", &engines.join(","));
        }
    }
    Ok(url)
}

/// Engines of the instance that were requested.
fn requested_engines(search_query: &SearchQuery) -> Vec<&str> {
    search_query.engines.iter().map(String::as_str).filter(|name| *name != NAME).collect()
}

/// An instance without any of the requested engines silently queries all others.
fn check_engines(search_query: &SearchQuery, page: &ResultPage) -> Result<(), EngineFailure> {
    let engines = requested_engines(search_query);
    let mut found = page.hits.iter().flat_map(|hit| hit.engine.split(", "));
    if engines.is_empty()
        || page.hits.is_empty()
        || found.any(|name| engines.contains(&name.to_lowercase().as_str()))
    {
        return Ok(());
    }
    let reason = format!("it has none of the engines {}", engines.join(", "));
    Err(EngineFailure::new(NAME, reason).hint("Omit engines, or use others."))
}

fn parse_answer(answer: &NetResponse) -> Result<ResultPage, EngineFailure> {
    let status = answer.status;
    match status.as_u16() {
        403 => {
            return Err(EngineFailure::new(NAME, "it does not allow JSON (status 403)").hint(
                "The operator can enable it: add `json` to search.formats in the settings.yml of the SearXNG instance.",
            ));
        }
        429 => {
            return Err(EngineFailure::from_status(NAME, status, &answer.headers).hint(
                "The operator can turn off the limiter of the SearXNG instance or allow the hub's address.",
            ));
        }
        404 | 405 => {
            return Err(EngineFailure::from_status(NAME, status, &answer.headers)
                .settings_hint(CHECK_URL_HINT, URL_SETTING));
        }
        200..300 => {}
        _ => return Err(EngineFailure::from_status(NAME, status, &answer.headers)),
    }
    if answer.truncated {
        return Err(EngineFailure::new(NAME, "the response is too large"));
    }
    let found: Value = serde_json::from_slice(&answer.body).map_err(|_| {
        EngineFailure::new(NAME, "the response of the instance is not JSON")
            .settings_hint(CHECK_URL_HINT, URL_SETTING)
    })?;
    let Some(results) = found.get("results").and_then(Value::as_array) else {
        return Err(
            EngineFailure::new(NAME, "the JSON has no `results`").settings_hint(CHECK_URL_HINT, URL_SETTING)
        );
    };
    let hits: Vec<SearchResult> = results.iter().filter_map(parse_result).collect();
    let failed: Vec<(String, String)> =
        array(&found, "unresponsive_engines").filter_map(parse_unresponsive).collect();
    let answers = texts(&found, "answers");
    if hits.is_empty() && answers.is_empty() && !failed.is_empty() {
        let list: Vec<String> = failed.iter().map(|(engine, why)| format!("{engine} ({why})")).collect();
        let reason = format!("it found nothing because its engines failed: {}", list.join(", "));
        return Err(EngineFailure::new(NAME, reason).hint(ENGINES_FAILED_HINT));
    }
    let mut suggestions = texts(&found, "corrections");
    suggestions.extend(texts(&found, "suggestions"));
    let failed = failed
        .into_iter()
        .map(|(engine, why)| EngineFailure::new(&format!("{NAME}/{engine}"), why))
        .collect();
    Ok(ResultPage { hits, suggestions, answers, failed, next: None })
}

fn parse_result(item: &Value) -> Option<SearchResult> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let engines: Vec<&str> = array(item, "engines").filter_map(Value::as_str).collect();
    let engine = if engines.is_empty() { text("engine").to_owned() } else { engines.join(", ") };
    let mut hit = SearchResult::new(text("title"), text("url"), text("content"), &engine)?;
    hit.score = item.get("score").and_then(Value::as_f64);
    Some(hit.with_published(item.get("publishedDate").and_then(Value::as_str)))
}

/// Parses `["google", "CAPTCHA"]`, with more or fewer entries in some versions.
fn parse_unresponsive(item: &Value) -> Option<(String, String)> {
    let name = item.get(0).unwrap_or(item).as_str()?;
    let why = item.get(1).and_then(Value::as_str).unwrap_or("no answer");
    Some((super::search_result::clean_line(name, 60), super::search_result::clean_line(why, 120)))
}

fn array<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Texts, or the objects around them in newer versions.
fn texts(value: &Value, name: &str) -> Vec<String> {
    let text = |item: &Value| item.as_str().or_else(|| item.get("answer")?.as_str()).map(str::to_owned);
    array(value, name).filter_map(text).collect()
}

//! SearXNG's JSON answers; searx, which it comes from, speaks them too.

use super::failure::Failure;
use super::hit::Hit;
use super::walk::{Asking, Cursor, Page};
use super::wanted::{Safe, Wanted};
use http::{HeaderValue, header};
use octo_toolkit::net::{NetRequest, NetResponse};
use serde_json::Value;
use url::Url;

pub const NAME: &str = "searxng";

const MOST_PAGES: u32 = 20;
const CHECK_ADDRESS: &str =
    "The operator should check OCTOPROX_SEARXNG_URL: it is the address of the start page.";
const ENGINES_FAILED: &str = "Try other engines or categories, or again later; the operator can see in the SearXNG \
                              instance which engines are blocked and disable them.";

pub async fn page(asking: &Asking<'_>, cursor: &Cursor) -> Result<Page, Failure> {
    let Cursor::Number(before) = *cursor else { return Ok(Page::default()) };
    let Some(base) = &asking.settings.searxng_url else {
        return Err(Failure::new(NAME, "no instance is configured"));
    };
    let mut ask = NetRequest::get(address(base, asking.wanted, before + 1)?);
    ask.max_redirects = 3;
    ask.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = asking.send(NAME, ask).await?;
    let mut page = read(&answer)?;
    knows(asking.wanted, &page)?;
    page.more = (before + 1 < MOST_PAGES && !page.hits.is_empty()).then_some(Cursor::Number(before + 1));
    Ok(page)
}

fn address(base: &Url, wanted: &Wanted, number: u32) -> Result<Url, Failure> {
    let mut url = base.clone();
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            Failure::new(NAME, "its address holds a name or password, which is not sent").hint(CHECK_ADDRESS)
        );
    }
    if !url.path().trim_end_matches('/').ends_with("/search") {
        let segments = url.path_segments_mut();
        segments
            .map_err(|()| Failure::new(NAME, "its address is none of the web"))?
            .pop_if_empty()
            .push("search");
    }
    url.set_fragment(None);
    {
        let mut query = url.query_pairs_mut();
        query.clear().append_pair("q", &wanted.query).append_pair("format", "json");
        query.append_pair("language", &wanted.locale()).append_pair("pageno", &number.to_string());
        let safe = match wanted.safe {
            Safe::Off => "0",
            Safe::Moderate => "1",
            Safe::Strict => "2",
        };
        query.append_pair("safesearch", safe);
        if let Some(time) = wanted.time {
            query.append_pair("time_range", time.word());
        }
        // Given both, SearXNG adds all engines of the categories to those named.
        let engines = engines(wanted);
        if engines.is_empty() {
            let names =
                wanted.categories.iter().map(|name| if name == "local" { "map" } else { name.as_str() });
            query.append_pair("categories", &names.collect::<Vec<_>>().join(","));
        } else {
            query.append_pair("engines", &engines.join(","));
        }
    }
    Ok(url)
}

/// The engines behind the instance that were asked for.
fn engines(wanted: &Wanted) -> Vec<&str> {
    wanted.engines.iter().map(String::as_str).filter(|name| *name != NAME).collect()
}

/// An instance that has none of the engines asked for asks all others instead, without a word.
fn knows(wanted: &Wanted, page: &Page) -> Result<(), Failure> {
    let engines = engines(wanted);
    let mut found = page.hits.iter().flat_map(|hit| hit.engine.split(", "));
    if engines.is_empty()
        || page.hits.is_empty()
        || found.any(|name| engines.contains(&name.to_lowercase().as_str()))
    {
        return Ok(());
    }
    let reason = format!("it has none of the engines {}", engines.join(", "));
    Err(Failure::new(NAME, reason).hint("Leave engines out, or name others."))
}

fn read(answer: &NetResponse) -> Result<Page, Failure> {
    let status = answer.status;
    match status.as_u16() {
        403 => {
            return Err(Failure::new(NAME, "it refuses JSON (status 403)").hint(
                "The operator can enable it: add `json` to search.formats in the settings.yml of the SearXNG instance.",
            ));
        }
        429 => {
            return Err(Failure::status(NAME, status, &answer.headers).hint(
                "The operator can turn off the limiter of the SearXNG instance or let the hub's address pass.",
            ));
        }
        404 | 405 => return Err(Failure::status(NAME, status, &answer.headers).hint(CHECK_ADDRESS)),
        200..300 => {}
        _ => return Err(Failure::status(NAME, status, &answer.headers)),
    }
    if answer.truncated {
        return Err(Failure::new(NAME, "its answer is too large"));
    }
    let found: Value = serde_json::from_slice(&answer.body)
        .map_err(|_| Failure::new(NAME, "it answered with something else than JSON").hint(CHECK_ADDRESS))?;
    let Some(results) = found.get("results").and_then(Value::as_array) else {
        return Err(Failure::new(NAME, "its JSON has no results").hint(CHECK_ADDRESS));
    };
    let hits: Vec<Hit> = results.iter().filter_map(hit).collect();
    let failed: Vec<(String, String)> =
        array(&found, "unresponsive_engines").filter_map(unresponsive).collect();
    let answers = texts(&found, "answers");
    if hits.is_empty() && answers.is_empty() && !failed.is_empty() {
        let list: Vec<String> = failed.iter().map(|(engine, why)| format!("{engine} ({why})")).collect();
        let reason = format!("it found nothing because its engines failed: {}", list.join(", "));
        return Err(Failure::new(NAME, reason).hint(ENGINES_FAILED));
    }
    let mut suggestions = texts(&found, "corrections");
    suggestions.extend(texts(&found, "suggestions"));
    let failed =
        failed.into_iter().map(|(engine, why)| Failure::new(&format!("{NAME}/{engine}"), why)).collect();
    Ok(Page { hits, suggestions, answers, failed, more: None })
}

fn hit(item: &Value) -> Option<Hit> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let engines: Vec<&str> = array(item, "engines").filter_map(Value::as_str).collect();
    let engine = if engines.is_empty() { text("engine").to_owned() } else { engines.join(", ") };
    let mut hit = Hit::new(text("title"), text("url"), text("content"), &engine)?;
    hit.score = item.get("score").and_then(Value::as_f64);
    Some(hit.published(item.get("publishedDate").and_then(Value::as_str)))
}

/// `["google", "CAPTCHA"]`, with more or fewer entries in some versions.
fn unresponsive(item: &Value) -> Option<(String, String)> {
    let name = item.get(0).unwrap_or(item).as_str()?;
    let why = item.get(1).and_then(Value::as_str).unwrap_or("no answer");
    Some((super::hit::tidy(name, 60), super::hit::tidy(why, 120)))
}

fn array<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Texts, or what newer versions put around them.
fn texts(value: &Value, name: &str) -> Vec<String> {
    let text = |item: &Value| item.as_str().or_else(|| item.get("answer")?.as_str()).map(str::to_owned);
    array(value, name).filter_map(text).collect()
}

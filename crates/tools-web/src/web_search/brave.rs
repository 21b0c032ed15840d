//! Brave Search API: pages, news and places.

mod local_places;

use super::engine_failure::EngineFailure;
use super::result_pager::{Cursor, EngineRequest, ResultPage};
use super::search_query::{SafeSearch, SearchQuery};
use super::search_result::{SearchResult, strip_html};
use http::{HeaderValue, StatusCode, header};
use octo_toolkit::net::{NetRequest, NetResponse, secret_header};
use serde_json::Value;
use url::Url;

pub const NAME: &str = "brave";

const DEFAULT_ORIGIN: &str = "https://api.search.brave.com";
const TOKEN_HEADER: &str = "x-subscription-token";
/// Maximum results of one request; a request costs the same for any number.
const RESULTS_PER_PAGE: &str = "20";
const MAX_OFFSET: u32 = 9;

pub async fn fetch_page(asking: &EngineRequest<'_>, cursor: &Cursor) -> Result<ResultPage, EngineFailure> {
    let Cursor::Number(offset) = *cursor else { return Ok(ResultPage::default()) };
    let search_query = asking.query;
    check_query(search_query)?;
    let news = search_query.has_only_categories(&["news"]);
    let places = search_query.categories.iter().any(|category| category == "local");
    let mut url = endpoint(asking, if news { "news" } else { "web" })?;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &search_query.text).append_pair("count", RESULTS_PER_PAGE);
        query.append_pair("offset", &offset.to_string()).append_pair("text_decorations", "false");
        query.append_pair("safesearch", safesearch_value(search_query.safesearch));
        if let Some(language) = search_query
            .language
            .as_deref()
            .and_then(|code| language_code(code, search_query.region.as_deref()))
        {
            query.append_pair("search_lang", language);
        }
        if let Some(region) = &search_query.region {
            query.append_pair("country", region);
        }
        if let Some(time) = search_query.time_range {
            query.append_pair("freshness", &format!("p{}", time.letter()));
        }
        if !news {
            query.append_pair("result_filter", if places { "web,locations,query" } else { "web,query" });
        }
    }
    let found = send_request(asking, url).await?;
    let results = found.pointer("/web/results").or_else(|| found.get("results")).and_then(Value::as_array);
    let mut hits: Vec<SearchResult> = results.into_iter().flatten().filter_map(parse_result).collect();
    let mut failed = Vec::new();
    if places && offset == 0 {
        let (found, trouble) = local_places::places(asking, &found).await;
        // Fall back to pages if no place is found.
        hits = if found.is_empty() { hits } else { found };
        failed.extend(trouble);
    }
    let more = found.pointer("/query/more_results_available").and_then(Value::as_bool).unwrap_or(news);
    let more = more && !places && offset < MAX_OFFSET && !hits.is_empty();
    let altered = found.pointer("/query/altered").and_then(Value::as_str).map(strip_html);
    Ok(ResultPage {
        hits,
        suggestions: altered.into_iter().collect(),
        answers: Vec::new(),
        failed,
        next: more.then_some(Cursor::Number(offset + 1)),
    })
}

/// Refuses queries that Brave would refuse, before sending them.
fn check_query(search_query: &SearchQuery) -> Result<(), EngineFailure> {
    if search_query.text.chars().count() > 400 || search_query.text.split(' ').count() > 50 {
        return Err(
            EngineFailure::new(NAME, "the query exceeds 400 characters or 50 words").hint("Use fewer words.")
        );
    }
    if !search_query.has_only_categories(&["general", "it", "science", "local"])
        && !search_query.has_only_categories(&["news"])
    {
        return Err(EngineFailure::new(
            NAME,
            format!("it has no results for categories {}", search_query.categories.join(", ")),
        )
        .hint("Use general, news or local as the only category."));
    }
    Ok(())
}

fn endpoint(asking: &EngineRequest<'_>, kind: &str) -> Result<Url, EngineFailure> {
    let base = match &asking.settings.brave_url {
        Some(base) => Ok(base.clone()),
        None => Url::parse(DEFAULT_ORIGIN),
    };
    base.and_then(|base| base.join(&format!("/res/v1/{kind}/search")))
        .map_err(|_| EngineFailure::new(NAME, "its URL is not http or https"))
}

/// Sends a request with the API key. Redirects are not followed, so the key is only sent to its origin.
async fn send_request(asking: &EngineRequest<'_>, url: Url) -> Result<Value, EngineFailure> {
    let key = asking.settings.brave_api_key.as_ref().and_then(|key| secret_header("", key));
    let Some(key) = key else {
        return Err(EngineFailure::new(NAME, "its API key is not a valid header value")
            .settings_hint("The operator should check search.brave_api_key.", &["search.brave_api_key"]));
    };
    let mut ask = NetRequest::get(url);
    ask.max_redirects = 0;
    ask.headers.insert(TOKEN_HEADER, key);
    ask.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = asking.send(NAME, ask).await?;
    if !answer.status.is_success() {
        return Err(failure_from_answer(&answer));
    }
    let found = serde_json::from_slice(&answer.body);
    found.map_err(|_| EngineFailure::new(NAME, "the response is not JSON"))
}

/// Brave's messages are not passed on, since they may repeat the key; its error codes are.
fn failure_from_answer(answer: &NetResponse) -> EngineFailure {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = body.pointer("/error/code").and_then(Value::as_str).unwrap_or_default();
    let known =
        ["SUBSCRIPTION_TOKEN_INVALID", "RATE_LIMITED", "QUOTA_LIMITED", "OPTION_NOT_IN_PLAN", "VALIDATION"];
    let code = known.into_iter().find(|known| *known == code);
    let mut failure = EngineFailure::from_status(NAME, answer.status, &answer.headers);
    if let Some(code) = code {
        failure.reason = format!("{} ({code})", failure.reason);
    }
    match (answer.status, code) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) | (_, Some("SUBSCRIPTION_TOKEN_INVALID")) => {
            failure.reason = format!("it rejected the API key ({})", answer.status.as_u16());
            failure
                .settings_hint("The operator should check search.brave_api_key.", &["search.brave_api_key"])
        }
        (StatusCode::PAYMENT_REQUIRED, _) | (_, Some("QUOTA_LIMITED")) => {
            failure.hint("The quota of the Brave plan is exhausted; the operator can raise it.")
        }
        _ => failure,
    }
}

fn parse_result(item: &Value) -> Option<SearchResult> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let hit =
        SearchResult::new(&strip_html(text("title")), text("url"), &strip_html(text("description")), NAME)?;
    Some(hit.with_published(item.get("page_age").or_else(|| item.get("age")).and_then(Value::as_str)))
}

fn safesearch_value(safe: SafeSearch) -> &'static str {
    match safe {
        SafeSearch::Off => "off",
        SafeSearch::Moderate => "moderate",
        SafeSearch::Strict => "strict",
    }
}

/// Language codes of Brave, some of them nonstandard; unknown ones are omitted rather than refused.
fn language_code(code: &str, region: Option<&str>) -> Option<&'static str> {
    const LANGUAGES: &[&str] = &[
        "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fi", "fr", "gl", "gu", "he",
        "hi", "hr", "hu", "is", "it", "kn", "ko", "lt", "lv", "ml", "mr", "ms", "nb", "nl", "pa", "pl", "ro",
        "ru", "sk", "sl", "sr", "sv", "ta", "te", "th", "tr", "uk", "vi",
    ];
    match (code, region) {
        ("en", Some("GB")) => Some("en-gb"),
        ("ja", _) => Some("jp"),
        ("no" | "nn", _) => Some("nb"),
        ("pt", Some("PT")) => Some("pt-pt"),
        ("pt", _) => Some("pt-br"),
        ("zh", Some("TW" | "HK" | "MO")) => Some("zh-hant"),
        ("zh", _) => Some("zh-hans"),
        _ => LANGUAGES.iter().copied().find(|known| *known == code),
    }
}

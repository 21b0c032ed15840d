//! Brave's search API: pages, news and places.

mod local;

use super::failure::Failure;
use super::hit::{Hit, unmarked};
use super::walk::{Asking, Cursor, Page};
use super::wanted::{Safe, Wanted};
use http::{HeaderValue, StatusCode, header};
use octo_toolkit::net::{NetRequest, NetResponse};
use serde_json::Value;
use url::Url;

pub const NAME: &str = "brave";

const ORIGIN: &str = "https://api.search.brave.com";
const TOKEN: &str = "x-subscription-token";
/// As many as one request may bring; a request costs the same whatever it brings.
const PER_PAGE: &str = "20";
const LAST_OFFSET: u32 = 9;

pub async fn page(asking: &Asking<'_>, cursor: &Cursor) -> Result<Page, Failure> {
    let Cursor::Number(offset) = *cursor else { return Ok(Page::default()) };
    let wanted = asking.wanted;
    fits(wanted)?;
    let news = wanted.only(&["news"]);
    let places = wanted.categories.iter().any(|category| category == "local");
    let mut url = endpoint(asking, if news { "news" } else { "web" })?;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &wanted.query).append_pair("count", PER_PAGE);
        query.append_pair("offset", &offset.to_string()).append_pair("text_decorations", "false");
        query.append_pair("safesearch", safe(wanted.safe));
        if let Some(language) =
            wanted.language.as_deref().and_then(|code| language(code, wanted.region.as_deref()))
        {
            query.append_pair("search_lang", language);
        }
        if let Some(region) = &wanted.region {
            query.append_pair("country", region);
        }
        if let Some(time) = wanted.time {
            query.append_pair("freshness", &format!("p{}", time.letter()));
        }
        if !news {
            query.append_pair("result_filter", if places { "web,locations,query" } else { "web,query" });
        }
    }
    let found = ask(asking, url).await?;
    let results = found.pointer("/web/results").or_else(|| found.get("results")).and_then(Value::as_array);
    let mut hits: Vec<Hit> = results.into_iter().flatten().filter_map(hit).collect();
    let mut failed = Vec::new();
    if places && offset == 0 {
        let (found, trouble) = local::places(asking, &found).await;
        // Pages stand in where no place is known.
        hits = if found.is_empty() { hits } else { found };
        failed.extend(trouble);
    }
    let more = found.pointer("/query/more_results_available").and_then(Value::as_bool).unwrap_or(news);
    let more = more && !places && offset < LAST_OFFSET && !hits.is_empty();
    let altered = found.pointer("/query/altered").and_then(Value::as_str).map(unmarked);
    Ok(Page {
        hits,
        suggestions: altered.into_iter().collect(),
        answers: Vec::new(),
        failed,
        more: more.then_some(Cursor::Number(offset + 1)),
    })
}

/// What Brave would refuse, said before it is asked.
fn fits(wanted: &Wanted) -> Result<(), Failure> {
    if wanted.query.chars().count() > 400 || wanted.query.split(' ').count() > 50 {
        return Err(Failure::new(NAME, "the query is longer than 400 characters or 50 words")
            .hint("Search for the few words that matter."));
    }
    if !wanted.only(&["general", "it", "science", "local"]) && !wanted.only(&["news"]) {
        return Err(Failure::new(
            NAME,
            format!("it has no results for categories {}", wanted.categories.join(", ")),
        )
        .hint("Use general, news or local as the only category."));
    }
    Ok(())
}

fn endpoint(asking: &Asking<'_>, kind: &str) -> Result<Url, Failure> {
    let base = match &asking.settings.brave_url {
        Some(base) => Ok(base.clone()),
        None => Url::parse(ORIGIN),
    };
    base.and_then(|base| base.join(&format!("/res/v1/{kind}/search")))
        .map_err(|_| Failure::new(NAME, "its address is none of the web"))
}

/// One request with the key. Redirects are not followed, so that the key stays with its origin.
async fn ask(asking: &Asking<'_>, url: Url) -> Result<Value, Failure> {
    let key = asking.settings.brave_api_key.as_ref().and_then(super::ApiKey::header);
    let Some(key) = key else {
        return Err(
            Failure::new(NAME, "its key cannot be sent").hint("The operator should check BRAVE_API_KEY.")
        );
    };
    let mut ask = NetRequest::get(url);
    ask.max_redirects = 0;
    ask.headers.insert(TOKEN, key);
    ask.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = asking.send(NAME, ask).await?;
    if !answer.status.is_success() {
        return Err(refusal(&answer));
    }
    let found = serde_json::from_slice(&answer.body);
    found.map_err(|_| Failure::new(NAME, "it answered with something else than JSON"))
}

/// Brave's own words are not passed on, since they may repeat the key; its error codes are.
fn refusal(answer: &NetResponse) -> Failure {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = body.pointer("/error/code").and_then(Value::as_str).unwrap_or_default();
    let known =
        ["SUBSCRIPTION_TOKEN_INVALID", "RATE_LIMITED", "QUOTA_LIMITED", "OPTION_NOT_IN_PLAN", "VALIDATION"];
    let code = known.into_iter().find(|known| *known == code);
    let mut failure = Failure::status(NAME, answer.status, &answer.headers);
    if let Some(code) = code {
        failure.reason = format!("{} ({code})", failure.reason);
    }
    match (answer.status, code) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) | (_, Some("SUBSCRIPTION_TOKEN_INVALID")) => {
            failure.reason = format!("it refuses the key ({})", answer.status.as_u16());
            failure.hint("The operator should check BRAVE_API_KEY.")
        }
        (StatusCode::PAYMENT_REQUIRED, _) | (_, Some("QUOTA_LIMITED")) => {
            failure.hint("The quota of the Brave plan is used up; the operator can raise it.")
        }
        _ => failure,
    }
}

fn hit(item: &Value) -> Option<Hit> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let hit = Hit::new(&unmarked(text("title")), text("url"), &unmarked(text("description")), NAME)?;
    Some(hit.published(item.get("page_age").or_else(|| item.get("age")).and_then(Value::as_str)))
}

fn safe(safe: Safe) -> &'static str {
    match safe {
        Safe::Off => "off",
        Safe::Moderate => "moderate",
        Safe::Strict => "strict",
    }
}

/// The codes that Brave knows, some of its own making; others are left out rather than refused.
fn language(code: &str, region: Option<&str>) -> Option<&'static str> {
    const KNOWN: &[&str] = &[
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
        _ => KNOWN.iter().copied().find(|known| *known == code),
    }
}

//! Places: the search returns their ids, two more requests their details.

use super::{NAME, endpoint, send_request};
use crate::web_search::engine_failure::EngineFailure;
use crate::web_search::result_pager::EngineRequest;
use crate::web_search::search_result::{SearchResult, strip_html};
use serde_json::Value;

const MAX_PLACES: usize = 20;

/// Places of a search, and the failure to get their details, if any.
pub async fn places(asking: &EngineRequest<'_>, found: &Value) -> (Vec<SearchResult>, Option<EngineFailure>) {
    let listed = found.pointer("/locations/results").and_then(Value::as_array);
    let listed: Vec<&Value> = listed.into_iter().flatten().take(MAX_PLACES).collect();
    let ids: Vec<&str> = listed.iter().filter_map(|place| place.get("id")?.as_str()).collect();
    if ids.is_empty() {
        return (listed.iter().filter_map(|place| place_result(place, "")).collect(), None);
    }
    let details = match fetch_details(asking, "pois", &ids).await {
        Ok(details) => details,
        // Plans without local results still list the places.
        Err(failure) => {
            return (listed.iter().filter_map(|place| place_result(place, "")).collect(), Some(failure));
        }
    };
    let (descriptions, trouble) = match fetch_details(asking, "descriptions", &ids).await {
        Ok(descriptions) => (descriptions, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    let described = |place: &Value| {
        let same = |entry: &&Value| entry.get("id").is_some() && entry.get("id") == place.get("id");
        let text = descriptions.iter().find(same).and_then(|entry| entry.get("description")?.as_str());
        text.unwrap_or_default().to_owned()
    };
    (details.iter().filter_map(|place| place_result(place, &described(place))).collect(), trouble)
}

async fn fetch_details(
    asking: &EngineRequest<'_>,
    what: &str,
    ids: &[&str],
) -> Result<Vec<Value>, EngineFailure> {
    let mut url = endpoint(asking, "web")?;
    url.set_path(&format!("/res/v1/local/{what}"));
    url.query_pairs_mut().extend_pairs(ids.iter().map(|id| ("ids", id)));
    let mut found = send_request(asking, url).await?;
    match found.get_mut("results").map(Value::take) {
        Some(Value::Array(results)) => Ok(results),
        _ => Err(EngineFailure::new(NAME, "the response has no places")),
    }
}

/// Address, telephone, rating and description in one line.
fn place_result(place: &Value, description: &str) -> Option<SearchResult> {
    let text = |path: &str| place.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |path: &str| place.pointer(path).and_then(Value::as_f64);
    let title = text("/title").or_else(|| text("/name")).unwrap_or_default();
    let mut known: Vec<String> = Vec::new();
    known.extend(text("/postal_address/displayAddress").map(str::to_owned));
    known.extend(text("/contact/telephone").map(str::to_owned));
    if let Some(rating) = number("/rating/ratingValue") {
        let best = number("/rating/bestRating").unwrap_or(5.0);
        let count =
            number("/rating/reviewCount").map(|count| format!(" ({count} reviews)")).unwrap_or_default();
        known.push(format!("rated {rating} of {best}{count}"));
    }
    known.extend(text("/price_range").map(str::to_owned));
    known.extend(Some(strip_html(description)).filter(|text| !text.is_empty()));
    // A place without a page links to the map.
    let map = number("/coordinates/0").zip(number("/coordinates/1")).map(|(latitude, longitude)| {
        format!(
            "https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}#map=18/{latitude}/{longitude}"
        )
    });
    let url = text("/url").or_else(|| text("/provider_url")).map(str::to_owned).or(map)?;
    SearchResult::new(&strip_html(title), &url, &known.join(" · "), NAME)
}

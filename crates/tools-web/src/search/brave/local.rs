//! Places: the search gives their ids, two more requests what is known of them.

use super::{NAME, ask, endpoint};
use crate::search::failure::Failure;
use crate::search::hit::{Hit, unmarked};
use crate::search::walk::Asking;
use serde_json::Value;

const MOST: usize = 20;

/// The places of a search, with what could not be learnt about them.
pub async fn places(asking: &Asking<'_>, found: &Value) -> (Vec<Hit>, Option<Failure>) {
    let listed = found.pointer("/locations/results").and_then(Value::as_array);
    let listed: Vec<&Value> = listed.into_iter().flatten().take(MOST).collect();
    let ids: Vec<&str> = listed.iter().filter_map(|place| place.get("id")?.as_str()).collect();
    if ids.is_empty() {
        return (listed.iter().filter_map(|place| hit(place, "")).collect(), None);
    }
    let details = match about(asking, "pois", &ids).await {
        Ok(details) => details,
        // Plans without places still list them.
        Err(failure) => return (listed.iter().filter_map(|place| hit(place, "")).collect(), Some(failure)),
    };
    let (descriptions, trouble) = match about(asking, "descriptions", &ids).await {
        Ok(descriptions) => (descriptions, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    let described = |place: &Value| {
        let same = |entry: &&Value| entry.get("id").is_some() && entry.get("id") == place.get("id");
        let text = descriptions.iter().find(same).and_then(|entry| entry.get("description")?.as_str());
        text.unwrap_or_default().to_owned()
    };
    (details.iter().filter_map(|place| hit(place, &described(place))).collect(), trouble)
}

async fn about(asking: &Asking<'_>, what: &str, ids: &[&str]) -> Result<Vec<Value>, Failure> {
    let mut url = endpoint(asking, "web")?;
    url.set_path(&format!("/res/v1/local/{what}"));
    url.query_pairs_mut().extend_pairs(ids.iter().map(|id| ("ids", id)));
    let mut found = ask(asking, url).await?;
    match found.get_mut("results").map(Value::take) {
        Some(Value::Array(results)) => Ok(results),
        _ => Err(Failure::new(NAME, "its places have no results")),
    }
}

/// Address, telephone, rating and description in one line.
fn hit(place: &Value, description: &str) -> Option<Hit> {
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
    known.extend(Some(unmarked(description)).filter(|text| !text.is_empty()));
    // Without a page of its own, a place is still somewhere.
    let map = number("/coordinates/0").zip(number("/coordinates/1")).map(|(latitude, longitude)| {
        format!(
            "https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}#map=18/{latitude}/{longitude}"
        )
    });
    let url = text("/url").or_else(|| text("/provider_url")).map(str::to_owned).or(map)?;
    Hit::new(&unmarked(title), &url, &known.join(" · "), NAME)
}

//! Geocoding: resolves a location text to a point.

mod location_text;
mod regions;
mod similar_places;

use super::open_meteo::OpenMeteo;
use location_text::{Location, NamedPlace};
use octo_toolkit::ToolError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

const MAX_ALTERNATIVES: usize = 5;

/// A place on the map.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Place {
    /// Name, region and country; use it as location to get this place again.
    pub name: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Elevation above sea level in metres.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elevation: Option<f64>,
    /// IANA time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<u64>,
}

pub struct GeocodeResult {
    pub place: Place,
    pub alternatives: Vec<Place>,
}

pub async fn geocode(meteo: &OpenMeteo<'_>, location: &str) -> Result<GeocodeResult, ToolError> {
    match location_text::parse_location(location)? {
        Location::Point { latitude, longitude } => {
            Ok(GeocodeResult { place: point_place(latitude, longitude), alternatives: Vec::new() })
        }
        Location::Named(readings) => find_named(meteo, location.trim(), &readings).await,
    }
}

fn point_place(latitude: f64, longitude: f64) -> Place {
    let name = format!("{latitude},{longitude}");
    Place { name, latitude, longitude, elevation: None, timezone: None, population: None }
}

async fn find_named(
    meteo: &OpenMeteo<'_>,
    location: &str,
    readings: &[NamedPlace],
) -> Result<GeocodeResult, ToolError> {
    let mut elsewhere = Vec::new();
    for reading in readings {
        let found = meteo.places(&reading.name, 100).await?;
        let (fit, other): (Vec<&Value>, Vec<&Value>) = found
            .iter()
            .partition(|place| reading.regions.iter().all(|part| regions::is_in_region(place, part)));
        let mut fit = distinct_places(&fit);
        if !fit.is_empty() {
            let place = fit.remove(0);
            let others = fit.into_iter().filter(|other| first_part(&other.name) == first_part(&place.name));
            let alternatives =
                others.take(MAX_ALTERNATIVES).map(|other| Place { elevation: None, timezone: None, ..other });
            return Ok(GeocodeResult { alternatives: alternatives.collect(), place });
        }
        elsewhere.extend(distinct_places(&other));
    }
    let known: Vec<String> = match elsewhere.is_empty() {
        false => elsewhere.into_iter().map(|place| place.name).take(MAX_ALTERNATIVES).collect(),
        true => similar_places::similar_names(meteo, readings).await?,
    };
    let error = ToolError::not_found(format!("Place not found: `{location}`."));
    Err(match known.is_empty() {
        true => error.hint("Check the spelling, or use a larger place nearby or latitude,longitude."),
        false => error.hint(format!("Similar places: {}.", known.join("; "))),
    })
}

fn first_part(name: &str) -> &str {
    name.split(',').next().unwrap_or_default()
}

/// The places in their order, without duplicate names.
fn distinct_places(found: &[&Value]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for place in found.iter().filter_map(|place| parse_place(place)) {
        if !places.iter().any(|known| known.name == place.name) {
            places.push(place);
        }
    }
    places
}

fn parse_place(place: &Value) -> Option<Place> {
    let text = |name: &str| place.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut parts: Vec<&str> = vec![text("name")?];
    for part in [text("admin1"), text("country")].into_iter().flatten() {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    Some(Place {
        name: parts.join(", "),
        latitude: place.get("latitude")?.as_f64()?,
        longitude: place.get("longitude")?.as_f64()?,
        elevation: place.get("elevation").and_then(Value::as_f64),
        timezone: text("timezone").map(str::to_owned),
        population: place.get("population").and_then(Value::as_u64),
    })
}

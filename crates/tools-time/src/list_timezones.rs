//! `time_list_timezones`.

use crate::{time_format, time_input, zone};
use jiff::Timestamp;
use octo_toolkit::{CallContext, Clock, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

/// Lists IANA time zones with their current offset, all or of one region. For an unknown region the error lists the
/// known ones. Prefer time_now when the name is known.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// First part of the names, such as Europe or America/Argentina; omit for all zones, about 500.
    #[serde(default)]
    region: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The zones, sorted by name.
    timezones: Vec<TimezoneEntry>,
}

#[derive(Serialize, JsonSchema)]
pub struct TimezoneEntry {
    /// IANA name.
    name: String,
    /// Current offset, such as +01:00; daylight saving changes it.
    utc_offset: String,
}

pub struct ListTimezones;

impl Tool for ListTimezones {
    const NAME: &'static str = "time_list_timezones";
    const TITLE: &'static str = "List time zones";
    const KEYWORDS: &'static str = "zones cities regions offset available";
    const REQUESTS: &'static [&'static str] = &[
        "which timezones are there in australia",
        "iana names for south america",
        "what is the proper zone identifier for a city in argentina",
        "all zones with their utc offsets",
        "valid timezone names for a settings menu",
        "zones of europe to choose from",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Clock;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The zones of a region", json!({"region": "Australia"})),
            Example::new("A part of a region", json!({"region": "America/Argentina"})),
        ]
    }

    async fn run(&self, input: Input, clock: Clock, _cx: &CallContext) -> Result<Output, ToolError> {
        let now = time_input::now_in_seconds(&clock);
        let region =
            input.region.as_deref().map(|region| region.trim().trim_end_matches('/')).unwrap_or_default();
        let timezones: Vec<TimezoneEntry> = canonical_names()
            .filter(|name| is_in_region(name, region))
            .filter_map(|name| timezone_entry(name, now))
            .collect();
        if timezones.is_empty() {
            return Err(ToolError::not_found(format!("Unknown region: {region}.")).hint(regions_hint()));
        }
        Ok(Output { timezones })
    }
}

/// Names without a region are obsolete, except UTC.
fn canonical_names() -> impl Iterator<Item = &'static str> {
    zone::names().iter().map(String::as_str).filter(|name| name.contains('/') || *name == "UTC")
}

fn is_in_region(name: &str, region: &str) -> bool {
    let Some((head, rest)) = name.split_at_checked(region.len()) else {
        return false;
    };
    region.is_empty() || (head.eq_ignore_ascii_case(region) && (rest.is_empty() || rest.starts_with('/')))
}

fn timezone_entry(name: &str, now: Timestamp) -> Option<TimezoneEntry> {
    let tz = zone::resolve(name).ok()?.tz;
    Some(TimezoneEntry { name: name.to_owned(), utc_offset: time_format::offset(tz.to_offset(now)) })
}

fn regions_hint() -> String {
    let regions: BTreeSet<&str> =
        canonical_names().filter_map(|name| name.split_once('/')).map(|(region, _)| region).collect();
    format!("Regions: {}.", regions.into_iter().collect::<Vec<_>>().join(", "))
}

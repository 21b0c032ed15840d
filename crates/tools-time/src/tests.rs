//! The five tools through the test fixture, with a fixed clock.

use crate::toolbox;
use octo_toolkit::{Kind, ToolFixture};
use serde_json::{Value, json};

/// Saturday, 14 November 2026, 22:00 UTC.
fn bench() -> ToolFixture {
    ToolFixture::with_fixed_clock(toolbox(), "2026-11-14T22:00:00.75Z")
}

#[tokio::test]
async fn answers() {
    let rows = [
        (
            "time_now",
            json!({}),
            json!({
                "iso": "2026-11-14T22:00:00+00:00",
                "unix": 1_794_693_600,
                "timezone": "UTC",
                "utc_offset": "+00:00",
                "human": "Saturday, 14 November 2026, 22:00:00 UTC",
            }),
        ),
        (
            "time_now",
            json!({"timezone": "tokyo"}),
            json!({
                "iso": "2026-11-15T07:00:00+09:00",
                "unix": 1_794_693_600,
                "timezone": "Asia/Tokyo",
                "utc_offset": "+09:00",
                "human": "Sunday, 15 November 2026, 07:00:00 in Asia/Tokyo (+09:00)",
                "notes": ["tokyo is read as Asia/Tokyo."],
            }),
        ),
        (
            "time_convert",
            json!({"datetime": "2026-07-01 09:00", "from_timezone": "America/New_York", "to_timezone": "Europe/Berlin"}),
            json!({
                "original": "2026-07-01T09:00:00-04:00",
                "converted": "2026-07-01T15:00:00+02:00",
                "from_timezone": "America/New_York",
                "to_timezone": "Europe/Berlin",
                "from_utc_offset": "-04:00",
                "to_utc_offset": "+02:00",
                "difference": "+06:00",
            }),
        ),
        (
            "time_convert",
            json!({"datetime": "2026-07-01T09:00+02:00", "to_timezone": "UTC"}),
            json!({
                "original": "2026-07-01T09:00:00+02:00",
                "converted": "2026-07-01T07:00:00+00:00",
                "from_timezone": "+02:00",
                "to_timezone": "UTC",
                "from_utc_offset": "+02:00",
                "to_utc_offset": "+00:00",
                "difference": "-02:00",
                "notes": ["The text names its own zone, +02:00, so from_timezone (UTC) is not used."],
            }),
        ),
        (
            "time_parse",
            json!({"text": "next friday 5pm", "timezone": "America/New_York"}),
            json!({
                "iso": "2026-11-20T17:00:00-05:00",
                "unix": 1_795_212_000,
                "year": 2026,
                "month": 11,
                "day": 20,
                "hour": 17,
                "minute": 0,
                "second": 0,
                "timezone": "America/New_York",
                "utc_offset": "-05:00",
                "day_of_week": "Friday",
                "notes": ["\"next friday\" is read as the first Friday after today: 2026-11-20."],
            }),
        ),
        (
            "time_diff",
            json!({"start": "tomorrow at noon", "end": "now"}),
            json!({
                "days": 0,
                "hours": -14,
                "minutes": 0,
                "seconds": 0,
                "total_seconds": -50_400,
                "human": "14 hours before",
                "start": "2026-11-15T12:00:00+00:00",
                "end": "2026-11-14T22:00:00+00:00",
            }),
        ),
        (
            "time_list_timezones",
            json!({"region": "america/argentina/salta"}),
            json!({"timezones": [{"name": "America/Argentina/Salta", "utc_offset": "-03:00"}]}),
        ),
    ];
    for (name, input, output) in rows {
        assert_eq!(bench().call(name, input.clone()).await.unwrap(), output, "{name} {input}");
    }
}

#[tokio::test]
async fn refusals() {
    let rows = [
        ("time_now", json!({"timezone": "Europe/Berln"}), Kind::Invalid, "Did you mean Europe/Berlin"),
        ("time_now", json!({"zone": "UTC"}), Kind::Invalid, "unknown field"),
        (
            "time_convert",
            json!({"datetime": "noon", "to_timezone": "IST"}),
            Kind::Invalid,
            "Asia/Kolkata (India)",
        ),
        (
            "time_convert",
            json!({"datetime": "5/3/2027", "to_timezone": "UTC"}),
            Kind::Invalid,
            "2027-03-05 or 2027-05-03",
        ),
        ("time_convert", json!({"datetime": "noon"}), Kind::Invalid, "to_timezone"),
        (
            "time_parse",
            json!({"text": "2026-10-25 02:30", "timezone": "Europe/Berlin"}),
            Kind::Invalid,
            "2026-10-25T02:30:00+02:00 (the first)",
        ),
        ("time_parse", json!({"text": ""}), Kind::Invalid, "The text is empty."),
        ("time_diff", json!({"start": "now", "end": "3 days"}), Kind::Invalid, "duration"),
        (
            "time_list_timezones",
            json!({"region": "Atlantis"}),
            Kind::NotFound,
            "Regions: Africa, America, Antarctica",
        ),
    ];
    for (name, input, kind, part) in rows {
        let error = bench().call(name, input.clone()).await.expect_err(name);
        assert_eq!(error.kind, kind, "{name} {input}");
        assert!(error.text().contains(part), "{name} {input}: {}", error.text());
    }
}

#[tokio::test]
async fn every_zone_is_listed() {
    let all = bench().call("time_list_timezones", json!({})).await.unwrap();
    let names: Vec<&str> =
        all["timezones"].as_array().unwrap().iter().filter_map(|zone| zone["name"].as_str()).collect();
    assert!(
        names.len() > 450 && names.contains(&"UTC") && names.contains(&"Europe/Berlin"),
        "{}",
        names.len()
    );
    assert!(!names.contains(&"EST"));
    let some = bench().call("time_list_timezones", json!({"region": "europe/"})).await.unwrap();
    assert!(
        some["timezones"]
            .as_array()
            .unwrap()
            .iter()
            .all(|zone| zone["name"].as_str().unwrap().starts_with("Europe/"))
    );
}

#[tokio::test]
async fn examples_give_what_they_say() {
    let bench = bench();
    for tool in bench.tools() {
        for example in &tool.examples {
            let input: Value = example.input.to().unwrap();
            let found = bench.call(tool.name, input).await.unwrap();
            if let Some(expected) = &example.output {
                assert_eq!(found, expected.to::<Value>().unwrap(), "{}", example.purpose);
            }
        }
    }
}

#[test]
fn the_contract_is_kept() {
    let expected = [
        ("time_now", false),
        ("time_convert", true),
        ("time_parse", true),
        ("time_diff", true),
        ("time_list_timezones", true),
    ];
    let toolbox = toolbox();
    let found: Vec<(&str, bool)> =
        toolbox.tools.iter().map(|tool| (tool.name, tool.effect.idempotent)).collect();
    assert_eq!((toolbox.name, found.as_slice()), ("time", &expected[..]));
    assert!(toolbox.tools.iter().all(|tool| tool.effect.read_only && !tool.effect.open_world));
}

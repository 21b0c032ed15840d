//! `weather_get` against a fake Open-Meteo on loopback.

use super::WeatherSettings;
use crate::fake_server::{FakeServer, RecordedRequest, bench, html, json, unused_url};
use octo_toolkit::{Kind, ToolFixture};
use serde_json::{Value, json as value};

fn weather(fake: &FakeServer) -> ToolFixture {
    bench(crate::weather_toolbox(WeatherSettings {
        geocoding_url: Some(fake.url.join("geo").unwrap()),
        forecast_url: Some(fake.url.clone()),
    }))
}

fn place(name: &str, region: &str, country: (&str, &str), at: (f64, f64), population: u64) -> Value {
    value!({"id": 1, "name": name, "latitude": at.0, "longitude": at.1, "elevation": 42.0, "feature_code": "PPL",
        "country_code": country.0, "country": country.1, "admin1": region, "timezone": "Europe/Paris",
        "population": population, "postcodes": ["1"]})
}

fn map() -> Vec<Value> {
    let (fr, us, ca, de) = (("FR", "France"), ("US", "United States"), ("CA", "Canada"), ("DE", "Germany"));
    vec![
        place("Paris", "Île-de-France", fr, (48.85341, 2.3488), 2_138_551),
        place("Paris", "Texas", us, (33.66094, -95.55551), 24_782),
        place("Paris", "Ontario", ca, (43.2, -80.38333), 12_310),
        place("Paris", "Texas", us, (33.7, -95.6), 10),
        place("Parisot", "Occitanie", fr, (44.2, 1.8), 500),
        place("Berlin", "State of Berlin", de, (52.52437, 13.41053), 3_426_354),
        place("Bergen", "Vestland", ("NO", "Norway"), (60.39, 5.32), 213_585),
    ]
}

/// As Open-Meteo: names with this prefix, no `results` if there are none.
fn geocode(seen: &RecordedRequest) -> Value {
    let name = seen.get("name").to_lowercase();
    let begins = |place: &Value| place["name"].as_str().unwrap().to_lowercase().starts_with(&name);
    let found: Vec<Value> = map().into_iter().filter(begins).collect();
    if found.is_empty() {
        value!({"generationtime_ms": 0.5})
    } else {
        value!({"results": found, "generationtime_ms": 0.5})
    }
}

fn forecast() -> Value {
    let days: Vec<String> = (15..22).map(|day| format!("2026-11-{day}")).collect();
    value!({
        "latitude": 48.86, "longitude": 2.3399997, "generationtime_ms": 0.2, "utc_offset_seconds": 3600,
        "timezone": "Europe/Paris", "timezone_abbreviation": "GMT+1", "elevation": 38.0,
        "current_units": {"time": "iso8601", "temperature_2m": "°C"},
        "current": {"time": "2026-11-15T07:15", "interval": 900, "temperature_2m": 8.4, "apparent_temperature": 5.9,
            "relative_humidity_2m": 87, "precipitation": 0.1, "weather_code": 61, "cloud_cover": 100,
            "pressure_msl": 1012.3, "wind_speed_10m": 11.2, "wind_direction_10m": 225, "wind_gusts_10m": 28.4, "is_day": 0},
        "daily": {"time": days, "weather_code": [61, 3, 0, 95, 71, 45, null],
            "temperature_2m_max": [11.0, 12.0, 13.0, 14.0, 2.0, 9.0, null],
            "temperature_2m_min": [5.0, 6.0, 7.0, 8.0, -1.0, 3.0, 2.0],
            "precipitation_sum": [1.2, 0.0, 0.0, 20.0, 5.0, 0.0, 0.0],
            "precipitation_probability_max": [80, 10, 0, 95, 60, 5, null],
            "wind_speed_10m_max": [20.0, 18.0, 10.0, 60.0, 15.0, 5.0, 6.0],
            "uv_index_max": [1.0, 1.5, 2.0, 0.5, 0.5, 1.0, 1.0],
            "sunrise": days.iter().map(|day| format!("{day}T07:58")).collect::<Vec<_>>(),
            "sunset": days.iter().map(|day| format!("{day}T17:08")).collect::<Vec<_>>()},
    })
}

fn meteo(seen: &RecordedRequest) -> (u16, (&'static str, String), String) {
    json(if seen.path == "/geo/v1/search" { geocode(seen) } else { forecast() })
}

#[tokio::test]
async fn the_weather_of_a_city_is_told_in_words_and_numbers() {
    let fake = FakeServer::serve(meteo).await;
    let answer = weather(&fake).call("weather_get", value!({"location": "Paris"})).await.unwrap();
    let expected = value!({"name": "Paris, Île-de-France, France", "latitude": 48.85341, "longitude": 2.3488,
        "elevation": 42.0, "timezone": "Europe/Paris", "population": 2138551});
    assert_eq!(answer["location"], expected);
    let current = value!({"time": "2026-11-15T07:15+01:00", "weather": "light rain", "weather_code": 61, "temperature": 8.4,
        "feels_like": 5.9, "humidity": 87.0, "precipitation": 0.1, "cloud_cover": 100.0, "pressure": 1012.3,
        "wind_speed": 11.2, "wind_direction": "SW", "wind_gusts": 28.4, "is_day": false});
    assert_eq!(answer["current"], current);
    let daily = answer["daily"].as_array().unwrap();
    assert_eq!(daily.len(), 7);
    assert_eq!(daily[3]["weather"], "thunderstorm");
    assert_eq!(daily[3]["precipitation_probability"], 95.0);
    assert_eq!(daily[3]["sunset"], "2026-11-18T17:08+01:00");
    assert_eq!(
        daily[6],
        value!({"date": "2026-11-21", "weather": "unknown", "temperature_min": 2.0, "precipitation": 0.0,
        "wind_speed_max": 6.0, "uv_index_max": 1.0, "sunrise": "2026-11-21T07:58+01:00", "sunset": "2026-11-21T17:08+01:00"})
    );
    assert_eq!(answer["units"], value!({"temperature": "°C", "wind_speed": "km/h", "precipitation": "mm"}));
    let others: Vec<&str> = answer["alternatives"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["name"].as_str().unwrap())
        .collect();
    assert_eq!(others, ["Paris, Texas, United States", "Paris, Ontario, Canada"]);
    let asked = fake.requests();
    assert_eq!(asked.len(), 2);
    assert_eq!((asked[1].get("latitude"), asked[1].get("longitude")), ("48.85341", "2.3488"));
    assert_eq!((asked[1].get("timezone"), asked[1].get("forecast_days")), ("auto", "7"));
    assert_eq!(asked[1].get("temperature_unit"), "");
}

#[tokio::test]
async fn a_region_chooses_among_places_of_one_name() {
    for (location, name) in [
        ("Paris, Texas", "Paris, Texas, United States"),
        ("paris, tx", "Paris, Texas, United States"),
        ("Paris, USA", "Paris, Texas, United States"),
        ("Paris, Texas, United States", "Paris, Texas, United States"),
        ("Paris Texas", "Paris, Texas, United States"),
        ("Paris, CA", "Paris, Ontario, Canada"),
        ("Berlin", "Berlin, State of Berlin, Germany"),
    ] {
        let fake = FakeServer::serve(meteo).await;
        let answer = weather(&fake).call("weather_get", value!({"location": location})).await.unwrap();
        assert_eq!(answer["location"]["name"], name, "{location}");
    }
}

#[tokio::test]
async fn a_point_needs_no_search_and_units_can_be_chosen() {
    let fake = FakeServer::serve(meteo).await;
    let input = value!({"location": "48.85,2.35", "units": "imperial"});
    let answer = weather(&fake).call("weather_get", input).await.unwrap();
    let expected = value!({"name": "48.85,2.35", "latitude": 48.85, "longitude": 2.35, "elevation": 38.0,
        "timezone": "Europe/Paris"});
    assert_eq!(answer["location"], expected);
    assert!(answer.get("alternatives").is_none());
    assert_eq!(answer["units"]["temperature"], "°F");
    let asked = fake.requests();
    assert_eq!(asked.len(), 1);
    for (name, expected) in
        [("temperature_unit", "fahrenheit"), ("wind_speed_unit", "mph"), ("precipitation_unit", "inch")]
    {
        assert_eq!(asked[0].get(name), expected, "{name}");
    }
}

#[tokio::test]
async fn an_unknown_place_gives_similar_names() {
    for (location, hint) in [
        ("Berlni", "Berlin, State of Berlin, Germany"),
        ("Paris, Atlantis", "Paris, Île-de-France, France; Paris, Texas, United States"),
        ("Xyzzyplugh", "Check the spelling"),
        ("Qq", "Check the spelling"),
    ] {
        let fake = FakeServer::serve(meteo).await;
        let error = weather(&fake).call("weather_get", value!({"location": location})).await.unwrap_err();
        assert_eq!(error.kind, Kind::NotFound, "{location}");
        assert!(error.message.contains(location), "{}", error.message);
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{location}: {:?}", error.hint);
    }
}

#[tokio::test]
async fn failures_are_told() {
    for (status, body, message) in [
        (429, r#"{"error":true,"reason":"Minutely API request limit exceeded."}"#, "rate limiting"),
        (400, r#"{"error":true,"reason":"Parameter out of range"}"#, "status 400"),
        (500, "<h1>oops</h1>", "status 500"),
        (200, "<h1>oops</h1>", "is not JSON"),
        (200, "{}", "no weather data"),
    ] {
        let fake =
            FakeServer::serve(
                move |seen| if seen.path.starts_with("/geo") { meteo(seen) } else { html(status, body) },
            )
            .await;
        let error = weather(&fake).call("weather_get", value!({"location": "Berlin"})).await.unwrap_err();
        let kind = if status == 429 { Kind::RateLimited } else { Kind::Unavailable };
        assert_eq!(error.kind, kind, "{message}");
        assert!(error.message.contains(message), "{}", error.message);
        assert!(error.hint.is_some());
    }
    let gone = WeatherSettings { geocoding_url: Some(unused_url()), forecast_url: Some(unused_url()) };
    let error = bench(crate::weather_toolbox(gone)).call("weather_get", value!({"location": "Berlin"})).await;
    assert_ne!(error.unwrap_err().kind, Kind::Internal);
    for input in [
        value!({"location": ""}),
        value!({"location": "91,0"}),
        value!({"location": "Berlin", "units": "kelvin"}),
    ] {
        let fake = FakeServer::serve(meteo).await;
        let error = weather(&fake).call("weather_get", input.clone()).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{input}");
        assert!(fake.requests().is_empty());
    }
}

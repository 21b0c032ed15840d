//! Descriptions of WMO weather codes (table 4677, as used by Open-Meteo).

pub fn describe(code: u64) -> &'static str {
    match code {
        0 => "clear sky",
        1 => "mainly clear",
        2 => "partly cloudy",
        3 => "overcast",
        45 => "fog",
        48 => "fog with rime",
        51 => "light drizzle",
        53 => "drizzle",
        55 => "dense drizzle",
        56 => "light freezing drizzle",
        57 => "dense freezing drizzle",
        61 => "light rain",
        63 => "rain",
        65 => "heavy rain",
        66 => "light freezing rain",
        67 => "heavy freezing rain",
        71 => "light snowfall",
        73 => "snowfall",
        75 => "heavy snowfall",
        77 => "snow grains",
        80 => "light rain showers",
        81 => "rain showers",
        82 => "violent rain showers",
        85 => "light snow showers",
        86 => "heavy snow showers",
        95 => "thunderstorm",
        96 => "thunderstorm with light hail",
        99 => "thunderstorm with heavy hail",
        _ => "unknown",
    }
}

/// Wind direction as one of eight compass points.
pub fn compass(degrees: f64) -> &'static str {
    const POINTS: [&str; 8] = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
    let eighth = (degrees.rem_euclid(360.0) / 45.0).round() as usize;
    POINTS.get(eighth % 8).copied().unwrap_or("N")
}

#[cfg(test)]
mod tests {
    use super::{compass, describe};

    #[test]
    fn wind_has_the_nearest_of_eight_directions() {
        for (degrees, point) in [
            (0.0, "N"),
            (22.0, "N"),
            (23.0, "NE"),
            (90.0, "E"),
            (225.0, "SW"),
            (338.0, "N"),
            (360.0, "N"),
            (-90.0, "W"),
        ] {
            assert_eq!(compass(degrees), point, "{degrees}");
        }
    }

    #[test]
    fn every_code_that_open_meteo_documents_has_words_of_its_own() {
        let codes = [
            0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86,
            95, 96, 99,
        ];
        let mut said: Vec<&str> = codes.map(describe).to_vec();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), codes.len());
        assert!(!said.contains(&"unknown"));
        assert_eq!(describe(42), "unknown");
    }
}

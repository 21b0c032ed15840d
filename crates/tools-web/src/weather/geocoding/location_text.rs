//! Parses a location: a point, or a name with its regions.

use octo_toolkit::ToolError;

#[derive(Debug, PartialEq)]
pub enum Location {
    Point {
        latitude: f64,
        longitude: f64,
    },
    /// Interpretations, most likely first.
    Named(Vec<NamedPlace>),
}

/// A name, and regions or countries that contain it.
#[derive(Debug, PartialEq)]
pub struct NamedPlace {
    pub name: String,
    pub regions: Vec<String>,
}

pub fn parse_location(text: &str) -> Result<Location, ToolError> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err(ToolError::invalid("location is not a valid place.")
            .hint("Use a name such as Berlin or Paris, Texas, or coordinates such as 48.85,2.35."));
    }
    if let Some((latitude, longitude)) = parse_point(text) {
        if latitude.abs() > 90.0 || longitude.abs() > 180.0 {
            return Err(ToolError::invalid(format!("Coordinates out of range: {text}."))
                .hint("Use latitude (-90 to 90) first, then longitude (-180 to 180)."));
        }
        return Ok(Location::Point { latitude, longitude });
    }
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let name = parts.next().unwrap_or(text).to_owned();
    let within: Vec<String> = parts.map(str::to_owned).collect();
    let mut readings = vec![NamedPlace { name: name.clone(), regions: within.clone() }];
    // `Paris Texas` and `Springfield Illinois USA`: without commas, the last words may be the region.
    if within.is_empty() {
        let words: Vec<&str> = name.split_whitespace().collect();
        for cut in (1..words.len()).rev().take(2) {
            let (head, tail) = words.split_at(cut);
            readings.push(NamedPlace { name: head.join(" "), regions: vec![tail.join(" ")] });
        }
    }
    Ok(Location::Named(readings))
}

/// Two numbers separated by a comma, semicolon or space, optionally with N, S, E or W.
fn parse_point(text: &str) -> Option<(f64, f64)> {
    let parts: Vec<&str> = text.split([',', ';']).map(str::trim).collect();
    let parts = match parts.as_slice() {
        [_, _] => parts,
        [one] => one.split_whitespace().collect(),
        _ => return None,
    };
    let [latitude, longitude] = parts.as_slice() else { return None };
    Some((parse_degrees(latitude, 'N', 'S')?, parse_degrees(longitude, 'E', 'W')?))
}

fn parse_degrees(text: &str, plus: char, minus: char) -> Option<f64> {
    let text = text.to_ascii_uppercase();
    let (text, sign) = match (text.strip_suffix(plus), text.strip_suffix(minus)) {
        (Some(text), _) => (text, 1.0),
        (_, Some(text)) => (text, -1.0),
        _ => (text.as_str(), 1.0),
    };
    let digits = text.trim().trim_end_matches('°').trim();
    // Digits only: `inf` and `nan` parse, too.
    let plain = digits.chars().all(|letter| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+'));
    digits.parse::<f64>().ok().filter(|_| plain).map(|number| number * sign)
}

#[cfg(test)]
mod tests {
    use super::{Location, NamedPlace, parse_location};

    fn named(readings: &[(&str, &[&str])]) -> Location {
        let named = |(name, within): &(&str, &[&str])| NamedPlace {
            name: (*name).to_owned(),
            regions: within.iter().map(|part| (*part).to_owned()).collect(),
        };
        Location::Named(readings.iter().map(named).collect())
    }

    #[test]
    fn places_are_read_as_points_or_as_names_with_regions() {
        for (text, expected) in [
            ("48.85,2.35", Location::Point { latitude: 48.85, longitude: 2.35 }),
            (" -33.9 ; 151.2 ", Location::Point { latitude: -33.9, longitude: 151.2 }),
            ("48.85 2.35", Location::Point { latitude: 48.85, longitude: 2.35 }),
            ("33.9°S, 58.4°W", Location::Point { latitude: -33.9, longitude: -58.4 }),
            ("Berlin", named(&[("Berlin", &[])])),
            ("10115", named(&[("10115", &[])])),
            ("Paris, Texas", named(&[("Paris", &["Texas"])])),
            ("Paris, Texas, US", named(&[("Paris", &["Texas", "US"])])),
            ("New York", named(&[("New York", &[]), ("New", &["York"])])),
            (
                "Salt Lake City Utah",
                named(&[
                    ("Salt Lake City Utah", &[]),
                    ("Salt Lake City", &["Utah"]),
                    ("Salt Lake", &["City Utah"]),
                ]),
            ),
            ("nan, inf", named(&[("nan", &["inf"])])),
        ] {
            assert_eq!(parse_location(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in ["", "   ", "91,0", "0,181", "a\nb", &"x".repeat(201)] {
            assert_eq!(parse_location(text).unwrap_err().kind, octo_toolkit::Kind::Invalid, "{text}");
        }
    }
}

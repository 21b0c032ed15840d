//! Matches a place against the regions in the location text.

use serde_json::Value;

/// Whether the place is in this region or country, given by name, code or common abbreviation.
pub fn is_in_region(place: &Value, region: &str) -> bool {
    let region = normalize(region);
    let long = expand_abbreviation(&region);
    ["country", "country_code", "admin1", "admin2", "admin3", "admin4"].into_iter().any(|field| {
        let known = place.get(field).and_then(Value::as_str).map(normalize).unwrap_or_default();
        !known.is_empty() && (known == region || long.is_some_and(|long| known == long))
    })
}

/// Lower case, without dots and accents.
fn normalize(text: &str) -> String {
    let plain = |letter: char| match letter {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => 'a',
        'ç' => 'c',
        'è' | 'é' | 'ê' | 'ë' => 'e',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        'ñ' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        other => other,
    };
    let letters = text.trim().chars().flat_map(char::to_lowercase).map(plain);
    letters.filter(|letter| *letter != '.').collect()
}

/// Full name of an abbreviation. States are those of the United States, where abbreviations are common.
fn expand_abbreviation(short: &str) -> Option<&'static str> {
    const ABBREVIATIONS: &[(&str, &str)] = &[
        ("ak", "alaska"),
        ("al", "alabama"),
        ("ar", "arkansas"),
        ("az", "arizona"),
        ("ca", "california"),
        ("co", "colorado"),
        ("ct", "connecticut"),
        ("dc", "washington, dc"),
        ("de", "delaware"),
        ("fl", "florida"),
        ("ga", "georgia"),
        ("hi", "hawaii"),
        ("ia", "iowa"),
        ("id", "idaho"),
        ("il", "illinois"),
        ("in", "indiana"),
        ("ks", "kansas"),
        ("ky", "kentucky"),
        ("la", "louisiana"),
        ("ma", "massachusetts"),
        ("md", "maryland"),
        ("me", "maine"),
        ("mi", "michigan"),
        ("mn", "minnesota"),
        ("mo", "missouri"),
        ("ms", "mississippi"),
        ("mt", "montana"),
        ("nc", "north carolina"),
        ("nd", "north dakota"),
        ("ne", "nebraska"),
        ("nh", "new hampshire"),
        ("nj", "new jersey"),
        ("nm", "new mexico"),
        ("nv", "nevada"),
        ("ny", "new york"),
        ("oh", "ohio"),
        ("ok", "oklahoma"),
        ("or", "oregon"),
        ("pa", "pennsylvania"),
        ("ri", "rhode island"),
        ("sc", "south carolina"),
        ("sd", "south dakota"),
        ("tn", "tennessee"),
        ("tx", "texas"),
        ("ut", "utah"),
        ("va", "virginia"),
        ("vt", "vermont"),
        ("wa", "washington"),
        ("wi", "wisconsin"),
        ("wv", "west virginia"),
        ("wy", "wyoming"),
        ("america", "united states"),
        ("holland", "netherlands"),
        ("uae", "united arab emirates"),
        ("uk", "united kingdom"),
        ("usa", "united states"),
        ("united states of america", "united states"),
    ];
    ABBREVIATIONS.iter().find(|(name, _)| *name == short).map(|(_, long)| *long)
}

#[cfg(test)]
mod tests {
    use super::is_in_region;
    use serde_json::json;

    #[test]
    fn regions_are_known_by_name_code_and_short_form() {
        let portland = json!({"name": "Portland", "country_code": "US", "country": "United States", "admin1": "Oregon",
            "admin2": "Multnomah"});
        let paris =
            json!({"name": "Paris", "country_code": "FR", "country": "France", "admin1": "Île-de-France"});
        for (place, region, lies) in [
            (&portland, "OR", true),
            (&portland, "Oregon", true),
            (&portland, "usa", true),
            (&portland, "U.S.A.", true),
            (&portland, "US", true),
            (&portland, "Multnomah", true),
            (&portland, "ME", false),
            (&portland, "", false),
            (&paris, "ile-de-france", true),
            (&paris, "France", true),
            (&paris, "Texas", false),
        ] {
            assert_eq!(is_in_region(place, region), lies, "{region}");
        }
    }
}

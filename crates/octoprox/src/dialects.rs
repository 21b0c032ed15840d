//! Dialects: built-in profiles with the tool names of other products.

use octo_hub::ProfileSettings;
use std::collections::BTreeMap;

const DIALECTS: [(&str, &str); 4] = [
    ("codex", include_str!("dialects/codex.yaml")),
    ("gateway", include_str!("dialects/gateway.yaml")),
    ("ralph", include_str!("dialects/ralph.yaml")),
    ("tools-api", include_str!("dialects/tools-api.yaml")),
];

/// Returns the configured profiles, and each dialect whose name is not taken.
pub fn with_dialects(own: &BTreeMap<String, ProfileSettings>) -> BTreeMap<String, ProfileSettings> {
    let mut all: BTreeMap<String, ProfileSettings> = DIALECTS
        .iter()
        .filter_map(|(name, text)| Some(((*name).to_owned(), serde_saphyr::from_str(text).ok()?)))
        .collect();
    all.extend(own.clone());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_can_be_read_and_an_operators_profile_wins() {
        for (name, text) in DIALECTS {
            if let Err(error) = serde_saphyr::from_str::<ProfileSettings>(text) {
                panic!("{name}: {error}");
            }
        }
        let own = BTreeMap::from([("codex".to_owned(), ProfileSettings::default())]);
        let all = with_dialects(&own);
        assert_eq!(all.len(), DIALECTS.len());
        assert!(all["codex"].overrides.is_empty());
    }
}

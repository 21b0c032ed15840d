//! Name and version that a server declares.

use octo_model::JsonObject;

/// Maximum length of a declared name or version, in characters.
const MAX_SERVER_INFO_LEN: usize = 100;

/// Name and version that a server declares. Untrusted: no decision may depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: Option<String>,
}

impl ServerInfo {
    pub(crate) fn parse(info: &JsonObject) -> Option<Self> {
        let name = info.text("name").map(|name| sanitize(&name)).filter(|name| !name.is_empty())?;
        let version = info.text("version").map(|version| sanitize(&version)).filter(|text| !text.is_empty());
        Some(Self { name, version })
    }
}

/// Removes everything that could hide text or affect how it is displayed.
fn sanitize(text: &str) -> String {
    let shown = |c: &char| c.is_alphanumeric() || c.is_ascii_graphic() || *c == ' ';
    text.chars().filter(shown).take(MAX_SERVER_INFO_LEN).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::json;

    #[test]
    fn a_name_is_shown_without_what_could_hide_in_it() {
        for (info, name, version) in [
            (json!({"name": "files", "version": "1.2.0"}), Some("files"), Some("1.2.0")),
            (json!({"name": " \u{1b}[31mred\u{202e}\u{200b} ", "version": "\u{7}"}), Some("[31mred"), None),
            (json!({"name": "Größe 2"}), Some("Größe 2"), None),
            (json!({"name": "\n"}), None, None),
            (json!({"version": "1"}), None, None),
        ] {
            let about = ServerInfo::parse(&Json::from(info.clone()).members().unwrap());
            assert_eq!(about.as_ref().map(|about| about.name.as_str()), name, "{info}");
            assert_eq!(about.and_then(|about| about.version).as_deref(), version, "{info}");
        }
        let long = Json::from(json!({"name": "x".repeat(1000)})).members().unwrap();
        assert_eq!(ServerInfo::parse(&long).unwrap().name.len(), MAX_SERVER_INFO_LEN);
    }
}

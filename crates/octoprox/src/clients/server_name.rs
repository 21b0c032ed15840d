//! Valid server names: other products allow more characters than tool names do.

use crate::settings::{MAX_SERVER_NAME_LEN, is_reserved_name};
use octo_model::normalized_name;

/// Returns the name if it is valid, otherwise the closest valid one. `used` are the names already taken.
pub fn valid_name<'a>(name: &str, used: impl Iterator<Item = &'a str>) -> String {
    let used: Vec<String> = used.map(normalized_name).collect();
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let mut plain = plain.trim_matches(['-', '_']).to_owned();
    for (several, one) in [("__", "_"), ("--", "-")] {
        while plain.contains(several) {
            plain = plain.replace(several, one);
        }
    }
    if plain.is_empty() {
        plain = "server".to_owned();
    }
    let free = |name: &str| !is_reserved_name(name) && !used.contains(&normalized_name(name));
    let mut endings =
        [String::new(), "-mcp".to_owned()].into_iter().chain((2..).map(|count| format!("-{count}")));
    let fits = endings.find_map(|ending| {
        let room = MAX_SERVER_NAME_LEN.saturating_sub(ending.len());
        let short: String = plain.chars().take(room).collect();
        let whole = format!("{}{ending}", short.trim_end_matches(['-', '_']));
        free(&whole).then_some(whole)
    });
    fits.unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        for (name, used, fits) in [
            ("notion", &[][..], "notion"),
            ("Google Drive", &[], "Google-Drive"),
            ("com.example/tool", &[], "com-example-tool"),
            ("git", &[], "git-mcp"),
            ("tools", &[], "tools-mcp"),
            ("a__b--c", &[], "a_b-c"),
            ("notion", &["Notion"], "notion-mcp"),
            ("time", &["time_mcp"], "time-2"),
            ("a-very-long-name-of-a-server", &[], "a-very-long-name-of"),
            ("a-very-long-name-of-a-server", &["a-very-long-name-of"], "a-very-long-name-mcp"),
            ("日本", &[], "server"),
        ] {
            let fit = valid_name(name, used.iter().copied());
            assert_eq!(fit, fits, "{name}");
            assert!(fit.len() <= MAX_SERVER_NAME_LEN);
        }
    }
}

//! Names of the hub's variables for what servers need.

use octo_model::sha256_hex;

/// Hexadecimal digits of a digest in a name.
const DIGEST_LEN: usize = 16;

/// Variable of the hub for a variable of a server. Bundles and registries must not choose which variables of the hub a
/// server gets, and they choose both names: the prefix is that of no other program, and two servers never share a variable.
pub fn own_variable(server: &str, variable: &str) -> String {
    let name = format!("MCP_{}__{}", shouted(server), shouted(variable));
    // Within a plain name, `__` occurs once. Any other gets a digest, behind a second one.
    let is_plain = is_plain(server, '-', |sign| sign.is_ascii_lowercase())
        && is_plain(variable, '_', |sign| sign.is_ascii_uppercase());
    if is_plain {
        return name;
    }
    let digest = sha256_hex(format!("{server}\0{variable}").as_bytes()).to_uppercase();
    format!("{name}__{}", digest.get(..DIGEST_LEN).unwrap_or(&digest))
}

fn shouted(text: &str) -> String {
    text.to_uppercase().replace(|sign: char| !sign.is_ascii_alphanumeric(), "_")
}

/// Whether a name consists of words with single separators between them.
fn is_plain(name: &str, separator: char, is_letter: fn(char) -> bool) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|sign| is_letter(sign) || sign.is_ascii_digit());
    name.split(separator).all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_servers_share_a_variable() {
        assert_eq!(own_variable("tides-api", "KEY"), "MCP_TIDES_API__KEY");
        let servers =
            ["tides", "tides-api", "tides_api", "Tides", "tides-api-", "tides--api", "", "tides-", "ｔides"];
        let variables =
            ["KEY", "API_KEY", "_KEY", "__KEY", "api_key", "API-KEY", "API__KEY", "KEY_", "", "KEY}${HOME"];
        let names: BTreeSet<String> = servers
            .iter()
            .flat_map(|server| variables.iter().map(|variable| own_variable(server, variable)))
            .collect();
        assert_eq!(names.len(), servers.len() * variables.len(), "{names:?}");
        let is_safe = |name: &String| {
            name.starts_with("MCP_") && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
        };
        assert!(names.iter().all(is_safe), "{names:?}");
    }
}

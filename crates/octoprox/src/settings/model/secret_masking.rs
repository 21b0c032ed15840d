//! Masking of secrets in serialized settings.

use octo_model::{MASK, Secret};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Returns whether a variable, header, parameter or flag of this name probably contains a secret.
pub fn is_secret_name(name: &str) -> bool {
    const SECRET_WORDS: [&str; 7] = ["auth", "authorization", "bearer", "cookie", "key", "pass", "pin"];
    const SECRET_FRAGMENTS: [&str; 12] = [
        "token",
        "secret",
        "passw",
        "passphrase",
        "pwd",
        "apikey",
        "api_key",
        "access_key",
        "private_key",
        "credential",
        "database_url",
        "dsn",
    ];
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_FRAGMENTS.iter().any(|part| name.contains(part))
        || name.split('_').any(|word| SECRET_WORDS.contains(&word))
}

/// Serializes a map, masking the values whose names look secret.
pub fn serialize_masked<S: Serializer>(
    values: &BTreeMap<String, Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let shown =
        values.iter().map(|(name, value)| (name, if is_secret_name(name) { MASK } else { value.expose() }));
    serializer.collect_map(shown)
}

/// Serializes a map of database URLs without their passwords.
pub fn serialize_urls<S: Serializer>(
    values: &BTreeMap<String, Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, mask_url(value.expose()))))
}

/// Serializes a URL with its secrets masked.
pub fn serialize_url<S: Serializer>(value: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_deref().map(mask_url).serialize(serializer)
}

/// Masks the password and the secret parameters of a URL. Text that is not a valid URL is masked entirely.
pub fn mask_url(address: &str) -> String {
    let Ok(mut url) = url::Url::parse(address) else {
        return MASK.to_owned();
    };
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return MASK.to_owned();
    }
    if url.query().is_some() {
        let shown: Vec<String> = url
            .query_pairs()
            .map(|(name, value)| format!("{name}={}", if is_secret_name(&name) { MASK } else { &value }))
            .collect();
        url.set_query(Some(&shown.join("&")));
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, secret) in [
            ("GITHUB_TOKEN", true),
            ("Authorization", true),
            ("X-Api-Key", true),
            ("BRAVE_KEY", true),
            ("PGPASSWORD", true),
            ("DATABASE_URL", true),
            ("Cookie", true),
            ("NODE_ENV", false),
            ("X-Keyboard", false),
            ("AUTHOR", false),
            ("PATH", false),
        ] {
            assert_eq!(is_secret_name(name), secret, "{name}");
        }
    }

    #[test]
    fn addresses_lose_their_passwords() {
        for (address, shown) in [
            ("postgresql://ada:hunter2@db:5432/main", "postgresql://ada:***@db:5432/main"),
            ("https://x.test/mcp?api_key=abc&page=2", "https://x.test/mcp?api_key=***&page=2"),
            ("http://127.0.0.1:3000/mcp", "http://127.0.0.1:3000/mcp"),
            ("host=db password=x", "***"),
        ] {
            assert_eq!(mask_url(address), shown);
        }
        assert_eq!(format!("{:?}", Secret::new("x")), "***");
    }
}

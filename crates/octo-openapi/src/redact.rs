//! Redacts credentials in a response: an API that echoes a request must not reveal the hub's secrets to the caller.

use crate::document::request::percent_encoding;
use bytes::Bytes;
use http::HeaderValue;
use memchr::memmem;
use octo_toolkit::net::NetResponse;

const MASK: &str = "***";
/// Shorter values are ordinary words in many responses.
const MIN_SECRET_LEN: usize = 6;
/// Prefix length from which a truncated credential at the end is no coincidence.
const MIN_PREFIX_LEN: usize = 4;

/// Parts of header names that carry secrets.
const SECRET_HEADER_PARTS: [&str; 9] =
    ["auth", "token", "key", "cookie", "secret", "passw", "passphrase", "pwd", "credential"];

/// Whether a header of this name carries a secret.
pub fn is_secret_header(name: &str) -> bool {
    SECRET_HEADER_PARTS.iter().any(|part| name.contains(part))
}

/// Masks the values in the headers and the body, also JSON-escaped and percent-encoded.
pub fn redact<'s>(answer: &mut NetResponse, secrets: impl IntoIterator<Item = &'s str>) {
    let mut all: Vec<String> = Vec::new();
    for secret in secrets {
        let bare = secret.split_once(' ').map_or(secret, |(_, bare)| bare.trim());
        for value in [secret, bare].into_iter().filter(|value| value.len() >= MIN_SECRET_LEN) {
            let json = serde_json::Value::from(value).to_string();
            let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json).to_owned();
            let encoded = percent_encoding::encode(value);
            all.extend([encoded.to_ascii_lowercase(), encoded.replace("%20", "+"), encoded]);
            all.extend([value.to_owned(), json.replace('/', "\\/"), json]);
        }
    }
    all.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
    all.dedup();
    for value in answer.headers.values_mut() {
        let mut bytes = value.as_bytes().to_vec();
        if mask(&mut bytes, &all) {
            *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static(MASK));
        }
    }
    let mut body = answer.body.to_vec();
    let mut changed = mask(&mut body, &all);
    if answer.truncated {
        changed |= mask_beginning(&mut body, &all);
    }
    if changed {
        answer.body = Bytes::from(body);
    }
}

fn mask(bytes: &mut Vec<u8>, values: &[String]) -> bool {
    let mut changed = false;
    for value in values {
        let found: Vec<usize> = memmem::find_iter(bytes, value.as_bytes()).collect();
        if found.is_empty() {
            continue;
        }
        let mut masked = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for at in found {
            masked.extend_from_slice(bytes.get(from..at).unwrap_or_default());
            masked.extend_from_slice(MASK.as_bytes());
            from = at + value.len();
        }
        masked.extend_from_slice(bytes.get(from..).unwrap_or_default());
        *bytes = masked;
        changed = true;
    }
    changed
}

/// A caller who controls where a response is truncated must not get a credential without its end.
fn mask_beginning(bytes: &mut Vec<u8>, values: &[String]) -> bool {
    let beginning = |value: &String| {
        let longest = value.len().min(bytes.len() + 1);
        (MIN_PREFIX_LEN..longest)
            .rev()
            .find(|&length| value.as_bytes().get(..length).is_some_and(|start| bytes.ends_with(start)))
    };
    let Some(length) = values.iter().filter_map(beginning).max() else { return false };
    bytes.truncate(bytes.len() - length);
    bytes.extend_from_slice(MASK.as_bytes());
    true
}

//! JSON pointers.

use crate::document::request::percent_encoding;
use serde_json::Value;

/// Tokens of a reference into the same document (`#/components/schemas/Pet`); `None` for any other reference.
pub(crate) fn tokens(reference: &str) -> Option<Vec<String>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let pointer = percent_encoding::decode(pointer);
    Some(pointer.strip_prefix('/')?.split('/').map(unescape).collect())
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Escapes one token of a pointer.
pub(crate) fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// Joins tokens to a pointer.
pub(crate) fn join<T: AsRef<str>>(tokens: &[T]) -> String {
    tokens.iter().map(|token| format!("/{}", escape(token.as_ref()))).collect()
}

/// Value at a list of tokens.
pub(crate) fn walk<T: AsRef<str>>(value: Value, tokens: &[T]) -> Option<Value> {
    tokens.iter().try_fold(value, |value, token| match value {
        Value::Object(mut members) => members.remove(token.as_ref()),
        Value::Array(mut items) => {
            let at: usize = token.as_ref().parse().ok()?;
            (at < items.len()).then(|| items.swap_remove(at))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_lead_where_they_say() {
        let value = json!({"a/b": {"m~n": [10, 20]}, "c d": 1, "": 2});
        for (reference, expected) in [
            ("#/a~1b/m~0n/1", Some(json!(20))),
            ("#/c%20d", Some(json!(1))),
            ("#/", Some(json!(2))),
            ("#", Some(value.clone())),
            ("#/a~1b/m~0n/2", None),
            ("#/nope", None),
            ("other.json#/a", None),
            ("#anchor", None),
        ] {
            let found = tokens(reference).and_then(|tokens| walk(value.clone(), &tokens));
            assert_eq!(found, expected, "{reference}");
        }
        assert_eq!(join(&["a/b", "m~n"]), "/a~1b/m~0n");
    }
}

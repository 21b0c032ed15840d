//! Tool names, derived from operation names.

use octo_model::{normalized_name, with_suffix};
use octo_openapi::OperationSummary;
use std::collections::HashMap;

/// Longer names are shortened.
const MAX_NAME_LEN: usize = 64;

/// A name for each operation: letters, digits, `_` and `-`, unique even for clients that normalize names. Of equal
/// names, the first by path and method keeps the name, wherever it is in the document; the others get a suffix that
/// depends on their own path and method alone.
pub(crate) fn tool_names(operations: &[OperationSummary]) -> Vec<String> {
    let plain: Vec<String> = operations.iter().map(|listed| sanitize_name(&listed.id)).collect();
    let mut owners: HashMap<String, (&str, &str)> = HashMap::new();
    for (listed, name) in operations.iter().zip(&plain) {
        let place = (listed.path.as_str(), listed.method.as_str());
        let owner = owners.entry(normalized_name(name)).or_insert(place);
        *owner = place.min(*owner);
    }
    let named = operations.iter().zip(plain).map(|(listed, name)| {
        let place = (listed.path.as_str(), listed.method.as_str());
        let owns = owners.get(&normalized_name(&name)) == Some(&place);
        if owns && name.len() <= MAX_NAME_LEN {
            name
        } else {
            with_suffix(&name, &format!("{} {}", listed.method, listed.path))
        }
    });
    named.collect()
}

fn sanitize_name(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    // Two underscores separate a server's name from a tool's.
    let words = id.split(|c: char| !fits(c)).filter(|word| !word.is_empty());
    match words.collect::<Vec<_>>().join("_") {
        name if name.is_empty() => "operation".to_owned(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(id: &str, method: &str, path: &str) -> OperationSummary {
        OperationSummary {
            method: method.into(),
            path: path.into(),
            id: id.into(),
            summary: String::new(),
            tags: Vec::new(),
            deprecated: false,
            signature: String::new(),
        }
    }

    #[test]
    fn names_are_plain_and_stay_apart_whatever_the_order() {
        let mut all = vec![
            listed("getPet", "GET", "/pets/{id}"),
            listed("repos/list-all", "GET", "/repos"),
            listed("get_pet", "GET", "/old/{id}"),
            listed("GETPET", "POST", "/a"),
            listed("GetPet", "GET", "/a"),
            listed("größe.__x", "GET", "/b"),
            listed("///", "GET", "/c"),
            listed(&"long".repeat(40), "GET", "/d"),
        ];
        let names = super::tool_names(&all);
        assert_eq!(names[1], "repos_list-all");
        assert_eq!(names[2], "get_pet");
        assert_eq!((names[4].as_str(), names[5].as_str()), ("GetPet", "gr_e_x"));
        assert_eq!(names[6], "operation");
        for (at, prefix) in [(0, "getPet_"), (3, "GETPET_"), (7, "longlong")] {
            assert!(names[at].starts_with(prefix) && names[at].len() <= 46, "{}", names[at]);
        }
        let mut folded: Vec<String> = names.iter().map(|name| normalized_name(name)).collect();
        folded.sort();
        folded.dedup();
        assert_eq!(folded.len(), all.len());
        assert!(names.iter().all(|name| octo_model::is_valid_name(name)));
        all.reverse();
        let mut again = super::tool_names(&all);
        again.reverse();
        assert_eq!(names, again);
    }
}

//! What `octoprox add --update` keeps of the entry that it replaces.

use serde_json::{Map, Value};

/// Settings that say what runs, and with which login: those of the new entry.
const IDENTITY: [&str; 8] = ["package", "digest", "command", "args", "url", "document", "type", "auth"];

/// Whether both are the same package in any version, or the same URL, program or document.
pub fn is_same_server(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let package = |entry: &Map<String, Value>| {
        let package = entry.get("package")?.as_str()?;
        Some(package.rsplit_once('@').map_or(package, |(name, _)| name).to_owned())
    };
    let same = |key: &str| old.get(key).is_some() && old.get(key) == new.get(key);
    match (package(old), package(new)) {
        (None, None) => same("url") || same("document") || same("command"),
        (old, new) => old == new,
    }
}

/// Adds to the new entry what the user has set in the old one of the same server, except variables that were given now.
pub fn keep_settings(old: &Map<String, Value>, new: &mut Map<String, Value>, given: &[String]) {
    let is_given = |name: &str| given.iter().any(|given| given.split('=').next() == Some(name));
    for (key, value) in old.iter().filter(|(key, _)| !IDENTITY.contains(&key.as_str())) {
        match (new.get_mut(key), value) {
            (Some(Value::Object(new)), Value::Object(old)) => merge(old, new, is_given),
            _ => drop(new.insert(key.clone(), value.clone())),
        }
    }
    for key in ["args", "auth"] {
        if let Some(value) = old.get(key).filter(|_| !new.contains_key(key)) {
            new.insert(key.to_owned(), value.clone());
        }
    }
}

/// Values of both; lists are joined.
fn merge(old: &Map<String, Value>, new: &mut Map<String, Value>, is_given: impl Fn(&str) -> bool) {
    for (key, value) in old.iter().filter(|(key, _)| !is_given(key)) {
        match (new.get_mut(key), value) {
            (Some(Value::Array(list)), Value::Array(old)) => {
                let more: Vec<Value> = old.iter().filter(|one| !list.contains(one)).cloned().collect();
                list.extend(more);
            }
            _ => drop(new.insert(key.clone(), value.clone())),
        }
    }
    // Full access includes all hosts.
    if new.get("network") == Some(&Value::Bool(true)) {
        new.remove("hosts");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_of_the_user_survive_an_update() {
        let entry = |value: Value| value.as_object().unwrap().clone();
        let old =
            entry(json!({"package": "npm:@a/b@1.0.0", "args": ["x"], "enabled": false, "timeout_seconds": 9,
            "sandbox": {"hosts": ["a.example"], "read": ["/r"]}, "env": {"A": "1", "B": "2", "C": "own"}}));
        let mut new = entry(
            json!({"package": "npm:@a/b@2.0.0", "sandbox": {"hosts": ["b.example"]}, "env": {"B": "3", "C": "${C}"}}),
        );
        assert!(is_same_server(&old, &new));
        keep_settings(&old, &mut new, &["B=3".to_owned()]);
        let merged = json!({"package": "npm:@a/b@2.0.0", "args": ["x"], "enabled": false, "timeout_seconds": 9,
            "sandbox": {"hosts": ["b.example", "a.example"], "read": ["/r"]}, "env": {"A": "1", "B": "3", "C": "own"}});
        assert_eq!(Value::Object(new), merged);
        for (one, other, same) in [
            (json!({"package": "npm:a@1.0.0"}), json!({"package": "pypi:a@1.0.0"}), false),
            (json!({"url": "https://a.example"}), json!({"url": "https://a.example", "auth": {}}), true),
            (json!({"url": "https://a.example"}), json!({"package": "npm:a@1.0.0"}), false),
            (json!({"command": "a"}), json!({"command": "b"}), false),
        ] {
            assert_eq!(is_same_server(&entry(one.clone()), &entry(other.clone())), same, "{one} {other}");
        }
    }
}

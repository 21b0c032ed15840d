//! What `octoprox add --update` keeps of the entry that it replaces.

use crate::packages::{LockedPackage, bundle_publisher};
use serde_json::{Map, Value};
use std::path::Path;

/// Programs that run any image.
const CONTAINER_ENGINES: [&str; 2] = ["docker", "podman"];
/// Settings that say what runs, and with which login: those of the new entry.
const IDENTITY: [&str; 8] = ["package", "digest", "command", "args", "url", "document", "type", "auth"];

/// The server in the settings that has the name of the one to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// The same one: what the user has set is kept.
    Same,
    /// A bundle of the same name whose publisher is another one, or not known. Nothing is kept.
    OtherPublisher(Option<String>),
    /// Another program or URL. Nothing is kept.
    Other,
}

impl Replaced {
    /// Compares the entries, and the locks of their packages. A bundle chooses its name, so its publisher counts as well.
    pub fn new(
        (old, old_lock): (&Map<String, Value>, Option<&LockedPackage>),
        (new, new_lock): (&Map<String, Value>, Option<&LockedPackage>),
    ) -> Self {
        if !is_same_server(old, new) {
            return Self::Other;
        }
        let is_bundle = |entry: &Map<String, Value>| {
            entry.get("package").and_then(Value::as_str).is_some_and(|package| package.starts_with("mcpb:"))
        };
        match (old_lock.and_then(bundle_publisher), new_lock.and_then(bundle_publisher)) {
            (Some(old), Some(new)) if old == new => Self::Same,
            (old, _) if is_bundle(new) => Self::OtherPublisher(old.map(str::to_owned)),
            _ => Self::Same,
        }
    }
}

/// Whether both are the same package in any version, or the same image, URL, program or document.
fn is_same_server(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let package = |entry: &Map<String, Value>| {
        let package = entry.get("package")?.as_str()?;
        Some(package.rsplit_once('@').map_or(package, |(name, _)| name).to_owned())
    };
    let same = |key: &str| old.get(key).is_some() && old.get(key) == new.get(key);
    match (package(old), package(new)) {
        (None, None) => {
            let is_same_program = same("command") && image(old) == image(new);
            same("url") || same("document") || is_same_program
        }
        (old, new) => old == new,
    }
}

/// Name of the image that a container engine runs, without its digest or tag.
fn image(entry: &Map<String, Value>) -> Option<String> {
    let command = Path::new(entry.get("command")?.as_str()?).file_name()?.to_str()?;
    if !CONTAINER_ENGINES.contains(&command) {
        return None;
    }
    let args: Vec<&str> = entry.get("args")?.as_array()?.iter().filter_map(Value::as_str).collect();
    // An image that `octoprox add` wrote has a digest. Any other command line is compared as a whole.
    let image = args.iter().find_map(|word| word.split_once("@sha256:").map(|(name, _)| name.to_owned()));
    Some(image.unwrap_or_else(|| args.join(" ")))
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
    use crate::packages::PackageId;
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
        let image = |name: &str, digest: &str| json!({"command": "docker", "args": ["run", format!("{name}@sha256:{digest}")]});
        for (one, other, same) in [
            (json!({"package": "npm:a@1.0.0"}), json!({"package": "pypi:a@1.0.0"}), false),
            (json!({"url": "https://a.example"}), json!({"url": "https://a.example", "auth": {}}), true),
            (json!({"url": "https://a.example"}), json!({"package": "npm:a@1.0.0"}), false),
            (json!({"command": "a"}), json!({"command": "b"}), false),
            (image("ghcr.io/acme/tides", "1"), image("ghcr.io/acme/tides", "2"), true),
            (image("ghcr.io/acme/tides", "1"), image("ghcr.io/mallory/tides", "1"), false),
            (image("ghcr.io/acme/tides", "1"), json!({"command": "docker"}), false),
        ] {
            assert_eq!(is_same_server(&entry(one.clone()), &entry(other.clone())), same, "{one} {other}");
        }
    }

    #[test]
    fn a_bundle_of_another_publisher_is_another_one() {
        let id = PackageId::parse("mcpb:tides@1.0.0").unwrap();
        let lock =
            |publisher: Value| LockedPackage::new(&id, "x".to_owned(), json!({"publisher": publisher}));
        let (acme, mallory, unknown) = (lock("Acme".into()), lock("Mallory".into()), lock(Value::Null));
        let entry = |package: &str| json!({"package": package}).as_object().unwrap().clone();
        let (old, new, npm) =
            (entry("mcpb:tides@1.0.0"), entry("mcpb:tides@2.0.0"), entry("npm:tides@1.0.0"));
        for (before, after, replaced) in [
            ((&old, Some(&acme)), (&new, Some(&acme)), Replaced::Same),
            ((&old, Some(&acme)), (&new, Some(&mallory)), Replaced::OtherPublisher(Some("Acme".to_owned()))),
            ((&old, Some(&unknown)), (&new, Some(&unknown)), Replaced::OtherPublisher(None)),
            ((&old, None), (&new, Some(&acme)), Replaced::OtherPublisher(None)),
            ((&npm, None), (&npm, Some(&unknown)), Replaced::Same),
            ((&npm, None), (&new, Some(&acme)), Replaced::Other),
        ] {
            assert_eq!(Replaced::new(before, after), replaced);
        }
    }
}

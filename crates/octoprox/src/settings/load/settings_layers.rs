//! Layered settings: a merged tree with the origin of each value.

use crate::settings::check::settings_problem::SettingOrigin;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Clone, Default)]
pub struct Layers {
    tree: Map<String, Value>,
    origins: BTreeMap<String, SettingOrigin>,
}

impl Layers {
    /// Merges a tree: objects are merged, other values are replaced. Keys without a value are ignored, so that a
    /// section may have all its entries commented out.
    pub fn merge(&mut self, over: Map<String, Value>, origin: &SettingOrigin) {
        let mut tree = std::mem::take(&mut self.tree);
        self.merge_object(&mut tree, over, "", origin);
        self.tree = tree;
    }

    fn merge_object(
        &mut self,
        under: &mut Map<String, Value>,
        over: Map<String, Value>,
        path: &str,
        origin: &SettingOrigin,
    ) {
        for (key, value) in over {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match value {
                Value::Null => {}
                Value::Object(over) => {
                    let slot = under.entry(key).or_insert_with(|| Value::Object(Map::new()));
                    if !slot.is_object() {
                        *slot = Value::Object(Map::new());
                    }
                    self.origins.entry(path.clone()).or_insert_with(|| origin.clone());
                    if let Value::Object(under) = slot {
                        self.merge_object(under, over, &path, origin);
                    }
                }
                value => {
                    under.insert(key, value);
                    self.origins.insert(path, origin.clone());
                }
            }
        }
    }

    /// Sets the value at a dotted path.
    pub fn set(&mut self, path: &str, value: Value, origin: &SettingOrigin) {
        let over = path
            .rsplit('.')
            .fold(value, |value, key| Value::Object(Map::from_iter([(key.to_owned(), value)])));
        if let Value::Object(over) = over {
            self.merge(over, origin);
        }
    }

    /// Appends to a list, creating it if necessary.
    pub fn push(&mut self, path: &str, value: Value, origin: &SettingOrigin) {
        let mut list = self.get(path).and_then(Value::as_array).cloned().unwrap_or_default();
        let at = list.len();
        let before = self.origin(path);
        list.push(value);
        self.set(path, Value::Array(list), &before);
        self.origins.insert(format!("{path}[{at}]"), origin.clone());
    }

    /// Removes a value and everything below it.
    pub fn remove(&mut self, path: &str) {
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        let parent = if parent.is_empty() { Some(&mut self.tree) } else { at_mut(&mut self.tree, parent) };
        if let Some(parent) = parent {
            parent.remove(key);
        }
        let below = format!("{path}.");
        self.origins.retain(|known, _| known != path && !known.starts_with(&below));
    }

    pub fn get(&self, path: &str) -> Option<&Value> {
        let mut keys = path.split('.');
        let first = self.tree.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))
    }

    pub fn tree(&self) -> Value {
        Value::Object(self.tree.clone())
    }

    /// Calls `change` for every string in the tree.
    pub fn for_each_text(&mut self, change: &mut dyn FnMut(&str, &mut String)) {
        for (key, value) in &mut self.tree {
            visit_texts(value, key, change);
        }
    }

    /// Returns the origin of a value, or of its closest ancestor that has one.
    pub fn origin(&self, path: &str) -> SettingOrigin {
        let mut path = path;
        loop {
            if let Some(origin) = self.origins.get(path) {
                return origin.clone();
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = path.get(..end).unwrap_or_default(),
                None => return self.origins.get("").cloned().unwrap_or(SettingOrigin::Default),
            }
        }
    }

    /// Iterates over all values that were set, with their origins.
    pub fn origins(&self) -> impl Iterator<Item = (&str, &SettingOrigin)> {
        let leaf = |path: &str| !self.get(path).is_some_and(Value::is_object);
        self.origins.iter().filter(move |(path, _)| leaf(path)).map(|(path, origin)| (path.as_str(), origin))
    }
}

fn at_mut<'a>(tree: &'a mut Map<String, Value>, path: &str) -> Option<&'a mut Map<String, Value>> {
    path.split('.').try_fold(tree, |tree, key| tree.get_mut(key)?.as_object_mut())
}

fn visit_texts(value: &mut Value, path: &str, change: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => change(path, text),
        Value::Array(items) => {
            items
                .iter_mut()
                .enumerate()
                .for_each(|(at, item)| visit_texts(item, &format!("{path}[{at}]"), change));
        }
        Value::Object(members) => {
            members.iter_mut().for_each(|(key, item)| visit_texts(item, &format!("{path}.{key}"), change));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file() -> SettingOrigin {
        SettingOrigin::File("a.yaml".into())
    }

    fn flag() -> SettingOrigin {
        SettingOrigin::Flag("--port")
    }

    #[test]
    fn what_is_laid_over_wins_and_is_known() {
        let mut layers = Layers::default();
        let Value::Object(tree) =
            json!({"listen": {"host": "::1", "port": 1}, "servers": null, "limits": [1]})
        else {
            return;
        };
        layers.merge(tree, &file());
        layers.set("listen.port", json!(2), &flag());
        layers.push("limits", json!(9), &flag());
        assert_eq!(layers.tree(), json!({"listen": {"host": "::1", "port": 2}, "limits": [1, 9]}));
        for (path, origin) in [
            ("listen.port", flag()),
            ("listen.host", file()),
            ("limits[0].x", file()),
            ("limits[1]", flag()),
            ("audit", SettingOrigin::Default),
        ] {
            assert_eq!(layers.origin(path), origin, "{path}");
        }
        layers.remove("listen.port");
        assert_eq!(layers.get("listen"), Some(&json!({"host": "::1"})));
    }
}

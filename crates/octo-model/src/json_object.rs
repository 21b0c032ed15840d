//! The members of a JSON object, in order, with values left as text.

use crate::{Json, JsonError, json_scan};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};

/// An object of which only the first level is parsed, so that unknown members are preserved.
///
/// Keys are UTF-8: slices of validated text, or our own strings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonObject(Vec<(Bytes, Json)>);

impl JsonObject {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses an untrusted object with the strict check.
    pub fn parse(text: impl Into<bytes::Bytes>) -> Result<Self, JsonError> {
        Json::parse(text)?.members()
    }

    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == key.as_bytes()).map(|(_, value)| value)
    }

    /// The string at a key.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Json::to_text)
    }

    /// The string at a key of the object at `key`.
    pub fn inner_text(&self, key: &str, inner: &str) -> Option<String> {
        self.inner(key, inner)?.to_text()
    }

    /// A member of the object under a key; cheaper than the whole object.
    pub fn inner(&self, key: &str, inner: &str) -> Option<Json> {
        self.get(key)?.member(inner)
    }

    /// Adds a member that does not exist yet.
    pub(crate) fn push(&mut self, key: Bytes, value: Json) {
        self.0.push((key, value));
    }

    /// The object at a key; empty if there is none.
    pub fn object(&self, key: &str) -> JsonObject {
        self.get(key).and_then(|value| value.members().ok()).unwrap_or_default()
    }

    /// The elements of the array at a key; empty if there is none.
    pub fn list(&self, key: &str) -> Vec<Json> {
        self.get(key).and_then(|value| value.elements().ok()).unwrap_or_default()
    }

    pub fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.as_str() == "true")
    }

    /// Replaces the value in place, or appends it.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) -> &mut Self {
        let value = value.into();
        match self.0.iter_mut().find(|(name, _)| name == key.as_bytes()) {
            Some(slot) => slot.1 = value,
            None => self.0.push((Bytes::copy_from_slice(key.as_bytes()), value)),
        }
        self
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.set(key, value);
        self
    }

    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(name, _)| name == key.as_bytes())?;
        Some(self.0.remove(at).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (name(key), value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Size of the object as text, unless a key needs escaping.
    pub fn size(&self) -> usize {
        self.0.iter().map(|(key, value)| key.len() + value.bytes().len() + 4).sum::<usize>() + 2
    }

    /// The object as text.
    pub fn to_json(&self) -> Json {
        let mut text = Vec::with_capacity(self.size());
        self.write(&mut text);
        Json::from_parts(text)
    }

    /// The same members in their own buffer, for data that outlives its message.
    #[must_use]
    pub fn detached(&self) -> Self {
        self.to_json().members().unwrap_or_default()
    }

    /// Appends the object as text to a buffer.
    pub fn write(&self, into: &mut Vec<u8>) {
        into.push(b'{');
        for (at, (key, value)) in self.0.iter().enumerate() {
            if at > 0 {
                into.push(b',');
            }
            write_key(key, into);
            into.push(b':');
            into.extend_from_slice(value.bytes());
        }
        into.push(b'}');
    }
}

fn name(key: &Bytes) -> &str {
    std::str::from_utf8(key).unwrap_or_default()
}

fn write_key(key: &Bytes, into: &mut Vec<u8>) {
    if json_scan::needs_no_escape(key) {
        into.push(b'"');
        into.extend_from_slice(key);
        into.push(b'"');
    } else {
        into.extend_from_slice(Json::text(name(key)).bytes());
    }
}

impl FromIterator<(String, Json)> for JsonObject {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(parts: I) -> Self {
        Self(parts.into_iter().map(|(key, value)| (Bytes::from(key), value)).collect())
    }
}

impl From<JsonObject> for Json {
    fn from(members: JsonObject) -> Self {
        members.to_json()
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(name(key), value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer)?.members().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_one_member_and_keeps_the_rest() {
        let mut members = JsonObject::parse(r#"{"a":1,"vendor\n":{"x":[1.50]},"b":"t"}"#).unwrap();
        members.set("a", Json::from("new")).set("z", Json::null());
        assert_eq!(members.remove("b").unwrap().as_str(), r#""t""#);
        assert_eq!(members.to_json().as_str(), r#"{"a":"new","vendor\n":{"x":[1.50]},"z":null}"#);
        assert!(members.object("vendor\n").get("x").is_some() && members.list("a").is_empty());
    }
}

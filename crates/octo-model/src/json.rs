//! Validated JSON text, preserved exactly as received.

use crate::json_scan::ScanControl;
use crate::{JsonObject, json_scan};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Valid JSON text. Cloning shares the bytes; slices of one message share its buffer.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Bytes);

/// Why a text is not accepted as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonError(pub &'static str);

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for JsonError {}

impl Json {
    /// Parses untrusted text with the strict check.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        let text = text.into();
        json_scan::check(&text).map_err(JsonError)?;
        Ok(Self(text))
    }

    /// Serialises a value of a known type.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self::try_of(value).unwrap_or_else(|_| Self::null())
    }

    /// Serialises a value whose serialisation may fail.
    pub fn try_of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(text.into()))
    }

    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// A string value.
    pub fn text(text: &str) -> Self {
        Self::of(text)
    }

    /// Text joined from parts that are valid JSON.
    pub(crate) fn from_parts(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    pub fn array<'a>(parts: impl IntoIterator<Item = &'a Json>) -> Self {
        let mut text = vec![b'['];
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&part.0);
        }
        text.push(b']');
        Self(text.into())
    }

    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("null")
    }

    /// Deserialises the value.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// The string, if it is one.
    pub fn to_text(&self) -> Option<String> {
        match self.0.as_ref() {
            [b'"', plain @ .., b'"'] if json_scan::needs_no_escape(plain) => {
                String::from_utf8(plain.to_vec()).ok()
            }
            [b'"', ..] => self.to().ok(),
            _ => None,
        }
    }

    /// One member of an object; cheaper than [`Json::members`].
    pub fn member(&self, key: &str) -> Option<Json> {
        let mut found = None;
        let scanned = json_scan::members(&self.0, |name, value| {
            if name == key {
                found = Some(self.slice(value));
                return ScanControl::Stop;
            }
            ScanControl::Continue
        });
        scanned.ok().and(found)
    }

    pub fn is_null(&self) -> bool {
        self.0.as_ref() == b"null"
    }

    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// The members of an object, without copying their values.
    pub fn members(&self) -> Result<JsonObject, JsonError> {
        let mut members = JsonObject::new();
        let scanned = json_scan::members(&self.0, |key, value| {
            let key = match key {
                Cow::Borrowed(key) => self.0.slice_ref(key.as_bytes()),
                Cow::Owned(key) => Bytes::from(key),
            };
            members.push(key, self.slice(value));
            ScanControl::Continue
        });
        scanned.map_err(JsonError)?;
        Ok(members)
    }

    /// The elements of an array, without copying.
    pub fn elements(&self) -> Result<Vec<Json>, JsonError> {
        self.elements_up_to(usize::MAX)
    }

    /// The first elements of an array; the others are not scanned.
    pub fn elements_up_to(&self, most: usize) -> Result<Vec<Json>, JsonError> {
        let parts = json_scan::elements(&self.0, most).map_err(JsonError)?;
        Ok(parts.into_iter().map(|part| self.slice(part)).collect())
    }

    fn slice(&self, part: &[u8]) -> Self {
        Self(self.0.slice_ref(part))
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(String::from(Box::<str>::from(raw))).map_err(serde::de::Error::custom)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::of(&value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(Bytes::from_static(if value { b"true" } else { b"false" }))
    }
}

/// Bytes that a text takes inside a JSON string.
pub fn json_len(text: &str) -> usize {
    // Without branches and with narrow sums, so that the compiler vectorizes it.
    let extra = |byte: u8| {
        let is_short = matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c);
        u16::from(is_short) + 5 * u16::from(byte < 0x20 && !is_short)
    };
    let extra_of = |part: &[u8]| usize::from(part.iter().map(|byte| extra(*byte)).sum::<u16>());
    text.len() + text.as_bytes().chunks(1 << 12).map(extra_of).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_text_as_it_came() {
        let text = r#"{"big":12345678901234567890.1234567891, "x":[1 ,2]}"#;
        let json = Json::parse(text).unwrap();
        assert_eq!(json.as_str(), text);
        let members = json.members().unwrap();
        assert_eq!(members.get("big").unwrap().as_str(), "12345678901234567890.1234567891");
        assert_eq!(members.get("x").unwrap().elements().unwrap().len(), 2);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    #[test]
    fn builds_arrays_and_texts() {
        assert_eq!(Json::array([&Json::from("a\""), &Json::null()]).as_str(), r#"["a\"",null]"#);
        assert_eq!(Json::text("é").to_text().as_deref(), Some("é"));
        assert_eq!(Json::null().to_text(), None);
    }

    #[test]
    fn the_length_of_a_text_is_that_of_its_json() {
        let every: String = (0..0x100).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\u{1}\"\\\n", &every, &every.repeat(100)] {
            assert_eq!(json_len(text) + 2, serde_json::to_string(text).unwrap().len());
        }
    }
}

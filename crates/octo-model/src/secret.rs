//! A secret value.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Placeholder for a secret in everything that is printed, logged or serialized.
pub const MASK: &str = "***";

/// A token, password or key, or an encrypted one. `Debug` and `Serialize` write [`MASK`]; there is no `Display`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into_bytes())
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The text itself; empty if it is encrypted. Every use is a place where it could leak.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "writeOnly": true})
    }
}

/// For `#[serde(with = "exposed_secret")]`: writes the text itself, for records that are encrypted before they are stored.
pub mod exposed_secret {
    use super::Secret;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// A [`Secret`] or an `Option` of one.
    pub trait Exposed: Sized {
        fn exposed(&self) -> Option<&str>;
    }

    impl Exposed for Secret {
        fn exposed(&self) -> Option<&str> {
            Some(self.expose())
        }
    }

    impl Exposed for Option<Secret> {
        fn exposed(&self) -> Option<&str> {
            self.as_ref().map(Secret::expose)
        }
    }

    pub fn serialize<T: Exposed, S: Serializer>(secret: &T, serializer: S) -> Result<S::Ok, S::Error> {
        secret.exposed().serialize(serializer)
    }

    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        masked: Secret,
        #[serde(with = "exposed_secret")]
        token: Secret,
        #[serde(with = "exposed_secret")]
        refresh: Option<Secret>,
    }

    #[test]
    fn secrets_are_written_only_where_a_field_says_so() {
        let record = Record { masked: Secret::new("s3cret"), token: Secret::new("t"), refresh: None };
        assert_eq!(format!("{:?}", record.masked), MASK);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(text, r#"{"masked":"***","token":"t","refresh":null}"#);
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!((read.masked, read.token, read.refresh), (Secret::new(MASK), Secret::new("t"), None));
        assert_eq!(Secret::from_bytes(vec![0xff, 0]).expose(), "");
    }
}

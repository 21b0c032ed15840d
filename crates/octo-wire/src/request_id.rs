//! Request ids: a number or a string, never null.

use octo_model::Json;

/// An id as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(Json);

impl Id {
    pub fn from_json(json: Json) -> Option<Self> {
        let valid = matches!(json.bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
        valid.then_some(Self(json))
    }

    pub fn number(number: u64) -> Self {
        Self(Json::of(&number))
    }

    pub fn text(text: &str) -> Self {
        Self(Json::text(text))
    }

    /// The number, if it is one that the hub issued.
    pub fn to_number(&self) -> Option<u64> {
        self.0.as_str().parse().ok()
    }

    pub fn json(&self) -> &Json {
        &self.0
    }
}

impl std::hash::Hash for Id {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.bytes().hash(state);
    }
}

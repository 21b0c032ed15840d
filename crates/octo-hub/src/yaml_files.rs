//! The operator's YAML files: parsed strictly, with problems reported by file and line.

use octo_grants::config_dirs::ConfigFile;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, de};
use std::fmt;
use std::marker::PhantomData;

/// A problem in a file, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    pub line: Option<u64>,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Parses a file. One with nothing but comments counts as empty.
pub fn parse_yaml<T: DeserializeOwned + Default>(file: &str, text: &str) -> Result<T, Problem> {
    if text.lines().all(|line| line.trim_start().starts_with('#') || matches!(line.trim(), "" | "---")) {
        return Ok(T::default());
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
        let what = error.to_string();
        // The location is stored separately from the message.
        let what = what.lines().next().and_then(|line| line.split(" at line ").next()).unwrap_or_default();
        let what = match what.trim_end_matches('.') {
            what if what.starts_with("budget breached") => "it is nested too deeply or too large".to_owned(),
            what => what.to_owned(),
        };
        Problem { file: file.to_owned(), line, what }
    })
}

/// Returns whether a file of a directory is read here: JSON without `prompts` or `tools` belongs to another
/// program.
pub(crate) fn is_prompt_or_tool_file(leaf: &ConfigFile) -> bool {
    let (true, Ok(text)) = (leaf.path.extension().is_some_and(|end| end == "json"), &leaf.content) else {
        return true;
    };
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) => value.get("prompts").is_some() || value.get("tools").is_some(),
        Err(_) => true,
    }
}

/// A mapping in source order.
#[derive(Debug, Clone)]
pub(crate) struct OrderedMap<T>(pub Vec<(String, T)>);

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = OrderedMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(OrderedMap::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all: Vec<(String, T)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if all.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format!("duplicate key `{name}`")));
                    }
                    all.push((name, value));
                }
                Ok(OrderedMap(all))
            }
        }
        deserializer.deserialize_any(Entries(PhantomData))
    }
}

/// A plain scalar as text: `5` and `true` need no quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalarText(pub String);

impl<'de> Deserialize<'de> for ScalarText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            other @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_)) => {
                Ok(Self(other.to_string()))
            }
            _ => Err(D::Error::custom("expected a string, a number or a boolean")),
        }
    }
}

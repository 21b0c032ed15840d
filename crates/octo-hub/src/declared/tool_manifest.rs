//! Declared tools as written in YAML.

use crate::yaml_files::{OrderedMap, ScalarText};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Number, Value};
use serde_saphyr::Spanned;
use std::fmt;

/// One file. It may also contain prompts, which are read elsewhere.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct ManifestFile {
    pub tools: OrderedMap<Spanned<ToolManifest>>,
    #[serde(rename = "prompts")]
    _prompts: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolManifest {
    #[serde(default)]
    pub title: Option<String>,
    pub description: String,
    /// Effect of the tool; destructive by default.
    #[serde(default)]
    pub effect: EffectWord,
    /// Whether repeating a call has no further effect.
    #[serde(default)]
    pub idempotent: Option<bool>,
    #[serde(default = "half_a_minute")]
    pub timeout_seconds: u64,
    #[serde(default)]
    pub output: Output,
    #[serde(default, alias = "args", alias = "arguments")]
    pub parameters: OrderedMap<Parameter>,
    #[serde(default)]
    pub command: Option<Command>,
    #[serde(default)]
    pub request: Option<Request>,
    /// A command in one string, with `<<name>>` for each value.
    #[serde(default)]
    pub execution: Option<Execution>,
}

fn half_a_minute() -> u64 {
    30
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectWord {
    Reads,
    Writes,
    #[default]
    Destroys,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    /// A list of strings.
    Array,
    /// A file or directory of the workspace.
    Path,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    #[serde(default, rename = "type")]
    pub kind: Type,
    pub description: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub default: Option<Value>,
    #[serde(default, rename = "enum")]
    pub choices: Vec<Value>,
    /// Of a number, or of the number of items.
    #[serde(default)]
    pub min: Option<Number>,
    #[serde(default)]
    pub max: Option<Number>,
    #[serde(default)]
    pub max_length: Option<u64>,
    /// A regular expression that the whole text must match.
    #[serde(default)]
    pub pattern: Option<String>,
    /// Whether it may start with `-` where a program could parse it as an option.
    #[serde(default)]
    pub dash: bool,
    /// Whether it may contain line breaks and tabs.
    #[serde(default)]
    pub multiline: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    pub command: String,
    #[serde(default)]
    pub network: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub argv: Vec<ArgPart>,
    #[serde(default)]
    pub env: OrderedMap<ScalarText>,
    #[serde(default)]
    pub stdin: Option<String>,
    /// Working directory, relative to the workspace.
    #[serde(default)]
    pub folder: Option<String>,
    #[serde(default)]
    pub network: bool,
    /// Exit codes that count as success.
    #[serde(default = "zero")]
    pub ok_exit: Vec<i32>,
}

fn zero() -> Vec<i32> {
    vec![0]
}

/// One argument, several that belong together, or several with a condition.
#[derive(Debug, PartialEq, Eq)]
pub enum ArgPart {
    One(String),
    Group(Vec<String>),
    When { when: String, args: Vec<String> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    when: String,
    args: Vec<ScalarText>,
}

fn scalar_texts(all: Vec<ScalarText>) -> Vec<String> {
    all.into_iter().map(|scalar| scalar.0).collect()
}

impl<'de> Deserialize<'de> for ArgPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgPartVisitor;
        impl<'de> Visitor<'de> for ArgPartVisitor {
            type Value = ArgPart;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an argument, a list of arguments, or {when: …, args: […]}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ArgPart, E> {
                Ok(ArgPart::One(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ArgPart, E> {
                Ok(ArgPart::One(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ArgPart, E> {
                Ok(ArgPart::One(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<ArgPart, E> {
                Err(E::custom(format!("put quotes around {number}")))
            }

            fn visit_bool<E: de::Error>(self, word: bool) -> Result<ArgPart, E> {
                Ok(ArgPart::One(word.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ArgPart, A::Error> {
                let mut all = Vec::new();
                while let Some(next) = list.next_element::<ScalarText>()? {
                    all.push(next);
                }
                if all.is_empty() {
                    return Err(A::Error::custom("the list of arguments is empty"));
                }
                Ok(ArgPart::Group(scalar_texts(all)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ArgPart, A::Error> {
                let when = When::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ArgPart::When { when: when.when, args: scalar_texts(when.args) })
            }
        }
        deserializer.deserialize_any(ArgPartVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    #[serde(default = "get")]
    pub method: String,
    /// Scheme, host and the constant part of the path.
    pub base: String,
    /// The following segments, each filled in and encoded separately.
    #[serde(default)]
    pub path: Vec<ScalarText>,
    #[serde(default)]
    pub query: OrderedMap<ScalarText>,
    #[serde(default)]
    pub headers: OrderedMap<ScalarText>,
    #[serde(default)]
    pub json: Option<Value>,
}

fn get() -> String {
    "GET".to_owned()
}

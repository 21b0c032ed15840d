//! Prompts as written in a playbook.

use crate::yaml_files::{OrderedMap, ScalarText};
use octo_model::JsonObject;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_saphyr::Spanned;
use std::fmt;

/// One file. It may also contain declared tools, which are read elsewhere.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct PromptFile {
    pub prompts: OrderedMap<Spanned<PromptManifest>>,
    #[serde(rename = "tools")]
    _tools: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptManifest {
    #[serde(default)]
    pub title: Option<String>,
    pub description: String,
    /// Search keywords.
    #[serde(default)]
    pub tags: Vec<String>,
    pub template: Spanned<String>,
    #[serde(default)]
    pub arguments: Arguments,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    pub name: String,
    pub description: String,
    pub required: bool,
    pub default: Option<String>,
    /// Accepted values; empty: any.
    pub values: Vec<String>,
    /// Offered as completions; other values are accepted, too.
    pub suggest: Vec<String>,
}

impl Argument {
    /// Accepted values go into the description, since the protocol has no field for them.
    pub(super) fn definition(&self) -> JsonObject {
        let mut description = self.description.clone();
        if !self.values.is_empty() {
            description = format!("{description} One of: {}.", self.values.join(", "));
        }
        if let Some(default) = &self.default {
            description = format!("{description} Default: {default}.");
        }
        JsonObject::new()
            .with("name", self.name.as_str())
            .with("description", description.trim_start())
            .with("required", self.required)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentBody {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    default: Option<ScalarText>,
    #[serde(default)]
    values: Vec<ScalarText>,
    #[serde(default)]
    suggest: Vec<ScalarText>,
}

impl ArgumentBody {
    fn into_argument(self, name: String) -> Argument {
        let texts = |all: Vec<ScalarText>| all.into_iter().map(|scalar| scalar.0).collect();
        Argument {
            name,
            description: self.description,
            required: self.required,
            default: self.default.map(|scalar| scalar.0),
            values: texts(self.values),
            suggest: texts(self.suggest),
        }
    }
}

/// Arguments in order: a mapping by name, or a list with names.
#[derive(Default)]
pub struct Arguments(pub Vec<Argument>);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgumentsVisitor;
        impl<'de> Visitor<'de> for ArgumentsVisitor {
            type Value = Arguments;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("arguments by name, or a list of arguments")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Arguments::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let all = OrderedMap::<ArgumentBody>::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Arguments(all.0.into_iter().map(|(name, body)| body.into_argument(name)).collect()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(mut body) = list.next_element::<ArgumentBody>()? {
                    let name = body.name.take();
                    let name =
                        name.ok_or_else(|| A::Error::custom("an argument of the list has no `name`"))?;
                    all.push(body.into_argument(name));
                }
                Ok(Arguments(all))
            }
        }
        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

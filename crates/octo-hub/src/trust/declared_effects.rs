//! Effects of a server's tools, prompts and resources, as the operator declares them.

use crate::catalogue::name_patterns::glob_set;
use globset::GlobSet;
use octo_model::{Effect, EffectClass, ItemKind, JsonObject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters that make a pattern match more than one name.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// `effects: annotations`, or patterns for each effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum EffectsSetting {
    /// Where the effects come from.
    Source(EffectsSource),
    /// The effects by name.
    Patterns(EffectPatterns),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectsSource {
    /// The server's own annotations: `readOnlyHint`, `destructiveHint`, `idempotentHint` and `openWorldHint`.
    Annotations,
}

/// Patterns of the server's own names of tools and prompts, and of resource URIs. If several lists match, the most
/// dangerous effect applies. What no list matches keeps its effect: `destroys` for an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EffectPatterns {
    /// What only reads.
    pub reads: Vec<String>,
    /// What adds or changes without losing data.
    pub writes: Vec<String>,
    /// What may lose data.
    pub destroys: Vec<String>,
}

impl EffectPatterns {
    /// The lists, most dangerous first.
    fn lists(&self) -> [(EffectClass, &Vec<String>); 3] {
        [
            (EffectClass::Destroys, &self.destroys),
            (EffectClass::Writes, &self.writes),
            (EffectClass::Reads, &self.reads),
        ]
    }
}

/// The declared effects of one server, compiled.
#[derive(Debug, Clone)]
pub enum DeclaredEffects {
    Annotations,
    Patterns(Vec<EffectPattern>),
}

/// One list of patterns.
#[derive(Debug, Clone)]
pub struct EffectPattern {
    class: EffectClass,
    globs: GlobSet,
    /// The patterns as written.
    patterns: Vec<String>,
}

impl DeclaredEffects {
    pub fn new(setting: &EffectsSetting) -> Result<Self, globset::Error> {
        let patterns = match setting {
            EffectsSetting::Source(EffectsSource::Annotations) => return Ok(Self::Annotations),
            EffectsSetting::Patterns(patterns) => patterns,
        };
        let compile = |(class, list): (EffectClass, &Vec<String>)| {
            Ok(EffectPattern { class, globs: glob_set(list)?, patterns: list.clone() })
        };
        Ok(Self::Patterns(patterns.lists().into_iter().map(compile).collect::<Result<_, _>>()?))
    }

    /// The declared effect of an item with this definition.
    pub fn effect(&self, kind: ItemKind, key: &str, members: &JsonObject) -> Option<Effect> {
        match (self, kind) {
            (Self::Annotations, ItemKind::Tool) => {
                Some(Effect::from_annotations(&members.object("annotations")))
            }
            // The protocol only lets them read.
            (Self::Annotations, _) => Some(Effect::of_class(EffectClass::Reads)),
            (Self::Patterns(_), _) => self.matching(kind, key).map(|pattern| Effect::of_class(pattern.class)),
        }
    }

    /// The most dangerous list that matches. A template serves URIs that may match other lists, so it must be listed as it
    /// is written.
    fn matching(&self, kind: ItemKind, key: &str) -> Option<&EffectPattern> {
        let Self::Patterns(lists) = self else { return None };
        let is_listed = |list: &&EffectPattern| match kind {
            ItemKind::Template => list.patterns.iter().any(|pattern| pattern == key),
            _ => list.globs.is_match(key),
        };
        lists.iter().find(is_listed)
    }

    /// Returns whether a pattern, and not its name, makes an item less dangerous than an unknown one.
    pub fn is_covered_by_wildcard(&self, kind: ItemKind, key: &str) -> bool {
        self.matching(kind, key).is_some_and(|list| {
            let is_named = list.patterns.iter().any(|pattern| !pattern.contains(WILDCARDS) && pattern == key);
            list.class < EffectClass::Destroys && !is_named
        })
    }
}

/// Returns the definition with hints that say what the hub assumes. Clients decide by them what to ask about.
pub fn with_hints(kind: ItemKind, members: JsonObject, effect: Effect) -> JsonObject {
    let annotations = members.object("annotations");
    if kind != ItemKind::Tool || Effect::from_annotations(&annotations).class() == effect.class() {
        return members;
    }
    let hints =
        annotations.with("readOnlyHint", effect.read_only).with("destructiveHint", effect.destructive);
    members.with("annotations", hints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Json;
    use serde_json::{Value, json};

    fn effects(setting: Value) -> DeclaredEffects {
        DeclaredEffects::new(&serde_json::from_value(setting).unwrap()).unwrap()
    }

    fn tool(annotations: Value) -> JsonObject {
        Json::from(json!({"name": "x", "annotations": annotations})).members().unwrap()
    }

    #[test]
    fn the_most_dangerous_list_that_matches_applies() {
        let effects =
            effects(json!({"reads": ["list_*", "get_*", "pages://*"], "writes": ["get_or_create", "*_add"],
            "destroys": ["*_all*"]}));
        let claims = tool(json!({"readOnlyHint": true}));
        for (name, class) in [
            ("list_pages", EffectClass::Reads),
            ("pages://1/2", EffectClass::Reads),
            ("get_or_create", EffectClass::Writes),
            ("list_add", EffectClass::Writes),
            ("list_all_add", EffectClass::Destroys),
        ] {
            assert_eq!(effects.effect(ItemKind::Tool, name, &claims).unwrap().class(), class, "{name}");
        }
        for name in ["relist_pages", "LIST_pages", ""] {
            assert_eq!(effects.effect(ItemKind::Tool, name, &claims), None, "{name}");
        }
        let is_covered = |name: &str| effects.is_covered_by_wildcard(ItemKind::Tool, name);
        assert!(is_covered("get_x") && is_covered("a_add"));
        for name in ["get_or_create", "list_all", "other"] {
            assert!(!is_covered(name), "{name}");
        }
    }

    #[test]
    fn a_template_must_be_listed_as_it_is_written() {
        let effects =
            effects(json!({"reads": ["pages://*", "notes://{id}"], "destroys": ["pages://admin/*"]}));
        let class = |template: &str| {
            effects.effect(ItemKind::Template, template, &JsonObject::new()).map(Effect::class)
        };
        assert_eq!(class("pages://{+path}"), None, "it serves pages://admin/keys, too");
        assert_eq!(class("notes://{id}"), Some(EffectClass::Reads));
    }

    #[test]
    fn annotations_are_taken_with_the_defaults_of_the_protocol() {
        let effects = effects(json!("annotations"));
        for (hints, class, idempotent) in [
            (json!({}), EffectClass::Destroys, false),
            (json!({"readOnlyHint": true}), EffectClass::Reads, false),
            (json!({"readOnlyHint": true, "destructiveHint": true}), EffectClass::Reads, false),
            (json!({"destructiveHint": false, "idempotentHint": true}), EffectClass::Writes, true),
            (json!({"readOnlyHint": "true", "destructiveHint": 0}), EffectClass::Destroys, false),
            (json!([true]), EffectClass::Destroys, false),
        ] {
            let effect = effects.effect(ItemKind::Tool, "x", &tool(hints.clone())).unwrap();
            assert_eq!((effect.class(), effect.idempotent), (class, idempotent), "{hints}");
        }
        let members = JsonObject::new();
        let effect = effects.effect(ItemKind::Resource, "x://y", &members).unwrap();
        assert_eq!(effect.class(), EffectClass::Reads);
    }

    #[test]
    fn settings_that_declare_nothing_are_rejected() {
        for text in [r#""hints""#, r#"{"read": []}"#, r#"["list_*"]"#, "true"] {
            assert!(serde_json::from_str::<EffectsSetting>(text).is_err(), "{text}");
        }
        let bad = serde_json::from_value(json!({"reads": ["a[b"]})).unwrap();
        assert!(DeclaredEffects::new(&bad).is_err());
    }

    #[test]
    fn hints_say_what_the_hub_assumes() {
        let shown = |claims: Value, effect: Effect| -> Value {
            with_hints(ItemKind::Tool, tool(claims), effect).object("annotations").to_json().to().unwrap()
        };
        let claims = json!({"title": "T", "readOnlyHint": true, "openWorldHint": false});
        assert_eq!(shown(claims.clone(), Effect::reads()), claims);
        assert_eq!(
            shown(claims, Effect::unknown()),
            json!({"title": "T", "readOnlyHint": false, "openWorldHint": false, "destructiveHint": true})
        );
        assert_eq!(
            shown(json!({}), Effect::writes()),
            json!({"readOnlyHint": false, "destructiveHint": false})
        );
    }
}

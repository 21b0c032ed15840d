//! Tool overrides: a profile may change a tool's name and description, and rename, fix, hide or translate its
//! arguments. The listed definition and the translation of arguments are derived from the same settings.

use crate::catalogue::header_params::{HeaderParam, parse_header_params};
use crate::pipeline::compiled_schema::CompiledSchema;
use crate::results::structure_text::structure_text;
use octo_model::{Json, JsonObject, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// One tool in a profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverrideSettings {
    /// The tool, by its name at `/mcp`, or as `server/tool`.
    pub tool: String,
    /// Replaces the tool's own description.
    pub description: Option<String>,
    /// Renamed parameters: the tool's name for each, null for one that is accepted and ignored, or a
    /// translation of its values.
    pub args: BTreeMap<String, Option<Argument>>,
    /// Whether the tool's other parameters are shown under their own names.
    pub others: UnmappedParams,
    /// Parameters of the tool that always have this value; callers do not see them.
    pub fixed: BTreeMap<String, Value>,
    /// Optional parameters of the tool that callers do not see.
    pub hide: Vec<String>,
}

/// What happens to parameters that the settings do not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnmappedParams {
    #[default]
    Show,
    Hide,
}

/// Target of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Argument {
    /// The tool's name for it.
    Name(String),
    /// With translated values.
    Translated(Box<ParamTranslation>),
}

/// A parameter with translated values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParamTranslation {
    /// The tool's name for it. Without one it affects only the reply.
    pub to: Option<String>,
    /// Description for models.
    pub description: Option<String>,
    /// Value if the caller omits it.
    pub default: Option<Value>,
    /// The tool's value for each accepted value.
    pub values: BTreeMap<String, Value>,
    /// The value that is equivalent to omitting it.
    pub omit: Option<Value>,
    /// For a list of objects: the tool's name of each renamed member. Both names are accepted.
    pub fields: BTreeMap<String, String>,
    /// Members of the reply that are emptied, by parameter value.
    pub empties: BTreeMap<String, Vec<String>>,
}

/// A tool as one profile lists it, with its argument translation.
pub struct ToolOverride {
    pub members: JsonObject,
    schema: Value,
    target: String,
    mappings: Vec<ParamMapping>,
    fixed: BTreeMap<String, Value>,
    /// The tool's own parameter names.
    tool_params: BTreeSet<String>,
    /// Whether the profile hides parameters, so that unknown names are refused.
    hides_params: bool,
    checker: OnceLock<Option<CompiledSchema>>,
    mirrored: OnceLock<Vec<HeaderParam>>,
}

/// Mapping of one listed parameter to the tool's parameter.
struct ParamMapping {
    name: String,
    translation: ParamTranslation,
}

impl ToolOverride {
    /// Fails with a message if the settings name parameters that the tool does not have.
    pub fn new(settings: &OverrideSettings, members: &JsonObject, target: String) -> Result<Self, String> {
        let inner: Value =
            members.get("inputSchema").and_then(|json| json.to().ok()).unwrap_or_else(|| json!({}));
        let known = inner.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let moves = param_mappings(settings, &known);
        let named = moves.iter().filter_map(|one| one.translation.to.as_deref());
        let all = named
            .chain(settings.fixed.keys().map(String::as_str))
            .chain(settings.hide.iter().map(String::as_str));
        if let Some(unknown) = all.into_iter().find(|name| !known.contains_key(*name)) {
            return Err(format!("`{}` has no parameter `{unknown}`.", settings.tool));
        }
        let needed = required_names(&inner);
        let given = |name: &str| {
            settings.fixed.contains_key(name)
                || moves.iter().any(|one| one.translation.to.as_deref() == Some(name))
        };
        if let Some(missing) = needed.iter().find(|name| !given(name)) {
            return Err(format!(
                "`{}` requires the parameter `{missing}`: map it or give it a fixed value.",
                settings.tool
            ));
        }
        let closed = settings.others == UnmappedParams::Hide || !settings.hide.is_empty();
        let mut schema = override_schema(&inner, &known, &needed, &moves);
        if closed && let Value::Object(schema) = &mut schema {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        let mut members = members.clone();
        members.set("inputSchema", Json::from(schema.clone()));
        if let Some(description) = &settings.description {
            members.set("description", description.as_str());
        }
        Ok(Self {
            members,
            schema,
            target,
            mappings: moves,
            fixed: settings.fixed.clone(),
            tool_params: known.keys().cloned().collect(),
            hides_params: closed,
            checker: OnceLock::new(),
            mirrored: OnceLock::new(),
        })
    }

    pub fn input(&self) -> Option<&CompiledSchema> {
        self.checker.get_or_init(|| CompiledSchema::new(self.schema.clone(), &self.target)).as_ref()
    }

    /// Returns whether its schema is compiled.
    pub fn is_ready(&self) -> bool {
        self.checker.get().is_some()
    }

    pub fn header_params(&self) -> &[HeaderParam] {
        self.mirrored.get_or_init(|| parse_header_params(&self.members))
    }

    /// Returns the tool's own arguments and the reply members to empty. Refuses hidden parameters, even if
    /// the tool's own schema allows unknown names.
    pub fn tool_arguments(
        &self,
        mut outer: Map<String, Value>,
    ) -> Result<(Map<String, Value>, Vec<String>), ToolError> {
        let (mut inner, mut emptied) = (Map::new(), Vec::new());
        for one in &self.mappings {
            let Some(value) = outer.remove(&one.name).or_else(|| one.translation.default.clone()) else {
                continue;
            };
            let word = value_key(&value);
            emptied.extend(one.translation.empties.get(&word).cloned().unwrap_or_default());
            if let Some(to) =
                one.translation.to.as_ref().filter(|_| one.translation.omit.as_ref() != Some(&value))
            {
                let mut value = one.translation.values.get(&word).cloned().unwrap_or(value);
                rename_fields(&mut value, &one.translation.fields);
                inner.insert(to.clone(), value);
            }
        }
        let hidden = |name: &String| self.hides_params || self.tool_params.contains(name);
        if let Some(name) = outer.keys().find(|name| hidden(name)) {
            let name: String = name.chars().take(100).collect();
            let shown: Vec<&str> = self.mappings.iter().map(|one| one.name.as_str()).collect();
            return Err(ToolError::invalid(format!("Unknown parameter `{name}`."))
                .hint(format!("Its parameters: {}.", shown.join(", "))));
        }
        // Arguments unknown to the schema are passed on if it allows them.
        inner.extend(outer);
        inner.extend(self.fixed.clone());
        Ok((inner, emptied))
    }
}

fn param_mappings(settings: &OverrideSettings, known: &Map<String, Value>) -> Vec<ParamMapping> {
    let mut moves: Vec<ParamMapping> = settings
        .args
        .iter()
        .map(|(outer, argument)| ParamMapping {
            name: outer.clone(),
            translation: match argument {
                None => ParamTranslation::default(),
                Some(Argument::Name(to)) => {
                    ParamTranslation { to: Some(to.clone()), ..ParamTranslation::default() }
                }
                Some(Argument::Translated(how)) => (**how).clone(),
            },
        })
        .collect();
    if settings.others == UnmappedParams::Show {
        let spoken_for = |name: &String| {
            settings.fixed.contains_key(name)
                || settings.hide.contains(name)
                || settings.args.contains_key(name)
                || moves.iter().any(|one| one.translation.to.as_ref() == Some(name))
        };
        let others: Vec<&String> = known.keys().filter(|name| !spoken_for(name)).collect();
        moves.extend(others.into_iter().map(|name| ParamMapping {
            name: name.clone(),
            translation: ParamTranslation { to: Some(name.clone()), ..ParamTranslation::default() },
        }));
    }
    // In the order of the tool's own parameters, which is by importance.
    let place = |one: &ParamMapping| {
        one.translation
            .to
            .as_ref()
            .and_then(|to| known.keys().position(|name| name == to))
            .unwrap_or(usize::MAX)
    };
    moves.sort_by_key(place);
    moves
}

fn required_names(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn override_schema(
    inner: &Value,
    known: &Map<String, Value>,
    needed: &[String],
    moves: &[ParamMapping],
) -> Value {
    let mut properties = Map::new();
    let mut needs = Vec::new();
    for one in moves {
        let own = one.translation.to.as_ref().and_then(|to| known.get(to));
        properties.insert(one.name.clone(), property_schema(&one.translation, own));
        if one.translation.default.is_none()
            && one.translation.to.as_ref().is_some_and(|to| needed.contains(to))
        {
            needs.push(Value::from(one.name.as_str()));
        }
    }
    let mut schema = inner.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.remove("required");
    if !needs.is_empty() {
        schema.insert("required".to_owned(), Value::Array(needs));
    }
    Value::Object(schema)
}

/// Renames members of objects in a list to the tool's names. If both names are present, the tool's wins.
fn rename_fields(value: &mut Value, fields: &BTreeMap<String, String>) {
    let items = value.as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        for (outer, inner) in fields {
            if let Some(member) = item.shift_remove(outer) {
                item.entry(inner.clone()).or_insert(member);
            }
        }
    }
}

/// Accepts the objects of a list with all of the profile's names or with all of the tool's.
fn add_field_aliases(schema: &mut Map<String, Value>, fields: &BTreeMap<String, String>) {
    let Some(item) = schema.get_mut("items").and_then(Value::as_object_mut) else { return };
    let needed = required_names(&Value::Object(item.clone()));
    let Some(known) = item.get("properties").and_then(Value::as_object).cloned() else { return };
    let outer = |inner: &String| fields.iter().find(|(_, to)| *to == inner).map(|(outer, _)| outer.clone());
    let mut properties = Map::new();
    for (name, schema) in &known {
        properties.extend(outer(name).map(|outer| (outer, schema.clone())));
        properties.insert(name.clone(), schema.clone());
    }
    item.insert("properties".to_owned(), Value::Object(properties));
    if needed.iter().any(|name| outer(name).is_some()) {
        let other: Vec<String> =
            needed.iter().map(|name| outer(name).unwrap_or_else(|| name.clone())).collect();
        item.shift_remove("required");
        item.insert("anyOf".to_owned(), json!([{"required": other}, {"required": needed}]));
    }
}

fn property_schema(how: &ParamTranslation, own: Option<&Value>) -> Value {
    let mut schema = match own.and_then(Value::as_object) {
        Some(own) if how.values.is_empty() => own.clone(),
        Some(own) => {
            let mut schema = values_schema(how.values.keys());
            schema.extend(own.get("description").map(|text| ("description".to_owned(), text.clone())));
            schema
        }
        None if how.empties.is_empty() => {
            Map::from_iter([("description".to_owned(), Value::from("Accepted for compatibility; ignored."))])
        }
        None => values_schema(how.empties.keys()),
    };
    if !how.fields.is_empty() {
        add_field_aliases(&mut schema, &how.fields);
    }
    if let Some(description) = &how.description {
        schema.insert("description".to_owned(), description.as_str().into());
    }
    if let Some(default) = &how.default {
        schema.insert("default".to_owned(), default.clone());
    }
    Value::Object(schema)
}

/// `true`, `false` and integers become JSON values of that type.
fn values_schema<'a>(words: impl Iterator<Item = &'a String>) -> Map<String, Value> {
    let words: Vec<&String> = words.collect();
    let schema = if words.iter().all(|word| matches!(word.as_str(), "true" | "false")) {
        json!({ "type": "boolean" })
    } else if words.iter().all(|word| word.parse::<i64>().is_ok()) {
        json!({ "type": "integer", "enum": words.iter().filter_map(|word| word.parse::<i64>().ok()).collect::<Vec<_>>() })
    } else {
        json!({ "type": "string", "enum": words })
    };
    schema.as_object().cloned().unwrap_or_default()
}

fn value_key(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Empties some members of the reply, also in its text. Their types are preserved to match the output schema.
pub fn blank_fields(mut reply: JsonObject, members: &[String], is_native: bool) -> JsonObject {
    if members.is_empty() {
        return reply;
    }
    let Some(mut structure) = reply.get("structuredContent").and_then(|json| json.to::<Value>().ok()) else {
        return reply;
    };
    for name in members {
        match structure.get_mut(name) {
            Some(Value::String(text)) => text.clear(),
            Some(Value::Array(items)) => items.clear(),
            _ => {}
        }
    }
    let structure = Json::from(structure);
    let text = structure_text(&structure, is_native);
    let text = JsonObject::new().with("type", "text").with("text", text.as_str());
    reply.set("content", Json::array([&text.to_json()]));
    reply.set("structuredContent", structure);
    reply
}

//! Coercion of arguments as models send them: a number in quotes, a single item instead of a list, a
//! parameter by its name in other tools. If the schema allows exactly one reading, it is used and noted in
//! the reply. Only applied to arguments that fail validation.

use octo_model::{Json, JsonObject, ToolError};
use serde_json::{Map, Value};
use std::fmt;

/// Parameter names that models know from other tools, and the names here.
const ALIASES: [(&str, &str); 5] = [
    ("file_path", "path"),
    ("old_string", "old_text"),
    ("new_string", "new_text"),
    ("cmd", "command"),
    ("content", "text"),
];
/// Maximum changes listed in the reply; the rest are counted.
const MAX_LISTED_CHANGES: usize = 4;
/// Maximum characters of a change in the reply.
const MAX_CHANGE_CHARS: usize = 90;
/// Longer strings are not parsed as numbers.
const MAX_NUMBER_LEN: usize = 40;
/// The `_meta` member that lists the changes.
const COERCED_META_KEY: &str = "octoprox/coerced";

/// The changes, as phrases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Coercions {
    listed: Vec<String>,
    unlisted_count: usize,
}

impl Coercions {
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub fn append(&mut self, other: Coercions) {
        self.unlisted_count += other.unlisted_count;
        other.listed.into_iter().for_each(|change| self.add(&change));
    }

    fn add(&mut self, change: &str) {
        if self.listed.len() < MAX_LISTED_CHANGES {
            self.listed.push(change.chars().take(MAX_CHANGE_CHARS).collect());
        } else {
            self.unlisted_count += 1;
        }
    }

    fn list(&self) -> Vec<String> {
        let more = (self.unlisted_count > 0).then(|| format!("{} more", self.unlisted_count));
        self.listed.iter().cloned().chain(more).collect()
    }

    /// Adds a note about the changes to the reply: a list in `_meta`, and a content block if a client called. To a program
    /// or a workflow the block would be a part of the data.
    pub fn annotate(&self, mut reply: JsonObject, is_nested: bool) -> JsonObject {
        if self.is_empty() || reply.text("resultType").as_deref() == Some("input_required") {
            return reply;
        }
        let list = self.list();
        if !is_nested {
            let note = format!("[Arguments adjusted: {}.]", list.join("; "));
            let block = JsonObject::new().with("type", "text").with("text", note.as_str()).to_json();
            let blocks: Vec<Json> = reply.list("content").into_iter().chain([block]).collect();
            reply.set("content", Json::array(&blocks));
        }
        let meta = reply.object("_meta").with(COERCED_META_KEY, Json::of(&list));
        reply.with("_meta", meta)
    }
}

/// Changes arguments towards the schema. Parameter names are only translated for native tools.
pub fn coerce(arguments: &mut Value, schema: &Value, native: bool) -> Result<Coercions, ToolError> {
    let mut walk = Coercer { native, changes: Coercions::default() };
    walk.value(arguments, schema, &ValuePath::Root)?;
    Ok(walk.changes)
}

/// Location of a value.
enum ValuePath<'a> {
    Root,
    Member(&'a ValuePath<'a>, &'a str),
    Item(&'a ValuePath<'a>, usize),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Root => Ok(()),
            ValuePath::Member(ValuePath::Root, name) => f.write_str(name),
            ValuePath::Member(up, name) => write!(f, "{up}/{name}"),
            ValuePath::Item(up, number) => write!(f, "{up}/{number}"),
        }
    }
}

struct Coercer {
    native: bool,
    changes: Coercions,
}

impl Coercer {
    fn value(&mut self, value: &mut Value, schema: &Value, at: &ValuePath<'_>) -> Result<(), ToolError> {
        let Some(wanted) = only_type(schema) else { return Ok(()) };
        if !has_type(value, wanted) {
            let Some((read, how)) = convert(value, wanted, schema) else { return Ok(()) };
            *value = read;
            self.changes.add(&format!("`{at}` read as {how}"));
        }
        match value {
            Value::Object(members) => self.object(members, schema, at),
            Value::Array(items) => {
                let Some(of) = schema.get("items") else { return Ok(()) };
                items
                    .iter_mut()
                    .enumerate()
                    .try_for_each(|(number, item)| self.value(item, of, &ValuePath::Item(at, number)))
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        members: &mut Map<String, Value>,
        schema: &Value,
        at: &ValuePath<'_>,
    ) -> Result<(), ToolError> {
        if self.native && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            self.rename(members, schema)?;
            self.fold_into_item(members, schema);
        }
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        for (name, value) in members.iter_mut() {
            if let Some(of) = property(schema, name).or(others) {
                self.value(value, of, &ValuePath::Member(at, name))?;
            }
        }
        Ok(())
    }

    /// Replaces aliases of parameters by their names.
    fn rename(&mut self, members: &mut Map<String, Value>, schema: &Value) -> Result<(), ToolError> {
        for (alias, name) in ALIASES {
            if !members.contains_key(alias) || !is_alias(schema, alias, name) {
                continue;
            }
            if members.contains_key(name) {
                return Err(ToolError::invalid(format!("`{alias}` and `{name}` are the same parameter."))
                    .hint(format!("Use only `{name}`.")));
            }
            if let Some(value) = members.shift_remove(alias) {
                members.insert(name.to_owned(), value);
                self.changes.add(&format!("`{alias}` read as `{name}`"));
            }
        }
        Ok(())
    }

    /// If one required list of objects is missing, moves parameters that belong to an item into it.
    fn fold_into_item(&mut self, members: &mut Map<String, Value>, schema: &Value) {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing = required.filter_map(Value::as_str).filter(|name| !members.contains_key(*name));
        let Ok([list]) = <[&str; 1]>::try_from(missing.collect::<Vec<_>>()) else { return };
        let Some(of) = property(schema, list).filter(|of| only_type(of) == Some("array")) else { return };
        let Some(item) = of.get("items").filter(|item| only_type(item) == Some("object")) else { return };
        let unknown: Vec<String> =
            members.keys().filter(|name| property(schema, name).is_none()).cloned().collect();
        if unknown.is_empty() || !unknown.iter().all(|name| accepts_param(item, name)) {
            return;
        }
        let one: Map<String, Value> =
            unknown.iter().filter_map(|name| members.shift_remove_entry(name)).collect();
        members.insert(list.to_owned(), Value::Array(vec![Value::Object(one)]));
        self.changes.add(&format!("`{}` read as one item of `{list}`", unknown.join("`, `")));
    }
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

fn is_alias(schema: &Value, alias: &str, name: &str) -> bool {
    property(schema, name).is_some() && property(schema, alias).is_none()
}

/// Returns whether the schema has a parameter of this name or of one that it is an alias for.
fn accepts_param(schema: &Value, name: &str) -> bool {
    property(schema, name).is_some()
        || ALIASES.iter().any(|(alias, own)| *alias == name && is_alias(schema, alias, own))
}

/// The single type that the schema accepts, apart from null. Keywords beside `type` can only narrow it.
fn only_type(schema: &Value) -> Option<&str> {
    if schema.get("$ref").is_some() {
        return None;
    }
    match schema.get("type")? {
        Value::String(only) => Some(only),
        Value::Array(types) => {
            let mut types = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            types.next().filter(|_| types.next().is_none())
        }
        _ => None,
    }
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Null => wanted == "null",
        Value::Bool(_) => wanted == "boolean",
        Value::Number(number) => wanted == "number" || (wanted == "integer" && !is_fraction(number)),
        Value::String(_) => wanted == "string",
        Value::Array(_) => wanted == "array",
        Value::Object(_) => wanted == "object",
    }
}

fn is_fraction(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|number| number.fract() != 0.0)
}

/// Converts a value to the wanted type and describes the conversion. `None` if it cannot be converted.
fn convert(value: &Value, wanted: &str, schema: &Value) -> Option<(Value, &'static str)> {
    let text = value.as_str();
    match wanted {
        "integer" => parse_number(text?)
            .filter(|number| number.is_i64() || number.is_u64())
            .map(|it| (it, "an integer")),
        "number" => parse_number(text?).map(|number| (number, "a number")),
        "boolean" => {
            let word = text?;
            let yes = word.eq_ignore_ascii_case("true");
            (yes || word.eq_ignore_ascii_case("false")).then_some((Value::Bool(yes), "a boolean"))
        }
        "object" => parse_json(text?, '{').map(|object| (object, "a JSON object")),
        "array" => match text {
            Some(text) if text.trim_start().starts_with('[') => {
                parse_json(text, '[').map(|array| (array, "a JSON array"))
            }
            _ => {
                let of = only_type(schema.get("items")?)?;
                let fits = !value.is_null() && has_type(value, of);
                fits.then(|| (Value::Array(vec![value.clone()]), "a list of one"))
            }
        },
        _ => None,
    }
}

fn parse_number(text: &str) -> Option<Value> {
    let plain = text.len() <= MAX_NUMBER_LEN && text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let number: Value = plain.then(|| serde_json::from_str(text).ok()).flatten()?;
    // Text with surrounding whitespace is not a number.
    (number.is_number() && !text.ends_with(char::is_whitespace)).then_some(number)
}

/// Parses JSON in a string, with the same strict checks as a message.
fn parse_json(text: &str, first: char) -> Option<Value> {
    if !text.trim_start().starts_with(first) {
        return None;
    }
    Json::parse(text.to_owned()).ok()?.to().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["path"],
            "properties": {
                "path": {"type": "string"},
                "count": {"type": "integer"},
                "share": {"type": "number"},
                "deep": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "options": {"type": "object", "properties": {"count": {"type": "integer"}}},
                "headers": {"type": "object", "additionalProperties": {"type": "integer"}},
                "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "several": {"type": ["string", "integer"]},
                "maybe": {"type": ["integer", "null"]},
                "free": {},
                "other": {"$ref": "#/properties/count", "type": "integer"},
            },
        })
    }

    fn coerced(mut arguments: Value) -> (Value, Vec<String>) {
        let changes = coerce(&mut arguments, &schema(), true).unwrap();
        (arguments, changes.list())
    }

    #[test]
    fn what_has_one_reading_is_read_so() {
        for (given, wanted, change) in [
            (json!({"count": "5"}), json!({"count": 5}), "`count` read as an integer"),
            (json!({"count": "-12"}), json!({"count": -12}), "`count` read as an integer"),
            (json!({"maybe": "5"}), json!({"maybe": 5}), "`maybe` read as an integer"),
            (json!({"share": "0.5"}), json!({"share": 0.5}), "`share` read as a number"),
            (json!({"share": "5"}), json!({"share": 5}), "`share` read as a number"),
            (json!({"deep": "true"}), json!({"deep": true}), "`deep` read as a boolean"),
            (json!({"deep": "False"}), json!({"deep": false}), "`deep` read as a boolean"),
            (json!({"tags": "a"}), json!({"tags": ["a"]}), "`tags` read as a list of one"),
            (json!({"lines": 3}), json!({"lines": [3]}), "`lines` read as a list of one"),
            (json!({"tags": "[\"a\", \"b\"]"}), json!({"tags": ["a", "b"]}), "`tags` read as a JSON array"),
            (json!({"options": "{}"}), json!({"options": {}}), "`options` read as a JSON object"),
            (
                json!({"options": {"count": "5"}}),
                json!({"options": {"count": 5}}),
                "`options/count` read as an integer",
            ),
            (json!({"lines": [1, "2"]}), json!({"lines": [1, 2]}), "`lines/1` read as an integer"),
            (json!({"headers": {"a": "1"}}), json!({"headers": {"a": 1}}), "`headers/a` read as an integer"),
            (json!({"file_path": "a"}), json!({"path": "a"}), "`file_path` read as `path`"),
        ] {
            assert_eq!(coerced(given), (wanted, vec![change.to_owned()]));
        }
        let (both, changes) = coerced(json!({"options": "{\"count\": \"5\"}", "file_path": "x"}));
        assert_eq!(both, json!({"options": {"count": 5}, "path": "x"}));
        assert_eq!(changes.len(), 3);
    }

    #[test]
    fn what_may_mean_something_else_stays() {
        for given in [
            json!({"path": "5"}),
            json!({"any": "5", "several": "5", "free": "5", "other": "5"}),
            json!({"count": "5.0"}),
            json!({"count": "05"}),
            json!({"count": "+5"}),
            json!({"count": " 5"}),
            json!({"count": "5\n"}),
            json!({"count": "1e3"}),
            json!({"count": "99999999999999999999999"}),
            json!({"count": ""}),
            json!({"count": true}),
            json!({"count": [5]}),
            json!({"share": "NaN"}),
            json!({"share": "1e999"}),
            json!({"deep": 1}),
            json!({"deep": "yes"}),
            json!({"tags": 5}),
            json!({"tags": null}),
            json!({"lines": "5"}),
            json!({"tags": "[a"}),
            json!({"options": "{\"count\": 1, \"count\": 2}"}),
            json!({"options": "[]"}),
            json!({"options": ["{}"]}),
            json!({"command": "x"}),
            json!({"cmd": "x"}),
        ] {
            assert_eq!(coerced(given.clone()), (given, Vec::new()));
        }
    }

    #[test]
    fn names_are_translated_only_where_the_tool_is_ours_and_takes_nothing_else() {
        let mut arguments = json!({"file_path": "a", "count": "1"});
        coerce(&mut arguments, &schema(), false).unwrap();
        assert_eq!(arguments, json!({"file_path": "a", "count": 1}));

        let open = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let mut arguments = json!({"file_path": "a"});
        assert!(coerce(&mut arguments, &open, true).unwrap().is_empty());

        let mut both = json!({"file_path": "a", "path": "b"});
        let error = coerce(&mut both, &schema(), true).unwrap_err();
        assert_eq!(error.message, "`file_path` and `path` are the same parameter.");
    }

    #[test]
    fn parameters_of_an_item_become_the_item() {
        let edit = json!({"type": "object", "additionalProperties": false, "properties": {"old_text": {"type": "string"}, "new_text": {"type": "string"}, "replace_all": {"type": "boolean"}}});
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["path", "edits"],
            "properties": {"path": {"type": "string"}, "edits": {"type": "array", "items": edit}},
        });
        let mut arguments =
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": "true"});
        coerce(&mut arguments, &schema, true).unwrap();
        assert_eq!(
            arguments,
            json!({"path": "a", "edits": [{"old_text": "x", "new_text": "y", "replace_all": true}]})
        );
        for given in [json!({"path": "a", "old_text": "x", "odd": 1}), json!({"old_text": "x"})] {
            let mut arguments = given.clone();
            coerce(&mut arguments, &schema, true).unwrap();
            assert_eq!(arguments, given);
        }
    }

    #[test]
    fn a_note_is_short_whatever_was_changed() {
        let many: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
        let mut arguments = json!({"lines": many});
        let changes = coerce(&mut arguments, &schema(), true).unwrap();
        let nested = changes.annotate(JsonObject::new(), true);
        assert!(nested.get("content").is_none() && nested.object("_meta").get(COERCED_META_KEY).is_some());
        let reply = changes.annotate(JsonObject::new().with("content", Json::array([])), false);
        assert!(reply.size() < 1_000, "{}", reply.size());
        assert_eq!(reply.object("_meta").list("octoprox/coerced").len(), 5);
        assert!(reply.to_json().as_str().contains("4996 more"), "{}", reply.to_json());
    }
}

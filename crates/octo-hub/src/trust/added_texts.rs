//! Strings that a changed definition has and the pinned one has not: text that a model has not read before.

use super::definition_diff::add_difference;
use super::{Difference, Severity};
use octo_ports::PinKind;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};

/// Members whose names are chosen by the server.
const NAMED_MEMBERS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired"];
/// Names of members that belong to the protocol or to the schema language.
const MEMBER_NAMES: &[&str] = &[
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "arguments",
    "icons",
    "execution",
    "taskSupport",
    "mimeType",
    "size",
    "required",
    "src",
    "sizes",
    "theme",
    "uri",
    "uriTemplate",
    "resources",
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
    "audience",
    "priority",
    "lastModified",
    "$schema",
    "$id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$defs",
    "$comment",
    "definitions",
    "type",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "dependentSchemas",
    "dependentRequired",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "enum",
    "const",
    "default",
    "examples",
    "example",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contentEncoding",
    "contentMediaType",
];
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const FORMATS: [&str; 21] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "uuid",
    "regex",
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "binary",
];
const MEDIA_TYPES: [&str; 14] = [
    "text/plain",
    "text/markdown",
    "text/csv",
    "text/css",
    "text/xml",
    "text/yaml",
    "application/json",
    "application/xml",
    "application/pdf",
    "application/octet-stream",
    "application/zip",
    "image/png",
    "image/jpeg",
    "image/gif",
];
/// Names and values that say nothing beyond what they name. A change may add one of them.
const PLAIN_WORDS: &[&str] = &[
    "all",
    "any",
    "asc",
    "author",
    "before",
    "branch",
    "category",
    "city",
    "code",
    "color",
    "column",
    "columns",
    "count",
    "country",
    "created",
    "csv",
    "currency",
    "cursor",
    "date",
    "day",
    "depth",
    "desc",
    "direction",
    "draft",
    "email",
    "encoding",
    "end",
    "end_date",
    "extension",
    "field",
    "fields",
    "file",
    "filter",
    "format",
    "gif",
    "group",
    "height",
    "hour",
    "html",
    "id",
    "ids",
    "jpeg",
    "jpg",
    "json",
    "kind",
    "label",
    "labels",
    "language",
    "large",
    "length",
    "limit",
    "locale",
    "markdown",
    "max",
    "max_results",
    "medium",
    "min",
    "minute",
    "month",
    "name",
    "names",
    "new",
    "none",
    "number",
    "offset",
    "old",
    "order",
    "order_by",
    "owner",
    "page",
    "page_size",
    "path",
    "pdf",
    "per_page",
    "png",
    "position",
    "priority",
    "private",
    "project",
    "public",
    "query",
    "range",
    "region",
    "row",
    "rows",
    "second",
    "size",
    "small",
    "sort",
    "sort_by",
    "start",
    "start_date",
    "state",
    "status",
    "svg",
    "tag",
    "tags",
    "text",
    "time",
    "timeout",
    "timezone",
    "title",
    "tone",
    "top",
    "type",
    "unit",
    "units",
    "until",
    "updated",
    "url",
    "user",
    "version",
    "week",
    "width",
    "xml",
    "yaml",
    "year",
    "zone",
];

/// Adds what the new definition says in addition to the old one, unless it is covered by another difference.
pub fn add_new_texts(what: PinKind, old: &Value, new: &Value, out: &mut Vec<Difference>) {
    let mut known = Vec::new();
    collect(old, Place::default(), &mut known);
    let known: HashSet<String> = known.iter().map(|text| spelling(text.text)).collect();
    let mut texts = Vec::new();
    collect(new, Place::default(), &mut texts);
    texts.retain(|text| !known.contains(&spelling(text.text)));
    let mut plain = BTreeSet::new();
    let mut added = Vec::new();
    for text in &texts {
        if PLAIN_WORDS.contains(&text.text) {
            plain.insert(text.text);
        } else {
            added.push(text);
        }
    }
    // Several words can be a sentence.
    if plain.len() > 1 {
        added.extend(texts.iter().filter(|text| plain.contains(text.text)));
    }
    for text in added {
        let at = if text.at.is_empty() { what.as_str() } else { text.at.as_str() };
        let is_covered = |one: &Difference| {
            one.severity >= Severity::Notable && (at.starts_with(&one.path) || one.path == "_meta.ui")
        };
        if !out.iter().any(is_covered) {
            let after = Value::from(text.text);
            add_difference(out, Severity::Notable, at, "new text", None, Some(&after));
        }
    }
}

/// All strings that `new` adds to `old`, in order.
pub fn joined_new_texts(old: &Value, new: &Value) -> String {
    let mut known = Vec::new();
    collect(old, Place::default(), &mut known);
    let known: HashSet<String> = known.iter().map(|text| spelling(text.text)).collect();
    let mut texts = Vec::new();
    collect(new, Place::default(), &mut texts);
    let added = texts.iter().filter(|text| !known.contains(&spelling(text.text))).map(|text| text.text);
    added.collect::<Vec<_>>().join(" ")
}

/// The names and values without white space, which are no sentences by themselves.
pub fn joined_words(definition: &Value) -> String {
    let mut texts = Vec::new();
    collect(definition, Place::default(), &mut texts);
    let words = texts.iter().map(|text| text.text).filter(|text| !text.contains(char::is_whitespace));
    words.collect::<Vec<_>>().join(" ")
}

/// Texts that differ in white space only are the same.
fn spelling(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct PlacedText<'a> {
    at: String,
    text: &'a str,
}

#[derive(Default)]
struct Place<'a> {
    at: String,
    /// Name of the member, also for the elements of its list.
    member: &'a str,
    /// Whether the names of its members are chosen by the server.
    is_named: bool,
}

/// Strings that are neither grammar nor for programs.
fn collect<'a>(value: &'a Value, place: Place<'a>, out: &mut Vec<PlacedText<'a>>) {
    let Place { at, member, is_named } = place;
    match value {
        Value::String(text) if !is_grammar(member, text) && !text.trim().is_empty() => {
            out.push(PlacedText { at, text })
        }
        Value::Array(parts) => {
            for (number, part) in parts.iter().enumerate() {
                collect(part, Place { at: format!("{at}.{number}"), member, is_named: false }, out);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                // Only what it says about apps is pinned, and compared elsewhere.
                if at.is_empty() && name == "_meta" {
                    continue;
                }
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                if is_named || !MEMBER_NAMES.contains(&name.as_str()) {
                    out.push(PlacedText { at: path.clone(), text: name });
                }
                let is_named = !is_named && NAMED_MEMBERS.contains(&name.as_str());
                collect(value, Place { at: path, member: name, is_named }, out);
            }
        }
        _ => {}
    }
}

/// Whether the value of this member is one that the protocol or the schema language defines.
fn is_grammar(member: &str, text: &str) -> bool {
    match member {
        "type" => TYPES.contains(&text),
        "format" => FORMATS.contains(&text),
        "mimeType" | "contentMediaType" => MEDIA_TYPES.contains(&text),
        "taskSupport" => ["optional", "required", "forbidden"].contains(&text),
        "audience" => ["user", "assistant"].contains(&text),
        "contentEncoding" => text == "base64",
        "lastModified" => is_timestamp(text),
        "$schema" => {
            let rest = text.strip_prefix("http://json-schema.org/draft-");
            let rest = rest.or_else(|| text.strip_prefix("https://json-schema.org/draft/"));
            rest.is_some_and(|rest| {
                let version = rest.trim_end_matches('#').trim_end_matches("/schema");
                version.len() <= 10 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            })
        }
        _ => false,
    }
}

fn is_timestamp(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-+:.TZ".contains(&byte);
    text.len() <= 40 && text.bytes().all(is_part)
}

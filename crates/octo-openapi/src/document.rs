//! A loaded document: its text, an index of its parts, and the list of its operations.
//!
//! The text stays text. Parts are parsed on demand and dropped again, so a document needs little more memory than its
//! file, and references are resolved lazily.

pub(crate) mod operation_tool;
pub(crate) mod ref_inliner;
pub(crate) mod request;
pub(crate) mod server_url;

use crate::document::request::percent_encoding;
use crate::operation::{self, ApiOperation};
use crate::operation_search::SearchIndex;
use crate::value_ext::ValueExt;
use crate::{document_text, json_pointer, signature};
use octo_toolkit::{Kind, ToolError};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Maximum operations of one document.
const MAX_OPERATIONS: usize = 20_000;
/// Maximum length of a chain of references.
const MAX_REF_CHAIN: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V2,
    V30,
    V31,
}

/// Summary of an operation for lists.
#[derive(Debug, Clone)]
pub struct OperationSummary {
    /// In upper case.
    pub method: String,
    pub path: String,
    /// `operationId`, or a name generated from method and path.
    pub id: String,
    pub summary: String,
    pub tags: Vec<String>,
    pub deprecated: bool,
    /// `getUser(id: int, fields?: str) -> User`
    pub signature: String,
}

/// An operation, and the values in its path.
pub struct PathMatch {
    pub operation: ApiOperation,
    pub values: Map<String, Value>,
}

/// Document of one API.
pub struct Document {
    text: String,
    pub version: Version,
    pub title: String,
    /// Version of the API, not of the format.
    pub api_version: String,
    part_ranges: HashMap<String, Range<usize>>,
    operations: Vec<OperationSummary>,
    index: SearchIndex,
    /// Operations that could not be parsed, each with the reason.
    pub skipped: Vec<String>,
}

impl Document {
    /// Parses a document of any of the three versions, JSON or YAML. Blocks meanwhile.
    pub fn parse(text: String) -> Result<Self, ToolError> {
        let text = document_text::to_json_text(text)?;
        let parts = parts(&text)?;
        let mut document = Self {
            text,
            version: Version::V30,
            title: String::new(),
            api_version: String::new(),
            part_ranges: parts,
            operations: Vec::new(),
            index: SearchIndex::default(),
            skipped: Vec::new(),
        };
        document.version = document.known_version()?;
        let info = document.value_at(&["info"]).unwrap_or_default();
        document.title = text_of(info.member("title"));
        document.api_version = text_of(info.member("version"));
        document.list()?;
        Ok(document)
    }

    /// The document as JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn operations(&self) -> &[OperationSummary] {
        &self.operations
    }

    /// Operations that match a question, or a part of a path or name; best first.
    pub fn search(&self, question: &str) -> Vec<&OperationSummary> {
        self.index.search(question, &self.operations)
    }

    /// Operation of a path template and a method.
    pub fn operation(&self, path: &str, method: &str) -> Result<ApiOperation, ToolError> {
        let method = method.trim();
        let same = |listed: &&OperationSummary| {
            alike(&listed.path, path) && listed.method.eq_ignore_ascii_case(method)
        };
        let exact = self.operations.iter().filter(|listed| listed.path == path).find(same);
        match exact.or_else(|| self.operations.iter().find(same)) {
            Some(listed) => operation::read(self, &listed.path, &listed.method),
            None => Err(self.unknown(path, method)),
        }
    }

    /// Operation with this id.
    pub fn operation_by_id(&self, id: &str) -> Result<ApiOperation, ToolError> {
        let id = id.trim();
        let same = |listed: &&OperationSummary| listed.id == id;
        let folded = |listed: &&OperationSummary| listed.id.eq_ignore_ascii_case(id);
        match self.operations.iter().find(same).or_else(|| self.operations.iter().find(folded)) {
            Some(listed) => operation::read(self, &listed.path, &listed.method),
            None => {
                let near: Vec<&str> =
                    self.search(id).iter().take(3).map(|listed| listed.id.as_str()).collect();
                let id: String = id.chars().take(200).collect();
                let error = ToolError::not_found(format!("The document has no operation `{id}`."));
                Err(match near.as_slice() {
                    [] => error.hint("Use path and method instead; list them with filter."),
                    near => error.hint(format!("Similar: {}.", near.join(", "))),
                })
            }
        }
    }

    /// Operation whose template matches a path with values. Of several, the one with the fewest parameters.
    pub fn match_filled_path(&self, path: &str, method: &str) -> Result<Option<PathMatch>, ToolError> {
        let same = self.operations.iter().filter(|listed| listed.method.eq_ignore_ascii_case(method.trim()));
        let found = same
            .filter_map(|listed| Some((listed, values_in(&listed.path, path)?)))
            .min_by_key(|(_, values)| values.len());
        let Some((listed, values)) = found else { return Ok(None) };
        let operation = operation::read(self, &listed.path, &listed.method)?;
        Ok(Some(PathMatch { operation, values }))
    }

    /// Parses the value at a location.
    pub(crate) fn value_at<T: AsRef<str>>(&self, tokens: &[T]) -> Option<Value> {
        for known in (1..=tokens.len().min(3)).rev() {
            let (near, far) = tokens.split_at_checked(known)?;
            if let Some(range) = self.part_ranges.get(&json_pointer::join(near)) {
                let part = serde_json::from_str(self.text.get(range.clone())?).ok()?;
                return json_pointer::walk(part, far);
            }
        }
        None
    }

    /// Target of a reference; `None` if it does not resolve or is outside of the document.
    pub(crate) fn ref_target(&self, reference: &str) -> Option<Value> {
        let tokens = json_pointer::tokens(reference)?;
        if tokens.is_empty() { None } else { self.value_at(&tokens) }
    }

    /// The value itself, or what it finally refers to. Siblings of a reference override its target.
    pub(crate) fn resolve(&self, value: &Value) -> Result<Value, String> {
        let mut value = value.clone();
        for _ in 0..MAX_REF_CHAIN {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Ok(value) };
            let Some(mut target) = self.ref_target(reference) else {
                return Err(format!("the reference `{reference}` does not resolve"));
            };
            if let (Some(members), Some(said)) = (target.as_object_mut(), value.as_object()) {
                for (name, value) in said.iter().filter(|(name, _)| *name != "$ref") {
                    members.insert(name.clone(), value.clone());
                }
            }
            value = target;
        }
        Err("references lead in a circle".to_owned())
    }

    fn known_version(&self) -> Result<Version, ToolError> {
        let old = self.value_at(&["swagger"]).map(|version| text_of(&version));
        let new = self.value_at(&["openapi"]).map(|version| text_of(&version));
        match (old.as_deref(), new.as_deref()) {
            (Some(text), _) if text.starts_with('2') => Ok(Version::V2),
            (_, Some(text)) if text.starts_with("3.0") => Ok(Version::V30),
            (_, Some(text)) if text.starts_with('3') => Ok(Version::V31),
            (None, None) => {
                Err(ToolError::invalid("The document does not declare which version of OpenAPI it is.")
                    .hint("It must have `openapi: 3.x` or `swagger: \"2.0\"` at the top."))
            }
            (old, new) => Err(ToolError::invalid(format!(
                "Unsupported OpenAPI version: {}.",
                new.or(old).unwrap_or_default().chars().take(20).collect::<String>()
            ))
            .hint("Versions 2.0, 3.0 and 3.1 are supported.")),
        }
    }

    /// Lists all operations, in the order of the document.
    fn list(&mut self) -> Result<(), ToolError> {
        let mut operations = Vec::new();
        let mut index = SearchIndex::builder();
        let mut left_out = Vec::new();
        for path in self.paths() {
            let item =
                self.value_at(&["paths", path.as_str()]).ok_or_else(|| "it is nested too deep".to_owned());
            let item = match item.and_then(|item| self.resolve(&item)) {
                Ok(item) => item,
                Err(why) => {
                    left_out.push(format!("{path}: {why}"));
                    continue;
                }
            };
            for method in operation::METHODS.iter().filter(|method| item.get(**method).is_some()) {
                if operations.len() >= MAX_OPERATIONS {
                    return Err(ToolError::new(Kind::TooLarge, "The document has over 20,000 operations.")
                        .hint("Load the part that you need as a separate document."));
                }
                match operation::parse(self, &path, method, &item) {
                    Ok(operation) => {
                        let listed = signature::summarize(&operation);
                        index.add(&listed, &operation);
                        operations.push(listed);
                    }
                    Err(why) => left_out.push(format!("{} {path}: {why}", method.to_uppercase())),
                }
            }
        }
        self.operations = operations;
        self.index = index.finish();
        self.skipped = left_out;
        Ok(())
    }

    fn paths(&self) -> Vec<String> {
        let under = self.part_ranges.iter().filter_map(|(name, range)| {
            let path = name.strip_prefix("/paths/")?.replace("~1", "/").replace("~0", "~");
            path.starts_with('/').then_some((range.start, path))
        });
        let mut paths: Vec<(usize, String)> = under.collect();
        paths.sort_unstable();
        paths.into_iter().map(|(_, path)| path).collect()
    }

    fn unknown(&self, path: &str, method: &str) -> ToolError {
        let here = self.operations.iter().filter(|listed| alike(&listed.path, path));
        let methods: Vec<&str> = here.map(|listed| listed.method.as_str()).collect();
        let path: String = path.chars().take(200).collect();
        if !methods.is_empty() {
            let method: String = method.chars().take(20).collect();
            return ToolError::not_found(format!("`{path}` has no operation {method}."))
                .hint(format!("Supported: {}.", methods.join(", ")));
        }
        let near = self.search(&path);
        let near: Vec<String> =
            near.iter().take(3).map(|listed| format!("{} {}", listed.method, listed.path)).collect();
        let error = ToolError::not_found(format!("The document has no path `{path}`."));
        match near.as_slice() {
            [] => error
                .hint("Use the path as written in the document, such as /users/{id}; list them with filter."),
            near => error.hint(format!(
                "Use the path as written in the document, with its {{names}}. Similar: {}.",
                near.join(", ")
            )),
        }
    }
}

/// Values of a path at the parameters of a template; `None` if it does not match.
fn values_in(template: &str, path: &str) -> Option<Map<String, Value>> {
    let path = path.trim().trim_matches('/');
    if path.contains(['?', '#', '{']) {
        return None;
    }
    let mut values = Map::new();
    let (mut known, mut given) = (template.trim_matches('/').split('/'), path.split('/'));
    loop {
        match (known.next(), given.next()) {
            (None, None) => return (!values.is_empty()).then_some(values),
            (Some(known), Some(given)) if known == given => {}
            (Some(known), Some(given)) => {
                let (before, rest) = known.split_once('{')?;
                let (name, after) = rest.split_once('}')?;
                let value = given.strip_prefix(before)?.strip_suffix(after)?;
                if value.is_empty() || after.contains('{') {
                    return None;
                }
                values.insert(name.to_owned(), Value::from(percent_encoding::decode(value)));
            }
            _ => return None,
        }
    }
}

/// Whether templates are equal, ignoring trailing slashes and parameter names.
fn alike(known: &str, given: &str) -> bool {
    let parts =
        |path: &str| -> Vec<String> {
            let parts = path.trim().trim_matches('/').split('/');
            parts
                .map(|part| {
                    if part.starts_with('{') && part.ends_with('}') {
                        "{}".to_owned()
                    } else {
                        part.to_owned()
                    }
                })
                .collect()
        };
    known == given || parts(known) == parts(given)
}

/// Text, or a number that YAML has parsed from it.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

type RawObject<'a> = BTreeMap<String, &'a RawValue>;

/// Positions of the parts that are looked up by name.
fn parts(text: &str) -> Result<HashMap<String, Range<usize>>, ToolError> {
    let root: RawObject = serde_json::from_str(text).map_err(|error| {
        ToolError::invalid(format!("The document is not valid JSON: {error}."))
            .hint("Fix it at that position.")
    })?;
    let mut parts = HashMap::new();
    for (name, raw) in &root {
        note(&mut parts, text, &[name], raw);
        let levels = match name.as_str() {
            "components" => 2,
            "paths" | "definitions" | "parameters" | "responses" | "securityDefinitions" | "x-external" => 1,
            _ => 0,
        };
        if levels > 0 {
            index_members(&mut parts, text, &[name], raw, levels);
        }
    }
    Ok(parts)
}

fn index_members(
    parts: &mut HashMap<String, Range<usize>>,
    text: &str,
    above: &[&str],
    raw: &RawValue,
    levels: usize,
) {
    let Ok(members) = serde_json::from_str::<RawObject>(raw.get()) else { return };
    for (name, raw) in &members {
        let mut tokens = above.to_vec();
        tokens.push(name);
        note(parts, text, &tokens, raw);
        if levels > 1 {
            index_members(parts, text, &tokens, raw, levels - 1);
        }
    }
}

/// A raw value is a slice of the text, so its address gives its position.
fn note(parts: &mut HashMap<String, Range<usize>>, text: &str, tokens: &[&str], raw: &RawValue) {
    let part = raw.get();
    if let Some(start) = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize) {
        parts.insert(json_pointer::join(tokens), start..start + part.len());
    }
}

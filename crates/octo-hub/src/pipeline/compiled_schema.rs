//! Untrusted JSON schemas, compiled within limits and applied with a metered budget.
//!
//! Three things make a schema expensive: backtracking patterns, references that repeat the same work at every
//! level of the value, and infinite references. Patterns run on the linear engine; one that it does not
//! support is not enforced. Each subschema is charged for what it reads, and a check that exceeds its budget
//! is aborted. A schema whose references could exhaust the stack is not compiled. Whatever is not enforced
//! here is left to the server, which validates its own arguments.

use jsonschema::{Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of JSON values in a schema.
const MAX_NODES: usize = 50_000;
const MAX_SUBSCHEMAS: usize = 5_000;
/// Maximum nesting of subschemas, and maximum number of subschemas in a recursive schema.
const MAX_SCHEMA_DEPTH: usize = 512;
/// Maximum chain of subschemas in a recursive schema that apply to the same value.
const MAX_IN_PLACE_CHAIN: usize = 8;
const MAX_PATTERNS: usize = 256;
/// Bytes of a compiled pattern, and the worst-case cost per byte of text.
const PATTERN_SIZES: [(usize, u64); 2] = [(8 << 10, 4), (64 << 10, 32)];
/// About a tenth of a second.
const FULL_BUDGET: u64 = 5_000_000;
/// About a millisecond, for checks on the runtime's threads.
const INLINE_BUDGET: u64 = 50_000;
/// For error messages.
const REPORT_BUDGET: u64 = 20_000;

/// Keyword that charges the budget. A schema cannot contain it, because it is set on every subschema.
const METER_KEYWORD: &str = "octoprox:meter";

/// A schema and its compiled form.
pub struct CompiledSchema {
    pub schema: Value,
    validator: Validator,
    /// Whether an exceeded budget was logged.
    reported: AtomicBool,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    Valid,
    Invalid,
    /// The budget was exceeded.
    Unchecked,
}

impl CompiledSchema {
    /// `None` if the schema is invalid or exceeds the limits; the reason is logged once.
    pub fn new(schema: Value, of: &str) -> Option<Self> {
        match compile(&schema) {
            Ok((validator, dropped)) => {
                for pattern in dropped {
                    tracing::warn!(target: "upstream", of, %pattern, "schema pattern not enforced");
                }
                Some(Self { schema, validator, reported: AtomicBool::new(false) })
            }
            Err(why) => {
                tracing::warn!(target: "upstream", of, %why, "schema not enforced");
                None
            }
        }
    }

    /// Checks a small value on the calling thread.
    pub fn check_inline(&self, value: &Value) -> Validity {
        self.check_within(INLINE_BUDGET, value)
    }

    /// Checks a value of the tool `of` on a blocking thread.
    pub fn check(&self, value: &Value, of: impl FnOnce() -> String) -> Validity {
        let verdict = self.check_within(FULL_BUDGET, value);
        if verdict == Validity::Unchecked && !self.reported.swap(true, Ordering::Relaxed) {
            let of = of();
            tracing::warn!(target: "upstream", of, "value not checked: validation budget exceeded");
        }
        verdict
    }

    fn check_within(&self, budget: u64, value: &Value) -> Validity {
        match with_budget(budget, || self.validator.is_valid(value)) {
            Some(true) => Validity::Valid,
            Some(false) => Validity::Invalid,
            None => Validity::Unchecked,
        }
    }

    /// The first errors as messages; empty if finding them costs too much.
    pub fn errors(&self, value: &Value, tell: impl Fn(ValidationError<'_>) -> String) -> Vec<String> {
        with_budget(REPORT_BUDGET, || self.validator.iter_errors(value).take(3).map(&tell).collect())
            .unwrap_or_default()
    }
}

/// Returns a validator and the patterns that it does not enforce.
fn compile(schema: &Value) -> Result<(Validator, Vec<String>), String> {
    let survey = SchemaSurvey::of(schema)?;
    if let Some(pattern) = survey.required_pattern() {
        return Err(format!("it depends on the unsupported pattern {}", truncate(pattern)));
    }
    let mut metered = schema.clone();
    let mut dropped = Vec::new();
    for (pointer, subschema) in &survey.subschemas {
        if let Some(Value::Object(members)) = metered.pointer_mut(pointer) {
            drop_pattern(members, subschema, &mut dropped);
            if subschema.weight > 0 {
                members.insert(METER_KEYWORD.to_owned(), subschema.weight.into());
            } else {
                members.remove(METER_KEYWORD);
            }
        }
    }
    let options = options(PATTERN_SIZES.map(|(size, _)| size).into_iter().max().unwrap_or_default());
    let validator = options.build(&metered).map_err(|error| truncate(&error.to_string()))?;
    Ok((validator, dropped))
}

fn options(pattern_size: usize) -> jsonschema::ValidationOptions<'static> {
    let patterns = PatternOptions::regex().size_limit(pattern_size).dfa_size_limit(4 * pattern_size);
    jsonschema::options()
        .with_pattern_options(patterns)
        // Some formats compile or resolve what a caller sends.
        .should_validate_formats(false)
        .with_keyword(METER_KEYWORD, |parent, weight, _| Ok(Box::new(Meter::new(parent, weight))))
}

/// Keywords under which an omitted check could turn a match into a mismatch.
const NON_MONOTONE_KEYWORDS: [&str; 6] =
    ["not", "oneOf", "if", "contains", "unevaluatedItems", "unevaluatedProperties"];

/// Removes unsupported patterns.
fn drop_pattern(members: &mut Map<String, Value>, subschema: &Subschema, dropped: &mut Vec<String>) {
    for pattern in subschema.patterns.iter().filter(|pattern| pattern.cost.is_none()) {
        dropped.push(truncate(&pattern.text));
        members.remove("pattern");
    }
}

fn truncate(text: &str) -> String {
    text.chars().take(200).collect()
}

thread_local! {
    /// Remaining budget of the check on this thread.
    static BUDGET_LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Unwind payload of an exceeded budget: there is no other way out of the validator's recursion.
struct BudgetExhausted;

fn with_budget<T>(budget: u64, check: impl FnOnce() -> T) -> Option<T> {
    BUDGET_LEFT.set(budget);
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<BudgetExhausted>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

fn charge(cost: u64) {
    match BUDGET_LEFT.get().checked_sub(cost) {
        Some(left) => BUDGET_LEFT.set(left),
        None => {
            BUDGET_LEFT.set(0);
            resume_unwind(Box::new(BudgetExhausted) as Box<dyn Any + Send>);
        }
    }
}

/// Charges for the application of one subschema to one value.
struct Meter {
    weight: u64,
    per_byte: u64,
    /// Whether the value is compared or hashed as a whole.
    reads_whole_value: bool,
}

impl Meter {
    fn new(parent: &Map<String, Value>, weight: &Value) -> Self {
        let weight = weight.as_u64().unwrap_or(1);
        let whole = ["uniqueItems", "enum", "const"].iter().any(|keyword| parent.contains_key(*keyword));
        let per_byte = patterns(parent).filter_map(|(text, _)| pattern_cost(text)).sum();
        Self { weight, per_byte, reads_whole_value: whole }
    }

    fn charge(&self, value: &Value) {
        let size = match value {
            _ if self.reads_whole_value => value_cost(value),
            Value::String(text) => text.len() as u64 / 16 + text.len() as u64 * self.per_byte,
            Value::Array(items) => items.len() as u64,
            Value::Object(members) if self.per_byte == 0 => members.len() as u64,
            Value::Object(members) => {
                members.keys().map(|key| 1 + key.len() as u64 * self.per_byte).sum::<u64>()
            }
            _ => 0,
        };
        charge(self.weight.saturating_add(size));
    }
}

/// Approximate cost of traversing a value.
fn value_cost(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 8,
        Value::Array(items) => 1 + items.iter().map(value_cost).sum::<u64>() * 2,
        Value::Object(members) => {
            1 + members.iter().map(|(key, value)| key.len() as u64 / 8 + 2 * value_cost(value)).sum::<u64>()
        }
        _ => 1,
    }
}

impl<'i> Keyword<'i> for Meter {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.charge(instance);
        Ok(())
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.charge(instance);
        true
    }
}

/// Patterns of the subschema itself, and whether each applies to member names.
fn patterns(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, bool)> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(Map::keys).map(|name| (name.as_str(), true));
    own.map(|text| (text, false)).into_iter().chain(names)
}

/// Cost of a pattern per byte; `None` if the linear engine does not support it or it is too large.
fn pattern_cost(pattern: &str) -> Option<u64> {
    let schema = Value::Object(Map::from_iter([("pattern".to_owned(), pattern.into())]));
    PATTERN_SIZES.into_iter().find(|(size, _)| options(*size).build(&schema).is_ok()).map(|(_, cost)| cost)
}

struct SchemaPattern {
    text: String,
    matches_names: bool,
    cost: Option<u64>,
}

struct Subschema {
    /// Zero if it only looks at the type of a value or at a number.
    weight: u64,
    patterns: Vec<SchemaPattern>,
}

/// Structure of a schema.
struct SchemaSurvey {
    subschemas: Vec<(String, Subschema)>,
    is_monotone: bool,
}

/// Keywords with one schema, with a list of schemas, and with named schemas, and those of them that apply to
/// the same value as the parent schema.
const SINGLE_SCHEMA_KEYWORDS: [&str; 13] = [
    "additionalProperties",
    "additionalItems",
    "contains",
    "contentSchema",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "extends",
];
const SCHEMA_LIST_KEYWORDS: [&str; 5] = ["items", "prefixItems", "allOf", "anyOf", "oneOf"];
const SCHEMA_MAP_KEYWORDS: [&str; 6] =
    ["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"];
const IN_PLACE_KEYWORDS: [&str; 10] =
    ["not", "if", "then", "else", "extends", "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"];
/// Not applied where they appear.
const DEFINITION_KEYWORDS: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose cost does not depend on the value.
const CONSTANT_COST_KEYWORDS: [&str; 14] = [
    "type",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "deprecated",
    "readOnly",
    "writeOnly",
];
/// References that cannot be resolved statically.
const UNSUPPORTED_REF_KEYWORDS: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

impl SchemaSurvey {
    /// Fails with the reason if the schema exceeds the limits.
    fn of(root: &Value) -> Result<Self, String> {
        let mut nodes = 0;
        count_nodes(root, &mut nodes);
        if nodes > MAX_NODES {
            return Err(format!("it has more than {MAX_NODES} values"));
        }
        let mut known: HashMap<String, usize> = HashMap::from([(String::new(), 0)]);
        let mut pointers = vec![String::new()];
        let mut edges: Vec<Vec<(usize, bool)>> = Vec::new();
        let mut survey = Self { subschemas: Vec::new(), is_monotone: true };
        let mut patterns = 0;
        while let Some(pointer) = pointers.get(edges.len()).cloned() {
            let mut next = Vec::new();
            if let Some(Value::Object(schema)) = root.pointer(&pointer) {
                if !pointer.is_empty()
                    && ["$id", "id"].iter().any(|id| schema.get(*id).is_some_and(Value::is_string))
                {
                    return Err("a subschema has its own `$id`".to_owned());
                }
                next = child_schemas(schema, &pointer)?;
                let subschema = Subschema::of(schema);
                survey.is_monotone &=
                    !NON_MONOTONE_KEYWORDS.iter().any(|keyword| schema.contains_key(*keyword));
                patterns += subschema.patterns.len();
                survey.subschemas.push((pointer, subschema));
            }
            if patterns > MAX_PATTERNS {
                return Err(format!("it has more than {MAX_PATTERNS} patterns"));
            }
            let numbered = next.into_iter().map(|(pointer, in_place)| {
                let at = *known.entry(pointer.clone()).or_insert_with(|| {
                    pointers.push(pointer);
                    pointers.len() - 1
                });
                (at, in_place)
            });
            edges.push(numbered.collect());
            if edges.len() > MAX_SUBSCHEMAS {
                return Err(format!("it has more than {MAX_SUBSCHEMAS} subschemas"));
            }
        }
        let chain = longest_path(&edges, |in_place| in_place).ok_or("it has an infinite reference")?;
        match longest_path(&edges, |_| true) {
            Some(path) if path <= MAX_SCHEMA_DEPTH => Ok(survey),
            None if edges.len() <= MAX_SCHEMA_DEPTH && chain <= MAX_IN_PLACE_CHAIN => Ok(survey),
            _ => Err("its references are nested too deeply".to_owned()),
        }
    }

    /// An unsupported pattern that cannot be omitted either.
    fn required_pattern(&self) -> Option<&str> {
        let patterns = self.subschemas.iter().flat_map(|(_, subschema)| &subschema.patterns);
        let mut unusable = patterns.filter(|pattern| pattern.cost.is_none());
        unusable
            .find(|pattern| pattern.matches_names || !self.is_monotone)
            .map(|pattern| pattern.text.as_str())
    }
}

impl Subschema {
    fn of(schema: &Map<String, Value>) -> Self {
        let patterns = patterns(schema).map(|(text, names)| SchemaPattern {
            text: text.to_owned(),
            matches_names: names,
            cost: pattern_cost(text),
        });
        let patterns: Vec<SchemaPattern> = patterns.collect();
        let varies = schema.keys().any(|keyword| !CONSTANT_COST_KEYWORDS.contains(&keyword.as_str()));
        let entries = schema.values().map(|value| match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        });
        let weight = if varies { 1 + entries.sum::<usize>() as u64 / 8 } else { 0 };
        Self { weight, patterns }
    }
}

fn count_nodes(value: &Value, nodes: &mut usize) {
    *nodes += 1;
    match value {
        Value::Array(items) => items.iter().for_each(|item| count_nodes(item, nodes)),
        Value::Object(members) => members.values().for_each(|member| count_nodes(member, nodes)),
        _ => {}
    }
}

/// The subschemas of a schema, and whether each applies to the same value.
fn child_schemas(schema: &Map<String, Value>, pointer: &str) -> Result<Vec<(String, bool)>, String> {
    if UNSUPPORTED_REF_KEYWORDS.iter().any(|keyword| schema.contains_key(*keyword)) {
        return Err("it has dynamic references".to_owned());
    }
    let mut parts = Vec::new();
    for (keyword, value) in schema {
        let in_place = IN_PLACE_KEYWORDS.contains(&keyword.as_str());
        match value {
            Value::String(reference) if keyword == "$ref" => parts.push((resolve_ref(reference)?, true)),
            Value::Object(named) if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str()) => {
                // Definitions are only visited for their meters.
                let applied = !DEFINITION_KEYWORDS.contains(&keyword.as_str());
                let names = named.keys().filter(|_| applied);
                parts.extend(
                    names.map(|name| (format!("{pointer}/{keyword}/{}", escape_pointer(name)), in_place)),
                );
            }
            Value::Array(items) if SCHEMA_LIST_KEYWORDS.contains(&keyword.as_str()) => {
                parts.extend((0..items.len()).map(|at| (format!("{pointer}/{keyword}/{at}"), in_place)));
            }
            Value::Object(_) if SINGLE_SCHEMA_KEYWORDS.contains(&keyword.as_str()) => {
                parts.push((format!("{pointer}/{keyword}"), in_place));
            }
            _ => {}
        }
    }
    Ok(parts)
}

fn escape_pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The JSON pointer of a reference within the same document.
fn resolve_ref(reference: &str) -> Result<String, String> {
    let pointer = reference.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let pointer = pointer.ok_or_else(|| format!("it refers to {}", truncate(reference)))?;
    percent_decode(pointer).ok_or_else(|| format!("it refers to {}", truncate(reference)))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            bytes.push(u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Length of the longest path from the root along some edges; `None` if they form a cycle.
fn longest_path(edges: &[Vec<(usize, bool)>], along: impl Fn(bool) -> bool) -> Option<usize> {
    let mut heights: Vec<Option<usize>> = vec![None; edges.len()];
    let mut open = vec![false; edges.len()];
    let mut tallest = 0;
    for start in 0..edges.len() {
        let mut stack = vec![start];
        while let Some(&at) = stack.last() {
            if heights.get(at).copied().flatten().is_some() {
                stack.pop();
                continue;
            }
            *open.get_mut(at)? = true;
            let next =
                || edges.get(at).into_iter().flatten().filter(|(_, kind)| along(*kind)).map(|(to, _)| *to);
            let waiting: Vec<usize> =
                next().filter(|to| heights.get(*to).copied().flatten().is_none()).collect();
            if waiting.is_empty() {
                let height =
                    1 + next().filter_map(|to| heights.get(to).copied().flatten()).max().unwrap_or(0);
                *heights.get_mut(at)? = Some(height);
                *open.get_mut(at)? = false;
                tallest = tallest.max(height);
                stack.pop();
            } else if waiting.iter().any(|to| open.get(*to).copied().unwrap_or(false)) {
                return None;
            } else {
                stack.extend(waiting);
            }
        }
    }
    Some(tallest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_within_the_budget_are_enforced_and_others_are_not() {
        let many =
            |count: usize| Value::from_iter((0..count).map(|n| (format!("p{n}"), json!({"minLength": n}))));
        let patterns =
            |count: usize| Value::from_iter((0..count).map(|n| (format!("p{n}"), json!({"pattern": "a"}))));
        let look = json!({"pattern": "(?=a)b"});
        for (what, schema, enforced) in [
            ("properties", json!({"properties": many(1_000)}), true),
            ("too many properties", json!({"properties": many(6_000)}), false),
            ("too many values", json!({"enum": vec![1; 60_000]}), false),
            ("patterns", json!({"properties": patterns(100)}), true),
            ("too many patterns", json!({"properties": patterns(300)}), false),
            ("a definition", json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "object"}}}), true),
            ("a definition elsewhere", json!({"$ref": "#/x/y", "x": {"y": {"type": "object"}}}), true),
            ("an anchor", json!({"$ref": "#a", "$defs": {"x": {"$anchor": "a"}}}), false),
            ("another document", json!({"$ref": "https://example.com/schema"}), false),
            ("a dynamic reference", json!({"$dynamicRef": "#a"}), false),
            ("an inner address", json!({"properties": {"a": {"$id": "x:y", "$ref": "#"}}}), false),
            ("a property called $ref", json!({"properties": {"$ref": {"type": "string"}}}), true),
            ("a circle", json!({"anyOf": [{"type": "string"}, {"allOf": [{"$ref": "#"}]}]}), false),
            ("a tree", json!({"additionalProperties": {"$ref": "#"}}), true),
            ("a pattern left out", json!({"properties": {"a": look}}), true),
            ("one that cannot be", json!({"not": {"properties": {"a": look}}}), false),
            ("one of names", json!({"patternProperties": {"(?=a)b": {}}}), false),
            ("nothing", json!(true), true),
            ("no schema", json!(3), false),
        ] {
            assert_eq!(CompiledSchema::new(schema, "test").is_some(), enforced, "{what}");
        }
    }

    fn charge_forever() {
        loop {
            charge(1);
        }
    }

    #[test]
    fn a_check_ends_with_its_budget_and_the_next_one_has_its_own() {
        assert_eq!(with_budget(1_000, charge_forever), None);
        assert_eq!(with_budget(1_000, || charge(1_000)), Some(()));
        assert_eq!(with_budget(1_000, || charge(1_001)), None);
    }

    #[test]
    fn the_longest_way_is_found_and_circles_are_seen() {
        let edges = |list: &[&[usize]]| -> Vec<Vec<(usize, bool)>> {
            list.iter().map(|to| to.iter().map(|to| (*to, true)).collect()).collect()
        };
        for (graph, wanted) in [
            (edges(&[&[]]), Some(1)),
            (edges(&[&[1, 2], &[2], &[3], &[]]), Some(4)),
            (edges(&[&[2, 1], &[], &[1]]), Some(3)),
            (edges(&[&[1], &[2], &[1]]), None),
            (edges(&[&[0]]), None),
            (edges(&[&[1], &[2], &[], &[0]]), Some(4)),
        ] {
            assert_eq!(longest_path(&graph, |_| true), wanted, "{graph:?}");
        }
    }
}

//! What a program can call, as TypeScript declarations for the model.

mod schema_type;

use crate::ToolBinding;
use schema_type::{has_required, schema_type};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Longest first sentence that is shown.
const MAX_SENTENCE_CHARS: usize = 160;
/// Bytes of one type after which parts of it become `unknown`, from the most detailed form to the least.
const TYPE_BUDGETS: [(usize, usize); 4] = [(1_200, 800), (600, 200), (300, 0), (0, 0)];

/// Members of a schema that tell which arguments there are.
const ARGUMENT_KEYS: [&str; 9] = [
    "$ref",
    "properties",
    "required",
    "anyOf",
    "oneOf",
    "allOf",
    "if",
    "patternProperties",
    "additionalProperties",
];

/// A tool as its source describes it.
#[derive(Debug, Clone, Copy)]
pub struct ToolDeclaration<'a> {
    pub binding: &'a ToolBinding,
    pub description: &'a str,
    pub input_schema: &'a Value,
    pub output_schema: Option<&'a Value>,
}

/// Declarations of tools in at most `max_bytes`. What does not fit is shown with fewer details: first results become
/// `unknown`, then arguments; tools at the end are left out and counted.
pub fn declarations(tools: &[ToolDeclaration<'_>], max_bytes: usize) -> String {
    let levels = TYPE_BUDGETS.map(|(input, output)| render(&tools_tree(tools, input, output)));
    if let Some(text) = levels.iter().find(|text| text.len() <= max_bytes) {
        return text.clone();
    }
    // Of the shortest form, as many tools as fit.
    let [.., (input, output)] = TYPE_BUDGETS;
    let shown = |count: usize| {
        let some = render(&tools_tree(tools.get(..count).unwrap_or_default(), input, output));
        format!("{some}// {} more tools\n", tools.len().saturating_sub(count))
    };
    let (mut fits, mut exceeds) = (0, tools.len());
    while fits + 1 < exceeds {
        let middle = usize::midpoint(fits, exceeds);
        if shown(middle).len() <= max_bytes { fits = middle } else { exceeds = middle }
    }
    shown(fits)
}

/// Members of `tools`.
#[derive(Default)]
struct Group<'a> {
    members: BTreeMap<&'a str, Group<'a>>,
    /// Comment and signature, if it is a tool.
    tool: Option<(String, String)>,
}

fn tools_tree<'a>(tools: &[ToolDeclaration<'a>], input: usize, output: usize) -> Group<'a> {
    let mut root = Group::default();
    for tool in tools {
        let mut group = &mut root;
        for part in &tool.binding.path {
            group = group.members.entry(part).or_default();
        }
        group.tool = Some((comment(tool.description), signature(tool, input, output)));
    }
    root
}

fn render(root: &Group<'_>) -> String {
    let mut text = "declare const tools: {\n".to_owned();
    write_members(&mut text, root, 1);
    text.push_str("};\n");
    text
}

/// Paths are short, so the depth is small.
fn write_members(text: &mut String, group: &Group<'_>, depth: usize) {
    let indent = "  ".repeat(depth);
    for (name, member) in &group.members {
        let name = property_name(name);
        if let Some((comment, signature)) = &member.tool {
            if !comment.is_empty() {
                let _ = writeln!(text, "{indent}/** {comment} */");
            }
            let _ = writeln!(text, "{indent}{name}{signature};");
        }
        if !member.members.is_empty() {
            let _ = writeln!(text, "{indent}{name}: {{");
            write_members(text, member, depth + 1);
            let _ = writeln!(text, "{indent}}};");
        }
    }
}

fn signature(tool: &ToolDeclaration<'_>, input: usize, output: usize) -> String {
    let mark = if has_required(tool.input_schema) { "" } else { "?" };
    let arguments = match schema_type(tool.input_schema, input) {
        _ if takes_nothing(tool.input_schema) => String::new(),
        shown if shown == "unknown" => format!("args{mark}: object"),
        shown => format!("args{mark}: {shown}"),
    };
    let result =
        tool.output_schema.map_or_else(|| "unknown".to_owned(), |schema| schema_type(schema, output));
    format!("({arguments}): Promise<{result}>")
}

/// Whether a schema names no arguments in any way.
fn takes_nothing(schema: &Value) -> bool {
    let is_empty = |key: &str| match schema.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::Array(parts)) => parts.is_empty(),
        Some(Value::Object(members)) => members.is_empty() && key != "additionalProperties",
        Some(_) => false,
    };
    ARGUMENT_KEYS.iter().all(|key| is_empty(key))
}

/// The first sentence of a description, which cannot end its comment.
fn comment(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    let sentence = line.get(..end).unwrap_or_default();
    let mut shown: String =
        sentence.chars().filter(|letter| !letter.is_control()).take(MAX_SENTENCE_CHARS).collect();
    if shown.len() < sentence.len() {
        shown.push('…');
    }
    shown.replace("*/", "*\u{200a}/")
}

/// A name as a member of a type: quoted unless it is an identifier.
fn property_name(name: &str) -> String {
    let mut letters = name.chars();
    let is_identifier =
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
            && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$'));
    if is_identifier { name.to_owned() } else { Value::from(name).to_string() }
}

#[cfg(test)]
mod tests;

//! File formats of memories: one JSON document, and the lines of `@modelcontextprotocol/server-memory`.

use crate::input_validation::Sanitizer;
use octo_toolkit::memory::{Fact, FactOrigin, KnownEntity, Link, NewEntity};
use octo_toolkit::{Kind, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Auto,
    Json,
    Jsonl,
}

pub fn default_format() -> Format {
    Format::Auto
}

/// Content of a file, and what could not be parsed.
#[derive(Default)]
pub struct Graph {
    pub entities: Vec<NewEntity>,
    pub links: Vec<Link>,
    pub issues: Vec<ParseIssue>,
    /// Number of hidden characters removed.
    pub removed_chars: usize,
}

pub struct ParseIssue {
    /// Line, or number of the entity or relation in a document, counted from 1.
    pub position: u64,
    pub reason: String,
}

/// Parses a file; marks everything in it with `source`.
pub fn read(text: &str, format: Format, source: &str) -> Result<Graph, ToolError> {
    let text = text.trim_start_matches('\u{feff}');
    let document = match format {
        Format::Jsonl => None,
        Format::Json | Format::Auto => serde_json::from_str::<Value>(text).ok().filter(is_document),
    };
    let mut reader =
        Reader { graph: Graph::default(), sanitizer: Sanitizer::default(), source: source.to_owned() };
    match document {
        Some(document) => reader.read_document(&document),
        None if format == Format::Json => {
            return Err(ToolError::invalid("The file is not a JSON document with entities and relations.")
                .hint("Use format jsonl if every line is a separate record."));
        }
        None => reader.read_lines(text),
    }
    let mut graph = reader.graph;
    graph.removed_chars = reader.sanitizer.removed_chars;
    Ok(graph)
}

fn is_document(value: &Value) -> bool {
    value.get("entities").is_some_and(|entities| entities.is_object() || entities.is_array())
}

struct Reader {
    graph: Graph,
    sanitizer: Sanitizer,
    source: String,
}

impl Reader {
    fn read_document(&mut self, document: &Value) {
        let mut at = 0;
        match document.get("entities") {
            Some(Value::Object(entities)) => {
                for (name, entity) in entities {
                    at += 1;
                    self.read_entity(at, Some(name), entity);
                }
            }
            Some(Value::Array(entities)) => {
                for entity in entities {
                    at += 1;
                    self.read_entity(at, None, entity);
                }
            }
            _ => {}
        }
        for relation in document.get("relations").and_then(Value::as_array).into_iter().flatten() {
            at += 1;
            self.read_relation(at, relation);
        }
    }

    fn read_lines(&mut self, text: &str) {
        for (line, at) in text.lines().zip(1..) {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str::<Value>(line) {
                Ok(value) => match value.get("type").and_then(Value::as_str) {
                    Some("entity") => self.read_entity(at, None, &value),
                    Some("relation") => self.read_relation(at, &value),
                    _ => self.push_issue(at, "is neither an entity nor a relation"),
                },
                Err(_) => self.push_issue(at, "is not JSON"),
            }
        }
    }

    fn push_issue(&mut self, at: u64, why: impl Into<String>) {
        self.graph.issues.push(ParseIssue { position: at, reason: why.into() });
    }

    fn read_entity(&mut self, at: u64, key: Option<&str>, value: &Value) {
        let Some(name) = first_str(value, &["name"]).or(key) else {
            return self.push_issue(at, "has no name");
        };
        let name = match self.sanitizer.name(name) {
            Ok(name) => name,
            Err(error) => return self.push_issue(at, error.message),
        };
        // In lines, `type` is the kind of record.
        let kinds: &[&str] = if value.get("entityType").is_some() { &["entityType"] } else { &["type"] };
        let kind = first_str(value, kinds).filter(|kind| key.is_some() || *kind != "entity");
        let kind = kind.and_then(|kind| self.sanitizer.kind(kind).ok());
        let mut facts = Vec::new();
        for observation in value.get("observations").and_then(Value::as_array).into_iter().flatten() {
            match observation.as_str().map(|text| self.sanitizer.fact(text)) {
                Some(Ok(Some(text))) => {
                    facts.push(Fact {
                        text,
                        origin: FactOrigin::Imported,
                        source: Some(self.source.clone()),
                    });
                }
                Some(Ok(None)) => {}
                Some(Err(error)) => self.push_issue(at, error.message),
                None => self.push_issue(at, "has an observation that is not text"),
            }
        }
        self.graph.entities.push(NewEntity { name, kind, facts });
    }

    fn read_relation(&mut self, at: u64, value: &Value) {
        let ends = first_str(value, &["source", "from"]).zip(first_str(value, &["target", "to"]));
        let relation = first_str(value, &["relation", "relationType"]);
        let Some(((source, target), relation)) = ends.zip(relation) else {
            return self.push_issue(at, "has no source, relation or target");
        };
        match self.sanitizer.link(source, relation, target) {
            Ok(link) => self.graph.links.push(link),
            Err(error) => self.push_issue(at, error.message),
        }
    }
}

/// The first of these members that is a string.
fn first_str<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value.get(*name)?.as_str())
}

/// Writes a file incrementally, up to a maximum size.
pub struct GraphWriter {
    buffer: OutputBuffer,
    max_bytes: usize,
    size: usize,
    pub relations: u64,
}

enum OutputBuffer {
    Lines { entities: String, relations: String },
    Document { entities: Map<String, Value>, relations: Vec<Value> },
}

impl GraphWriter {
    pub fn new(lines: bool, max_bytes: usize) -> Self {
        let buffer = match lines {
            true => OutputBuffer::Lines { entities: String::new(), relations: String::new() },
            false => OutputBuffer::Document { entities: Map::new(), relations: Vec::new() },
        };
        Self { buffer, max_bytes, size: 0, relations: 0 }
    }

    pub fn add(&mut self, known: &KnownEntity) -> Result<(), ToolError> {
        let observations: Vec<&str> = known.facts.iter().map(|fact| fact.text.as_str()).collect();
        // The overhead around the texts is small.
        self.size += 200 + known.name.len() + observations.iter().map(|text| text.len() + 8).sum::<usize>();
        self.size += known.links.iter().map(|tie| 100 + tie.other.len()).sum::<usize>();
        if self.size > self.max_bytes {
            let large = format!("The memory does not fit into one file of {} bytes.", self.max_bytes);
            return Err(ToolError::new(Kind::TooLarge, large).hint(
                "Delete entities that are no longer needed, or ask the operator for a copy of the store.",
            ));
        }
        self.relations += known.links.len() as u64;
        match &mut self.buffer {
            OutputBuffer::Lines { entities, relations } => {
                let line = json!({"type": "entity", "name": known.name, "entityType": known.kind, "observations": observations});
                push_line(entities, &line);
                for tie in &known.links {
                    let line = json!({"type": "relation", "from": known.name, "to": tie.other, "relationType": tie.relation});
                    push_line(relations, &line);
                }
            }
            OutputBuffer::Document { entities, relations } => {
                let value = json!({
                    "name": known.name, "type": known.kind, "observations": observations,
                    "created_at": known.created.to_string(), "updated_at": known.updated.to_string(),
                });
                entities.insert(known.name.clone(), value);
                let link = |other: &str, relation: &str| json!({"source": known.name, "relation": relation, "target": other});
                relations.extend(known.links.iter().map(|tie| link(&tie.other, &tie.relation)));
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<String, ToolError> {
        match self.buffer {
            OutputBuffer::Lines { entities, relations } => Ok(entities + &relations),
            OutputBuffer::Document { entities, relations } => {
                let document = json!({"entities": entities, "relations": relations});
                serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(ToolError::internal)
            }
        }
    }
}

fn push_line(text: &mut String, line: &Value) {
    text.push_str(&line.to_string());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"type":"entity","name":"Ada","entityType":"person","observations":["Prefers tea"]}

{"type":"relation","from":"Ada","to":"Octoprox","relationType":"works_on"}
{"type":"entity","name":"Bare","entityType":"entity","observations":[]}
broken
{"type":"other"}
{"type":"entity"}
{"type":"relation","from":"Ada"}"#;

    #[test]
    fn lines_of_the_reference_server_are_read_and_the_broken_ones_told() {
        let graph = read(LINES, Format::Auto, "m.jsonl").unwrap();
        assert_eq!(graph.entities.len(), 2);
        assert_eq!(graph.entities[0].kind.as_deref(), Some("person"));
        assert_eq!(graph.entities[0].facts[0].origin, FactOrigin::Imported);
        assert_eq!(graph.entities[0].facts[0].source.as_deref(), Some("m.jsonl"));
        assert_eq!(graph.links[0].relation, "works_on");
        assert_eq!(graph.issues.iter().map(|trouble| trouble.position).collect::<Vec<_>>(), [5, 6, 7, 8]);
    }

    #[test]
    fn a_document_is_read_with_entities_as_a_map_or_a_list() {
        let map = r#"{"entities": {"Ada": {"type": "entity", "observations": ["a", 1]}}, "relations": [{"source": "Ada", "relation": "knows", "target": "Ada"}]}"#;
        let list = r#"{"entities": [{"name": "Ada", "type": "person", "observations": ["a"]}]}"#;
        let graph = read(map, Format::Auto, "m").unwrap();
        assert_eq!((graph.entities.len(), graph.links.len(), graph.issues.len()), (1, 1, 1));
        assert_eq!(graph.entities[0].kind.as_deref(), Some("entity"));
        let graph = read(list, Format::Json, "m").unwrap();
        assert_eq!(graph.entities[0].kind.as_deref(), Some("person"));
        assert!(read("[]", Format::Json, "m").is_err());
        assert!(read(LINES, Format::Json, "m").is_err());
    }
}

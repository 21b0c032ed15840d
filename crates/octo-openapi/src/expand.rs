//! Schemas with their references replaced by what they lead to, as far as that stays small.

use crate::Document;
use serde_json::{Map, Value};

/// How much one answer may unfold.
pub struct Expansion<'a> {
    document: &'a Document,
    /// Values that may still be written.
    nodes: usize,
    /// References within references.
    depth: usize,
    open: Vec<String>,
    /// References that were left as they are.
    pub left: usize,
}

impl<'a> Expansion<'a> {
    pub fn new(document: &'a Document, nodes: usize, depth: usize) -> Self {
        Self { document, nodes, depth, open: Vec::new(), left: 0 }
    }

    /// The value unfolded. A reference that leads back, too deep or nowhere stays a reference.
    pub fn of(&mut self, value: &Value) -> Value {
        self.nodes = self.nodes.saturating_sub(1);
        match value {
            Value::Object(members) => self.object(members),
            Value::Array(items) => items.iter().map(|item| self.of(item)).collect(),
            plain => plain.clone(),
        }
    }

    fn object(&mut self, members: &Map<String, Value>) -> Value {
        let reference = members.get("$ref").and_then(Value::as_str);
        let Some(reference) = reference else {
            // What describes the schema to people or to generators says nothing to a caller.
            let shown = members.iter().filter(|(name, _)| !name.starts_with("x-") && *name != "xml");
            return shown.map(|(name, value)| (name.clone(), self.of(value))).collect::<Map<_, _>>().into();
        };
        let back = self.open.iter().any(|open| open == reference);
        let target = if back || self.nodes == 0 || self.open.len() >= self.depth {
            None
        } else {
            self.document.target(reference)
        };
        let Some(target) = target else {
            self.left += 1;
            return Value::Object(members.clone());
        };
        self.open.push(reference.to_owned());
        let mut unfolded = self.of(&target);
        self.open.pop();
        if let Value::Object(unfolded) = &mut unfolded {
            for (name, value) in members.iter().filter(|(name, _)| *name != "$ref") {
                unfolded.insert(name.clone(), value.clone());
            }
        }
        unfolded
    }
}

impl Document {
    /// What a reference of this document leads to, with its own references as they are.
    pub fn named(&self, reference: &str) -> Option<Value> {
        self.target(reference)
    }
}

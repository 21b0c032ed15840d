//! Inlines references in schemas, within limits.

use crate::Document;
use serde_json::{Map, Value};

/// Limits and state of inlining for one reply.
pub struct RefInliner<'a> {
    document: &'a Document,
    /// Values that may still be emitted.
    remaining_nodes: usize,
    /// Maximum depth of nested references.
    max_depth: usize,
    ref_stack: Vec<String>,
    /// Number of references that were not inlined.
    pub refs_left: usize,
}

impl<'a> RefInliner<'a> {
    pub fn new(document: &'a Document, nodes: usize, depth: usize) -> Self {
        Self { document, remaining_nodes: nodes, max_depth: depth, ref_stack: Vec::new(), refs_left: 0 }
    }

    /// Inlines a value. A reference that is recursive, too deep or does not resolve stays a reference.
    pub fn inline(&mut self, value: &Value) -> Value {
        self.remaining_nodes = self.remaining_nodes.saturating_sub(1);
        match value {
            Value::Object(members) => self.object(members),
            Value::Array(items) => items.iter().map(|item| self.inline(item)).collect(),
            plain => plain.clone(),
        }
    }

    fn object(&mut self, members: &Map<String, Value>) -> Value {
        let reference = members.get("$ref").and_then(Value::as_str);
        let Some(reference) = reference else {
            // Extensions for people or generators are of no use to a caller.
            let shown = members.iter().filter(|(name, _)| !name.starts_with("x-") && *name != "xml");
            return shown
                .map(|(name, value)| (name.clone(), self.inline(value)))
                .collect::<Map<_, _>>()
                .into();
        };
        let back = self.ref_stack.iter().any(|open| open == reference);
        let target = if back || self.remaining_nodes == 0 || self.ref_stack.len() >= self.max_depth {
            None
        } else {
            self.document.ref_target(reference)
        };
        let Some(target) = target else {
            self.refs_left += 1;
            return Value::Object(members.clone());
        };
        self.ref_stack.push(reference.to_owned());
        let mut unfolded = self.inline(&target);
        self.ref_stack.pop();
        if let Value::Object(unfolded) = &mut unfolded {
            for (name, value) in members.iter().filter(|(name, _)| *name != "$ref") {
                unfolded.insert(name.clone(), value.clone());
            }
        }
        unfolded
    }
}

impl Document {
    /// Target of a reference in this document, with its own references unchanged.
    pub fn lookup_ref(&self, reference: &str) -> Option<Value> {
        self.ref_target(reference)
    }
}

//! A workflow file as a value, with source positions.

use crate::diagnostic::{Diagnostic, Position};
use octo_hub::read_yaml;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use std::collections::HashMap;
use std::fmt;

/// Generous for files written by hand.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

pub struct SpannedYaml {
    pub value: Value,
    /// By JSON pointer. The position of a member is that of its key.
    positions: HashMap<String, Position>,
}

impl SpannedYaml {
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let document: Document = read_yaml("", text).map_err(|problem| Diagnostic {
            position: Position { line: problem.line.unwrap_or(1), column: 1 },
            ..Diagnostic::at_root(problem.what)
        })?;
        let mut source = Self { value: Value::Null, positions: HashMap::new() };
        if let Some(node) = document.0 {
            source.record_position("", &node);
            source.value = source.convert_node(node.value, "");
        }
        Ok(source)
    }

    /// The position of a value, or of the nearest enclosing one.
    pub fn position(&self, pointer: &str) -> Position {
        let mut pointer = pointer;
        loop {
            if let Some(mark) = self.positions.get(pointer) {
                return *mark;
            }
            let Some((above, _)) = pointer.rsplit_once('/') else { return Position { line: 1, column: 1 } };
            pointer = above;
        }
    }

    fn record_position<T>(&mut self, pointer: &str, spanned: &Spanned<T>) {
        let (line, column) = (spanned.referenced.line(), spanned.referenced.column());
        if line > 0 {
            self.positions.insert(pointer.to_owned(), Position { line, column });
        }
    }

    fn convert_node(&mut self, node: Node, pointer: &str) -> Value {
        match node {
            Node::Scalar(value) => value,
            Node::List(items) => {
                let items = items.into_iter().enumerate().map(|(at, item)| {
                    let pointer = format!("{pointer}/{at}");
                    self.record_position(&pointer, &item);
                    self.convert_node(item.value, &pointer)
                });
                Value::Array(items.collect())
            }
            Node::Object(members) => {
                let members = members.into_iter().map(|(name, item)| {
                    let pointer = format!("{pointer}/{}", escape_pointer(&name.value));
                    self.record_position(&pointer, &item);
                    self.record_position(&pointer, &name);
                    let value = self.convert_node(item.value, &pointer);
                    (name.value, value)
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// Escapes a name for a JSON pointer.
pub fn escape_pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[derive(Deserialize, Default)]
struct Document(Option<Spanned<Node>>);

enum Node {
    Scalar(Value),
    List(Vec<Spanned<Node>>),
    Object(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_bool<E: Error>(self, word: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Bool(word)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Scalar(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Scalar(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node, E> {
        let number =
            Number::from_f64(number).ok_or_else(|| E::custom("a number that JSON does not support"))?;
        Ok(Node::Scalar(Value::Number(number)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Scalar(Value::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members: Vec<(Spanned<String>, Spanned<Node>)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<Spanned<String>, Spanned<Node>>()? {
            if members.iter().any(|(known, _)| known.value == name.value) {
                return Err(A::Error::custom(format!("duplicate key `{}`", name.value)));
            }
            members.push((name, value));
        }
        Ok(Node::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_place() {
        let text = "version: 1\nsteps:\n  - id: a\n    with: {x: [1, \"two\"], y/z: null}\n  - id: b\n";
        let source = SpannedYaml::parse(text).unwrap();
        for (pointer, line, column) in [
            ("/version", 1, 1),
            ("/steps", 2, 1),
            ("/steps/0", 3, 5),
            ("/steps/0/with/x/1", 4, 19),
            ("/steps/0/with/y~1z", 4, 27),
            ("/steps/1/id", 5, 5),
            ("/steps/1/none/deeper", 5, 5),
        ] {
            assert_eq!(source.position(pointer), Position { line, column }, "{pointer}");
        }
        assert_eq!(source.value["steps"][0]["with"], serde_json::json!({"x": [1, "two"], "y/z": null}));
    }

    #[test]
    fn json_is_read_as_well_and_what_is_neither_has_a_line() {
        assert_eq!(
            SpannedYaml::parse("{\"a\":\n {\"b\": 2}}").unwrap().position("/a/b"),
            Position { line: 2, column: 3 }
        );
        for (text, line) in [("a: 1\nb: [\n", 2), ("a: 1\na: 2\n", 2), ("a: .nan\n", 1)] {
            let problem = SpannedYaml::parse(text).err().unwrap();
            assert!(problem.position.line >= line, "{text}: {problem:?}");
        }
    }

    #[test]
    fn a_small_text_cannot_become_a_large_value() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for at in 1..12 {
            let before = format!("*a{}", at - 1);
            text.push_str(&format!("a{at}: &a{at} [{}]\n", vec![before; 10].join(", ")));
        }
        assert!(SpannedYaml::parse(&text).is_err());
    }
}

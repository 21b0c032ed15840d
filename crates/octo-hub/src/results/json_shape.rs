//! The shape of a JSON text: the names of members, and how many elements its lists have.

use octo_model::Json;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// Levels that are read; deeper ones are counted.
const MAX_DEPTH: usize = 6;
/// Members of one object that are named.
const MAX_MEMBERS: usize = 24;
/// Elements of one list that are compared.
const MAX_ELEMENTS: usize = 100;
/// Members of all objects that are read by their names.
const MAX_NAMED: usize = 20_000;
/// Characters of one name.
const MAX_NAME_CHARS: usize = 40;

/// Describes a JSON text in at most `max_bytes`, such as `{page, orders: [6500 × {id, total}]}`. `None` for a text without
/// members, and one that is not JSON.
pub fn json_shape(text: &str, max_bytes: usize) -> Option<String> {
    let mut source = serde_json::Deserializer::from_str(text);
    let named = Cell::new(0);
    let shape = ShapeSeed { depth: 0, named: &named }.deserialize(&mut source).ok()?;
    source.end().ok()?;
    if matches!(shape, Shape::Scalar) {
        return None;
    }
    (1..=MAX_DEPTH).rev().map(|depth| shape.render(depth)).find(|text| text.len() <= max_bytes)
}

enum Shape {
    Scalar,
    List { fewest: usize, most: usize, element: Box<Self> },
    Members { members: Vec<(String, Self)>, others: usize },
}

impl Shape {
    /// What both have.
    fn merge(&mut self, other: Self) {
        match (self, other) {
            (
                Self::List { fewest, most, element },
                Self::List { fewest: other_fewest, most: other_most, element: other },
            ) => {
                *fewest = other_fewest.min(*fewest);
                *most = other_most.max(*most);
                element.merge(*other);
            }
            (Self::Members { members, others }, Self::Members { members: more, others: further }) => {
                *others = further.max(*others);
                for (name, shape) in more {
                    if let Some((_, known)) = members.iter_mut().find(|(known, _)| *known == name) {
                        known.merge(shape);
                    } else if members.len() < MAX_MEMBERS {
                        members.push((name, shape));
                    } else {
                        *others = (*others).max(1);
                    }
                }
            }
            (one @ Self::Scalar, other) => *one = other,
            _ => {}
        }
    }

    fn render(&self, depth: usize) -> String {
        match self {
            Self::Scalar => String::new(),
            Self::List { fewest, most, element } => {
                let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
                match element.render_below(depth) {
                    inner if inner.is_empty() => format!("[{count}]"),
                    inner => format!("[{count} × {inner}]"),
                }
            }
            Self::Members { members, others } if members.is_empty() && *others > 0 => "{…}".to_owned(),
            Self::Members { members, others } => {
                let named = members.iter().map(|(name, shape)| match shape.render_below(depth) {
                    inner if inner.is_empty() => display_name(name),
                    inner => format!("{}: {inner}", display_name(name)),
                });
                let more = (*others > 0).then(|| format!("… {others} more"));
                format!("{{{}}}", named.chain(more).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn render_below(&self, depth: usize) -> String {
        match self {
            Self::Scalar => String::new(),
            _ if depth > 1 => self.render(depth - 1),
            Self::List { most, .. } => format!("[{most}]"),
            Self::Members { .. } => "{…}".to_owned(),
        }
    }
}

/// A name as jq takes it: quoted unless it is a plain word.
fn display_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_word =
        !name.is_empty() && name.chars().all(is_plain) && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_word { name.to_owned() } else { Json::text(name).as_str().to_owned() }
}

#[derive(Clone, Copy)]
struct ShapeSeed<'a> {
    depth: usize,
    /// Members that were named so far.
    named: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for ShapeSeed<'_> {
    type Value = Shape;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Shape, D::Error> {
        source.deserialize_any(self)
    }
}

/// Scalars have no shape.
macro_rules! scalars {
    ($($visit:ident: $of:ty),*) => {
        $(fn $visit<E: Error>(self, _: $of) -> Result<Shape, E> {
            Ok(Shape::Scalar)
        })*
    };
}

impl<'de> Visitor<'de> for ShapeSeed<'_> {
    type Value = Shape;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("JSON")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: Error>(self) -> Result<Shape, E> {
        Ok(Shape::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        let (mut count, mut element) = (0, Shape::Scalar);
        let below = Self { depth: self.depth + 1, ..self };
        while count < MAX_ELEMENTS && below.depth < MAX_DEPTH {
            let Some(shape) = list.next_element_seed(below)? else { break };
            element.merge(shape);
            count += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Shape::List { fewest: count, most: count, element: Box::new(element) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Shape, A::Error> {
        let (mut members, mut others) = (Vec::new(), 0);
        let below = Self { depth: self.depth + 1, ..self };
        while let Some(name) = object.next_key::<String>()? {
            if members.len() < MAX_MEMBERS
                && below.depth < MAX_DEPTH
                && self.named.get() < MAX_NAMED
                && name.chars().count() <= MAX_NAME_CHARS
            {
                self.named.set(self.named.get() + 1);
                members.push((name, object.next_value_seed(below)?));
            } else {
                others += 1;
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Shape::Members { members, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let many = format!("[{}]", vec![r#"{"id":1,"tags":["a"]}"#; 1_000].join(","));
        let wide = format!("{{{}}}", (0..100).map(|at| format!("\"k{at}\":1")).collect::<Vec<_>>().join(","));
        let rows = [
            ("1", None),
            ("\"x\"", None),
            ("not JSON", None),
            ("{} {}", None),
            ("{}", Some("{}")),
            ("[]", Some("[0]")),
            ("[1,2,3]", Some("[3]")),
            (
                r#"{"page":1,"orders":[{"id":1,"lines":[{"n":1},{"n":2}]},{"id":2,"lines":[]}]}"#,
                Some("{page, orders: [2 × {id, lines: [0 to 2 × {n}]}]}"),
            ),
            (r#"[{"a":1},{"b":null},{"a":{"c":1}}]"#, Some("[3 × {a: {c}, b}]")),
            (r#"{"a-b":1,"1":2,"line\nbreak":3}"#, Some(r#"{"a-b", "1", "line\nbreak"}"#)),
            (r#"{"a":{"b":{"c":{"d":{"e":{"f":1}}}}}}"#, Some("{a: {b: {c: {d: {e: {…}}}}}}")),
            (many.as_str(), Some("[1000 × {id, tags: [1]}]")),
        ];
        for (text, shape) in rows {
            assert_eq!(json_shape(text, 200).as_deref(), shape, "{text}");
        }
        assert!(json_shape(&wide, 200).is_some_and(|shape| shape.ends_with("k23, … 76 more}")));
    }

    #[test]
    fn a_wide_and_deep_value_takes_little_memory() {
        let level = |inner: &str| {
            let members: Vec<String> = ('a'..='x').map(|name| format!("\"{name}\":{inner}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let text = (0..4).fold("1".to_owned(), |inner, _| level(&inner));
        let named = Cell::new(0);
        let seed = ShapeSeed { depth: 0, named: &named };
        assert!(seed.deserialize(&mut serde_json::Deserializer::from_str(&text)).is_ok());
        assert_eq!(named.get(), MAX_NAMED);
    }

    #[test]
    fn a_long_shape_is_less_deep() {
        let inner =
            format!("{{{}}}", (0..20).map(|at| format!("\"name{at}\":1")).collect::<Vec<_>>().join(","));
        let text = format!(r#"{{"rows":[{inner}],"more":{{"x":[{inner}]}}}}"#);
        assert_eq!(json_shape(&text, 100).as_deref(), Some("{rows: [1 × {…}], more: {x: [1]}}"));
        assert_eq!(json_shape(&text, 30).as_deref(), Some("{rows: [1], more: {…}}"));
        assert_eq!(json_shape(&text, 10), None);
    }
}

//! What an expression says, once the steps before it have run.

use super::{Comparison, Expr, Part, Path};
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A path leads nowhere; `exists` and `default` take that for an answer.
    Absent(String),
    /// The values do not fit what is asked of them.
    Misfit(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent(path) => write!(f, "`{path}` is not there."),
            Self::Misfit(why) => f.write_str(why),
        }
    }
}

/// What the names of expressions stand for.
pub trait Names {
    /// The value that a path begins at, and how many of its parts were used up for that.
    fn find(&self, path: &Path) -> Option<(Arc<Value>, usize)>;
}

impl Expr {
    pub fn value(&self, names: &dyn Names) -> Result<Value, Fault> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.value(names)).collect::<Result<_, _>>()?)
            }
            Self::Path(path) => path.value(names)?,
            Self::Not(inner) => Value::Bool(!inner.truth(names)?),
            Self::And(left, right) => Value::Bool(left.truth(names)? && right.truth(names)?),
            Self::Or(left, right) => Value::Bool(left.truth(names)? || right.truth(names)?),
            Self::Compare(comparison, left, right) => {
                Value::Bool(comparison.holds(&left.value(names)?, &right.value(names)?)?)
            }
            Self::Exists(path) => match path.value(names) {
                Ok(value) => Value::Bool(!value.is_null()),
                Err(Fault::Absent(_)) => Value::Bool(false),
                Err(fault) => return Err(fault),
            },
            Self::Default(value, other) => match value.value(names) {
                Ok(Value::Null) | Err(Fault::Absent(_)) => other.value(names)?,
                value => value?,
            },
            Self::Length(inner) => length(&inner.value(names)?)?.into(),
            Self::Contains(whole, part) => Value::Bool(contains(&whole.value(names)?, &part.value(names)?)?),
            Self::Join(list, between) => match (list.value(names)?, between.value(names)?) {
                (Value::Array(items), Value::String(between)) => {
                    Value::String(items.iter().map(text).collect::<Vec<_>>().join(&between))
                }
                _ => return Err(Fault::Misfit("join(…) takes a list and a text.".to_owned())),
            },
            Self::Lines(inner) => match inner.value(names)? {
                Value::String(text) => {
                    text.lines().filter(|line| !line.trim().is_empty()).map(Value::from).collect()
                }
                _ => return Err(Fault::Misfit("lines(…) takes a text.".to_owned())),
            },
        })
    }

    /// Nothing but true and false counts as such.
    pub fn truth(&self, names: &dyn Names) -> Result<bool, Fault> {
        match self.value(names)? {
            Value::Bool(word) => Ok(word),
            other => Err(Fault::Misfit(format!("{} is neither true nor false.", shown(&other)))),
        }
    }

    /// The value, when it does not depend on anything.
    pub fn constant(&self) -> Option<Value> {
        struct Nobody;
        impl Names for Nobody {
            fn find(&self, _: &Path) -> Option<(Arc<Value>, usize)> {
                None
            }
        }
        if self.paths().is_empty() { self.value(&Nobody).ok() } else { None }
    }

    /// Every path that it names.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::List(items) => items.iter().flat_map(Self::paths).collect(),
            Self::Path(path) | Self::Exists(path) => vec![path],
            Self::Not(inner) | Self::Length(inner) | Self::Lines(inner) => inner.paths(),
            Self::And(left, right)
            | Self::Or(left, right)
            | Self::Compare(_, left, right)
            | Self::Default(left, right)
            | Self::Contains(left, right)
            | Self::Join(left, right) => [left.paths(), right.paths()].concat(),
        }
    }
}

impl Path {
    fn value(&self, names: &dyn Names) -> Result<Value, Fault> {
        let absent = || Fault::Absent(self.to_string());
        let (value, used) = names.find(self).ok_or_else(absent)?;
        walk(&value, self.parts.get(used..).unwrap_or_default()).ok_or_else(absent)
    }
}

fn walk(value: &Value, parts: &[Part]) -> Option<Value> {
    let Some((first, rest)) = parts.split_first() else { return Some(value.clone()) };
    let inner = match first {
        Part::Name(name) => value.as_object()?.get(name)?,
        Part::At(at) => value.as_array()?.get(*at)?,
        Part::Each => return value.as_array()?.iter().map(|item| walk(item, rest)).collect(),
    };
    walk(inner, rest)
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> Result<bool, Fault> {
        let order = match self {
            Self::Equal => return Ok(same(left, right)),
            Self::Unequal => return Ok(!same(left, right)),
            _ => order(left, right)?,
        };
        Ok(match self {
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual | Self::Equal | Self::Unequal => order != Ordering::Less,
        })
    }
}

/// 1 and 1.0 are the same.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => order(left, right) == Ok(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Result<Ordering, Fault> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        },
        _ => None,
    };
    order
        .ok_or_else(|| Fault::Misfit(format!("{} and {} cannot be put in order.", shown(left), shown(right))))
}

fn length(value: &Value) -> Result<usize, Fault> {
    match value {
        Value::String(text) => Ok(text.chars().count()),
        Value::Array(items) => Ok(items.len()),
        Value::Object(members) => Ok(members.len()),
        other => Err(Fault::Misfit(format!("{} has no length.", shown(other)))),
    }
}

fn contains(whole: &Value, part: &Value) -> Result<bool, Fault> {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => Ok(whole.contains(part.as_str())),
        (Value::Array(items), part) => Ok(items.iter().any(|item| same(item, part))),
        (Value::Object(members), Value::String(name)) => Ok(members.contains_key(name)),
        _ => Err(Fault::Misfit(format!("{} cannot have {} in it.", shown(whole), shown(part)))),
    }
}

/// A value inside a text: texts as they are, everything else as JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

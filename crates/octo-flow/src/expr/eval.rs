//! Evaluation of expressions.

use super::{Comparison, Expr, ExprPath, PathPart};
use octo_model::abbreviate;
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvalError {
    /// A path has no value; `exists` and `default` handle that.
    Absent(String),
    /// The values have unsuitable types.
    TypeMismatch(String),
}

impl std::fmt::Display for EvalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent(path) => write!(f, "`{path}` is absent."),
            Self::TypeMismatch(why) => f.write_str(why),
        }
    }
}

/// Resolution of names in expressions.
pub trait Scope {
    /// The value at the root of a path, and how many of its parts that used.
    fn find(&self, path: &ExprPath) -> Option<(Arc<Value>, usize)>;
}

impl Expr {
    pub fn eval(&self, names: &dyn Scope) -> Result<Value, EvalError> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.eval(names)).collect::<Result<_, _>>()?)
            }
            Self::Path(path) => path.eval(names)?,
            Self::Not(inner) => Value::Bool(!inner.eval_bool(names)?),
            Self::And(left, right) => Value::Bool(left.eval_bool(names)? && right.eval_bool(names)?),
            Self::Or(left, right) => Value::Bool(left.eval_bool(names)? || right.eval_bool(names)?),
            Self::Compare(comparison, left, right) => {
                Value::Bool(comparison.matches(&left.eval(names)?, &right.eval(names)?)?)
            }
            Self::Exists(path) => match path.eval(names) {
                Ok(value) => Value::Bool(!value.is_null()),
                Err(EvalError::Absent(_)) => Value::Bool(false),
                Err(fault) => return Err(fault),
            },
            Self::Default(value, other) => match value.eval(names) {
                Ok(Value::Null) | Err(EvalError::Absent(_)) => other.eval(names)?,
                value => value?,
            },
            Self::Length(inner) => length(&inner.eval(names)?)?.into(),
            Self::Contains(whole, part) => Value::Bool(contains(&whole.eval(names)?, &part.eval(names)?)?),
            Self::Join(list, between) => match (list.eval(names)?, between.eval(names)?) {
                (Value::Array(items), Value::String(between)) => {
                    Value::String(items.iter().map(to_text).collect::<Vec<_>>().join(&between))
                }
                _ => return Err(EvalError::TypeMismatch("join(…) takes a list and a string.".to_owned())),
            },
            Self::Lines(inner) => match inner.eval(names)? {
                Value::String(text) => {
                    text.lines().filter(|line| !line.trim().is_empty()).map(Value::from).collect()
                }
                _ => return Err(EvalError::TypeMismatch("lines(…) takes a string.".to_owned())),
            },
        })
    }

    /// Only true and false count as booleans.
    pub fn eval_bool(&self, names: &dyn Scope) -> Result<bool, EvalError> {
        match self.eval(names)? {
            Value::Bool(word) => Ok(word),
            other => Err(EvalError::TypeMismatch(format!("{} is not a boolean.", short(&other)))),
        }
    }

    /// The value, if it is constant.
    pub fn const_value(&self) -> Option<Value> {
        struct EmptyScope;
        impl Scope for EmptyScope {
            fn find(&self, _: &ExprPath) -> Option<(Arc<Value>, usize)> {
                None
            }
        }
        if self.paths().is_empty() { self.eval(&EmptyScope).ok() } else { None }
    }

    /// All paths in it.
    pub fn paths(&self) -> Vec<&ExprPath> {
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

impl ExprPath {
    fn eval(&self, names: &dyn Scope) -> Result<Value, EvalError> {
        let absent = || EvalError::Absent(self.to_string());
        let (value, used) = names.find(self).ok_or_else(absent)?;
        follow_path(&value, self.parts.get(used..).unwrap_or_default()).ok_or_else(absent)
    }
}

fn follow_path(value: &Value, parts: &[PathPart]) -> Option<Value> {
    let Some((first, rest)) = parts.split_first() else { return Some(value.clone()) };
    let inner = match first {
        PathPart::Name(name) => value.as_object()?.get(name)?,
        PathPart::Index(at) => value.as_array()?.get(*at)?,
        PathPart::Wildcard => return value.as_array()?.iter().map(|item| follow_path(item, rest)).collect(),
    };
    follow_path(inner, rest)
}

impl Comparison {
    fn matches(self, left: &Value, right: &Value) -> Result<bool, EvalError> {
        let order = match self {
            Self::Equal => return Ok(loosely_equal(left, right)),
            Self::Unequal => return Ok(!loosely_equal(left, right)),
            _ => compare(left, right)?,
        };
        Ok(match self {
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual | Self::Equal | Self::Unequal => order != Ordering::Less,
        })
    }
}

/// 1 and 1.0 are equal.
fn loosely_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => compare(left, right) == Ok(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| loosely_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| loosely_equal(value, other)))
        }
        _ => left == right,
    }
}

fn compare(left: &Value, right: &Value) -> Result<Ordering, EvalError> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        },
        _ => None,
    };
    order.ok_or_else(|| {
        EvalError::TypeMismatch(format!("{} and {} cannot be compared.", short(left), short(right)))
    })
}

fn length(value: &Value) -> Result<usize, EvalError> {
    match value {
        Value::String(text) => Ok(text.chars().count()),
        Value::Array(items) => Ok(items.len()),
        Value::Object(members) => Ok(members.len()),
        other => Err(EvalError::TypeMismatch(format!("{} has no length.", short(other)))),
    }
}

fn contains(whole: &Value, part: &Value) -> Result<bool, EvalError> {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => Ok(whole.contains(part.as_str())),
        (Value::Array(items), part) => Ok(items.iter().any(|item| loosely_equal(item, part))),
        (Value::Object(members), Value::String(name)) => Ok(members.contains_key(name)),
        _ => Err(EvalError::TypeMismatch(format!("{} cannot contain {}.", short(whole), short(part)))),
    }
}

/// A value inside a text: strings verbatim, everything else as JSON.
pub fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn short(value: &Value) -> String {
    abbreviate(&value.to_string(), 60).into_owned()
}

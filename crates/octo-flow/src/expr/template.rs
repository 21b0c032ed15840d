//! Values that contain expressions.

use super::eval::{EvalError, Scope, to_text};
use super::{Expr, parse_placeholder};
use octo_model::{TemplatePart, scan_template};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    Literal(Value),
    /// A text that is a single expression: its value keeps its type.
    Expr(Expr),
    Text(Vec<TemplatePart<Expr>>),
    List(Vec<Template>),
    Object(Vec<(String, Template)>),
}

impl Template {
    /// Parses a value; `wrong` is called for every invalid text, with its location in the value.
    pub fn read(value: &Value, pointer: &str, wrong: &mut dyn FnMut(&str, String)) -> Self {
        match value {
            Value::String(text) => Self::parse(text).unwrap_or_else(|why| {
                wrong(pointer, why);
                Self::Literal(value.clone())
            }),
            Value::Array(items) => {
                let read = |(at, item)| Self::read(item, &format!("{pointer}/{at}"), wrong);
                Self::List(items.iter().enumerate().map(read).collect()).fold_literal()
            }
            Value::Object(members) => {
                let read = |(name, item): (&String, &Value)| {
                    let pointer = format!("{pointer}/{}", crate::spanned_yaml::escape_pointer(name));
                    (name.clone(), Self::read(item, &pointer, wrong))
                };
                Self::Object(members.iter().map(read).collect()).fold_literal()
            }
            other => Self::Literal(other.clone()),
        }
    }

    /// A text with `{{ … }}`; `\{{` is an escape for literal braces.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = scan_template(text, parse_placeholder)?;
        Ok(match (parts.pop(), parts.is_empty()) {
            (None, _) => Self::Literal(Value::String(String::new())),
            (Some(TemplatePart::Literal(text)), true) => Self::Literal(Value::String(text)),
            (Some(TemplatePart::Placeholder(expr)), true) => Self::Expr(expr),
            (Some(last), false) => {
                parts.push(last);
                Self::Text(parts)
            }
        })
    }

    /// A value without expressions becomes a literal.
    fn fold_literal(self) -> Self {
        match self.as_literal() {
            Some(value) => Self::Literal(value),
            None => self,
        }
    }

    fn as_literal(&self) -> Option<Value> {
        match self {
            Self::Literal(value) => Some(value.clone()),
            Self::Expr(_) | Self::Text(_) => None,
            Self::List(items) => items.iter().map(Self::as_literal).collect(),
            Self::Object(members) => {
                let members = members.iter().map(|(name, item)| Some((name.clone(), item.as_literal()?)));
                members.collect::<Option<serde_json::Map<_, _>>>().map(Value::Object)
            }
        }
    }

    pub fn eval(&self, names: &dyn Scope) -> Result<Value, EvalError> {
        Ok(match self {
            Self::Literal(value) => value.clone(),
            Self::Expr(expr) => expr.eval(names)?,
            Self::Text(pieces) => {
                let mut whole = String::new();
                for piece in pieces {
                    match piece {
                        TemplatePart::Literal(literal) => whole.push_str(literal),
                        TemplatePart::Placeholder(expr) => whole.push_str(&to_text(&expr.eval(names)?)),
                    }
                }
                Value::String(whole)
            }
            Self::List(items) => {
                Value::Array(items.iter().map(|item| item.eval(names)).collect::<Result<_, _>>()?)
            }
            Self::Object(members) => {
                let members = members.iter().map(|(name, item)| Ok((name.clone(), item.eval(names)?)));
                Value::Object(members.collect::<Result<_, EvalError>>()?)
            }
        })
    }

    /// All expressions in it.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Expr(expr) => vec![expr],
            Self::Text(pieces) => pieces
                .iter()
                .filter_map(|piece| match piece {
                    TemplatePart::Placeholder(expr) => Some(expr),
                    TemplatePart::Literal(_) => None,
                })
                .collect(),
            Self::List(items) => items.iter().flat_map(Self::exprs).collect(),
            Self::Object(members) => members.iter().flat_map(|(_, item)| item.exprs()).collect(),
        }
    }
}

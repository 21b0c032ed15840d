//! Expressions: paths, comparisons, `and`/`or`/`not`, literals and a few functions. All of them terminate,
//! and none has side effects.

mod eval;
mod expr_parser;
mod template;
#[cfg(test)]
mod tests;

pub use eval::{EvalError, Scope};
pub use expr_parser::{parse_expr, parse_placeholder};
use serde_json::Value;
pub use template::Template;

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Literal(Value),
    List(Vec<Expr>),
    Path(ExprPath),
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// Whether a path has a value other than null.
    Exists(ExprPath),
    /// The first, or the second if the first is absent or null.
    Default(Box<Expr>, Box<Expr>),
    /// Characters of a string, items of a list, members of an object.
    Length(Box<Expr>),
    /// Whether a string contains a string, a list an item, an object a member.
    Contains(Box<Expr>, Box<Expr>),
    /// The items of a list as one string, with a separator.
    Join(Box<Expr>, Box<Expr>),
    /// The non-empty lines of a string.
    Lines(Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// `steps.fetch.output.items[0].title`; `[*]` maps over all items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprPath {
    pub root: String,
    pub parts: Vec<PathPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    Name(String),
    Index(usize),
    Wildcard,
}

impl std::fmt::Display for ExprPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.root)?;
        for part in &self.parts {
            match part {
                PathPart::Name(name) if expr_parser::is_name(name) => write!(f, ".{name}")?,
                PathPart::Name(name) => write!(f, "[{}]", Value::from(name.as_str()))?,
                PathPart::Index(at) => write!(f, "[{at}]")?,
                PathPart::Wildcard => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl ExprPath {
    pub fn step_member(id: &str, what: &str) -> Self {
        let parts = vec![PathPart::Name(id.to_owned()), PathPart::Name(what.to_owned())];
        Self { root: "steps".to_owned(), parts }
    }

    /// The first part, if it is a name: the parameter, or the step.
    pub fn first(&self) -> Option<&str> {
        match self.parts.first() {
            Some(PathPart::Name(name)) => Some(name),
            _ => None,
        }
    }
}

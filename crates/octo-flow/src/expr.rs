//! Expressions: paths, comparisons, `and`/`or`/`not`, literals and a handful of functions. Every one of them ends, and
//! none of them can change anything.

mod eval;
mod parse;
mod template;
#[cfg(test)]
mod tests;

pub use eval::{Fault, Names};
pub use parse::{inserted, whole};
use serde_json::Value;
pub use template::Template;

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Literal(Value),
    List(Vec<Expr>),
    Path(Path),
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// Whether a path leads to something other than null.
    Exists(Path),
    /// The first, or the second where the first is not there or null.
    Default(Box<Expr>, Box<Expr>),
    /// Characters of a text, items of a list, members of an object.
    Length(Box<Expr>),
    /// Whether a text has a text, a list an item, an object a member.
    Contains(Box<Expr>, Box<Expr>),
    /// The items of a list as one text, with another between them.
    Join(Box<Expr>, Box<Expr>),
    /// The lines of a text that are not empty.
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

/// `steps.fetch.output.items[0].title`; `[*]` goes into every item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub root: String,
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Name(String),
    At(usize),
    Each,
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.root)?;
        for part in &self.parts {
            match part {
                Part::Name(name) if parse::is_name(name) => write!(f, ".{name}")?,
                Part::Name(name) => write!(f, "[{}]", Value::from(name.as_str()))?,
                Part::At(at) => write!(f, "[{at}]")?,
                Part::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl Path {
    pub fn of_step(id: &str, what: &str) -> Self {
        let parts = vec![Part::Name(id.to_owned()), Part::Name(what.to_owned())];
        Self { root: "steps".to_owned(), parts }
    }

    /// The first part, when it is a name: the parameter, or the step.
    pub fn first(&self) -> Option<&str> {
        match self.parts.first() {
            Some(Part::Name(name)) => Some(name),
            _ => None,
        }
    }
}

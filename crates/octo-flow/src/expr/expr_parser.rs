//! Recursive-descent parser of expressions, with a depth limit.

use super::{Comparison, Expr, ExprPath, PathPart};
use serde_json::{Number, Value};

/// Maximum nesting depth of an expression.
const MAX_DEPTH: usize = 32;

type ParseResult<T> = Result<T, String>;

/// Parses the whole text as one expression; surrounding braces are accepted.
pub fn parse_expr(text: &str) -> ParseResult<Expr> {
    let inner = text.trim();
    let inner = inner.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or(inner);
    let mut reader = Parser { rest: inner, depth: 0 };
    let expr = reader.or()?;
    reader.skip_whitespace();
    if reader.rest.is_empty() { Ok(expr) } else { Err(reader.unexpected()) }
}

/// Parses an expression up to its `}}` at the start of a text; returns it and the rest.
pub fn parse_placeholder(text: &str) -> ParseResult<(Expr, &str)> {
    let mut reader = Parser { rest: text, depth: 0 };
    let expr = reader.or()?;
    reader.skip_whitespace();
    match reader.rest.strip_prefix("}}") {
        Some(rest) => Ok((expr, rest)),
        None if reader.rest.is_empty() => Err("a `{{` without a matching `}}`".to_owned()),
        None => Err(reader.unexpected()),
    }
}

pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn skip_whitespace(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self) -> String {
        let near: String = self.rest.chars().take(20).collect();
        if near.is_empty() {
            "unexpected end of the expression".to_owned()
        } else {
            format!("unexpected `{near}`")
        }
    }

    /// Consumes a symbol if it is next.
    fn take_symbol(&mut self, sign: &str) -> bool {
        self.skip_whitespace();
        self.rest.strip_prefix(sign).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn expect_symbol(&mut self, sign: &str) -> ParseResult<()> {
        if self.take_symbol(sign) {
            Ok(())
        } else {
            Err(format!("expected `{sign}` before `{}`", self.near()))
        }
    }

    fn near(&self) -> String {
        self.rest.chars().take(20).collect()
    }

    /// Consumes a word if it is next and not part of a longer one.
    fn take_keyword(&mut self, word: &str) -> bool {
        self.skip_whitespace();
        match self.rest.strip_prefix(word) {
            Some(rest) if !rest.starts_with(is_name_char) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take_name(&mut self) -> Option<&'a str> {
        self.skip_whitespace();
        let end = self.rest.find(|c| !is_name_char(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at_checked(end)?;
        if !is_name(name) {
            return None;
        }
        self.rest = rest;
        Some(name)
    }

    fn or(&mut self) -> ParseResult<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut left = self.and()?;
        while self.take_keyword("or") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> ParseResult<Expr> {
        let mut left = self.not()?;
        while self.take_keyword("and") {
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> ParseResult<Expr> {
        let mut nots = 0;
        while self.take_keyword("not") {
            nots += 1;
        }
        let mut inner = self.comparison()?;
        // A double negation is not dropped: its operand must still be a boolean.
        if nots > 0 && nots % 2 == 0 {
            inner = Expr::Not(Box::new(inner));
        }
        Ok(if nots > 0 { Expr::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> ParseResult<Expr> {
        const OPERATORS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let left = self.primary()?;
        for (sign, comparison) in OPERATORS {
            if self.take_symbol(sign) {
                return Ok(Expr::Compare(comparison, Box::new(left), Box::new(self.primary()?)));
            }
        }
        Ok(left)
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        self.skip_whitespace();
        match self.rest.chars().next() {
            Some('(') => {
                self.expect_symbol("(")?;
                let inner = self.or()?;
                self.expect_symbol(")")?;
                Ok(inner)
            }
            Some('[') => self.list(),
            Some(quote @ ('"' | '\'')) => {
                self.string_literal(quote).map(|text| Expr::Literal(Value::String(text)))
            }
            Some(c) if c.is_ascii_digit() || c == '-' => self.number(),
            _ => self.path_or_call(),
        }
    }

    fn list(&mut self) -> ParseResult<Expr> {
        self.expect_symbol("[")?;
        let mut items = Vec::new();
        while !self.take_symbol("]") {
            if !items.is_empty() {
                self.expect_symbol(",")?;
            }
            items.push(self.or()?);
        }
        Ok(Expr::List(items))
    }

    fn string_literal(&mut self, quote: char) -> ParseResult<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, c)) if c == quote || c == '\\' => text.push(c),
                    _ => return Err("a `\\` must be followed by n, t, a quote or another `\\`".to_owned()),
                },
                c if c == quote => {
                    self.rest = self.rest.get(at + c.len_utf8()..).unwrap_or_default();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(format!("unterminated {quote}"))
    }

    fn number(&mut self) -> ParseResult<Expr> {
        let end = self.rest.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E'));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let number: Number = serde_json::from_str(text).map_err(|_| format!("invalid number `{text}`"))?;
        self.rest = rest;
        Ok(Expr::Literal(Value::Number(number)))
    }

    fn path_or_call(&mut self) -> ParseResult<Expr> {
        let Some(name) = self.take_name() else { return Err(self.unexpected()) };
        match name {
            "true" => return Ok(Expr::Literal(Value::Bool(true))),
            "false" => return Ok(Expr::Literal(Value::Bool(false))),
            "null" => return Ok(Expr::Literal(Value::Null)),
            _ => {}
        }
        if self.rest.trim_start().starts_with('(') {
            return self.function(name);
        }
        self.path(name).map(Expr::Path)
    }

    fn path(&mut self, root: &str) -> ParseResult<ExprPath> {
        let mut parts = Vec::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix('.') {
                self.rest = rest;
                let name = self.take_name().ok_or_else(|| self.unexpected())?;
                parts.push(PathPart::Name(name.to_owned()));
            } else if self.rest.starts_with('[') {
                self.expect_symbol("[")?;
                parts.push(self.part()?);
                self.expect_symbol("]")?;
            } else {
                return Ok(ExprPath { root: root.to_owned(), parts });
            }
        }
    }

    fn part(&mut self) -> ParseResult<PathPart> {
        if self.take_symbol("*") {
            return Ok(PathPart::Wildcard);
        }
        match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.string_literal(quote).map(PathPart::Name),
            _ => {
                let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
                let (digits, rest) = self.rest.split_at(end);
                self.rest = rest;
                let at =
                    digits.parse().map_err(|_| "`[…]` takes a number, `*` or a name in quotes".to_owned())?;
                Ok(PathPart::Index(at))
            }
        }
    }

    fn function(&mut self, name: &str) -> ParseResult<Expr> {
        self.expect_symbol("(")?;
        let mut given = Vec::new();
        while !self.take_symbol(")") {
            if !given.is_empty() {
                self.expect_symbol(",")?;
            }
            given.push(self.or()?);
        }
        let mut given = given.into_iter().map(Box::new);
        let made = match (name, given.next(), given.next(), given.next()) {
            ("exists", Some(path), None, None) => match *path {
                Expr::Path(path) => Expr::Exists(path),
                _ => return Err("exists(…) takes a path".to_owned()),
            },
            ("default", Some(value), Some(other), None) => Expr::Default(value, other),
            ("length", Some(value), None, None) => Expr::Length(value),
            ("contains", Some(whole), Some(part), None) => Expr::Contains(whole, part),
            ("join", Some(list), Some(between), None) => Expr::Join(list, between),
            ("lines", Some(text), None, None) => Expr::Lines(text),
            ("exists" | "length" | "lines", ..) => return Err(format!("{name}(…) takes one value")),
            ("default" | "contains" | "join", ..) => return Err(format!("{name}(…) takes two values")),
            _ => {
                let known = ["exists", "default", "length", "contains", "join", "lines"];
                return Err(match octo_model::nearest(name, known.into_iter()) {
                    Some(close) => format!("unknown function `{name}`; did you mean `{close}`?"),
                    None => format!("unknown function `{name}`; available: {}", known.join(", ")),
                });
            }
        };
        Ok(made)
    }
}

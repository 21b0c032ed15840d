//! Text into expressions, by recursive descent with a bound on its depth.

use super::{Comparison, Expr, Part, Path};
use serde_json::{Number, Value};

/// Deeper ones are no work of a person.
const DEEPEST: usize = 32;

type Parsed<T> = Result<T, String>;

/// The whole text as one expression; braces around it are accepted.
pub fn whole(text: &str) -> Parsed<Expr> {
    let inner = text.trim();
    let inner = inner.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).unwrap_or(inner);
    let mut reader = Reader { rest: inner, depth: 0 };
    let expr = reader.or()?;
    reader.space();
    if reader.rest.is_empty() { Ok(expr) } else { Err(reader.unexpected()) }
}

/// An expression at the beginning of a text, up to its `}}`; and the rest behind that.
pub fn inserted(text: &str) -> Parsed<(Expr, &str)> {
    let mut reader = Reader { rest: text, depth: 0 };
    let expr = reader.or()?;
    reader.space();
    match reader.rest.strip_prefix("}}") {
        Some(rest) => Ok((expr, rest)),
        None if reader.rest.is_empty() => Err("a `{{` without its `}}`".to_owned()),
        None => Err(reader.unexpected()),
    }
}

pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && text.chars().all(in_name)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self) -> String {
        let near: String = self.rest.chars().take(20).collect();
        if near.is_empty() {
            "the expression ends too early".to_owned()
        } else {
            format!("`{near}` does not belong there")
        }
    }

    /// Takes a sign, when it is next.
    fn sign(&mut self, sign: &str) -> bool {
        self.space();
        self.rest.strip_prefix(sign).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn must(&mut self, sign: &str) -> Parsed<()> {
        if self.sign(sign) { Ok(()) } else { Err(format!("`{sign}` is missing before `{}`", self.near())) }
    }

    fn near(&self) -> String {
        self.rest.chars().take(20).collect()
    }

    /// Takes a word, when it is next and is no part of a longer one.
    fn word(&mut self, word: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(word) {
            Some(rest) if !rest.starts_with(in_name) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn name(&mut self) -> Option<&'a str> {
        self.space();
        let end = self.rest.find(|c| !in_name(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at_checked(end)?;
        if !is_name(name) {
            return None;
        }
        self.rest = rest;
        Some(name)
    }

    fn or(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut left = self.and()?;
        while self.word("or") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Parsed<Expr> {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Parsed<Expr> {
        let mut nots = 0;
        while self.word("not") {
            nots += 1;
        }
        let mut inner = self.comparison()?;
        // Twice not is not nothing: what is inside must still be true or false.
        if nots > 0 && nots % 2 == 0 {
            inner = Expr::Not(Box::new(inner));
        }
        Ok(if nots > 0 { Expr::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> Parsed<Expr> {
        const SIGNS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let left = self.primary()?;
        for (sign, comparison) in SIGNS {
            if self.sign(sign) {
                return Ok(Expr::Compare(comparison, Box::new(left), Box::new(self.primary()?)));
            }
        }
        Ok(left)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        self.space();
        match self.rest.chars().next() {
            Some('(') => {
                self.must("(")?;
                let inner = self.or()?;
                self.must(")")?;
                Ok(inner)
            }
            Some('[') => self.list(),
            Some(quote @ ('"' | '\'')) => self.text(quote).map(|text| Expr::Literal(Value::String(text))),
            Some(c) if c.is_ascii_digit() || c == '-' => self.number(),
            _ => self.named(),
        }
    }

    fn list(&mut self) -> Parsed<Expr> {
        self.must("[")?;
        let mut items = Vec::new();
        while !self.sign("]") {
            if !items.is_empty() {
                self.must(",")?;
            }
            items.push(self.or()?);
        }
        Ok(Expr::List(items))
    }

    fn text(&mut self, quote: char) -> Parsed<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, c)) if c == quote || c == '\\' => text.push(c),
                    _ => return Err("a `\\` is followed by n, t, a quote or another `\\`".to_owned()),
                },
                c if c == quote => {
                    self.rest = self.rest.get(at + c.len_utf8()..).unwrap_or_default();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(format!("a {quote} without its end"))
    }

    fn number(&mut self) -> Parsed<Expr> {
        let end = self.rest.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E'));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let number: Number = serde_json::from_str(text).map_err(|_| format!("`{text}` is no number"))?;
        self.rest = rest;
        Ok(Expr::Literal(Value::Number(number)))
    }

    fn named(&mut self) -> Parsed<Expr> {
        let Some(name) = self.name() else { return Err(self.unexpected()) };
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

    fn path(&mut self, root: &str) -> Parsed<Path> {
        let mut parts = Vec::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix('.') {
                self.rest = rest;
                let name = self.name().ok_or_else(|| self.unexpected())?;
                parts.push(Part::Name(name.to_owned()));
            } else if self.rest.starts_with('[') {
                self.must("[")?;
                parts.push(self.part()?);
                self.must("]")?;
            } else {
                return Ok(Path { root: root.to_owned(), parts });
            }
        }
    }

    fn part(&mut self) -> Parsed<Part> {
        if self.sign("*") {
            return Ok(Part::Each);
        }
        match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.text(quote).map(Part::Name),
            _ => {
                let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
                let (digits, rest) = self.rest.split_at(end);
                self.rest = rest;
                let at =
                    digits.parse().map_err(|_| "`[…]` holds a number, `*` or a name in quotes".to_owned())?;
                Ok(Part::At(at))
            }
        }
    }

    fn function(&mut self, name: &str) -> Parsed<Expr> {
        self.must("(")?;
        let mut given = Vec::new();
        while !self.sign(")") {
            if !given.is_empty() {
                self.must(",")?;
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
                    Some(close) => format!("there is no function `{name}`; did you mean `{close}`?"),
                    None => format!("there is no function `{name}`; there are {}", known.join(", ")),
                });
            }
        };
        Ok(made)
    }
}

//! Parser and writer of array, row, range and hstore literals.

/// A nested array.
#[derive(Debug, PartialEq, Eq)]
pub enum ArrayNode {
    Null,
    Leaf(String),
    Branch(Vec<ArrayNode>),
}

/// Deeper than the server's limit.
const MAX_ARRAY_DEPTH: usize = 8;

/// Lower and upper bound of each dimension.
type ArrayBounds = Vec<(i64, i64)>;

/// `{1,NULL,"a b"}`, optionally with `[2:4]=` in front; returns the bounds if there are any.
pub fn array(text: &str, delimiter: char) -> Option<(Option<ArrayBounds>, ArrayNode)> {
    let (bounds, body) = match text.strip_prefix('[') {
        Some(_) => {
            let (dimensions, body) = text.split_once('=')?;
            (Some(bounds(dimensions)?), body)
        }
        None => (None, text),
    };
    let mut reader = LiteralReader { rest: body };
    let node = reader.branch(delimiter, 0)?;
    reader.rest.is_empty().then_some((bounds, node))
}

/// `[2:4][1:2]`
fn bounds(text: &str) -> Option<ArrayBounds> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let one = |part: &str| {
        let (lower, upper) = part.split_once(':')?;
        Some((lower.parse().ok()?, upper.parse().ok()?))
    };
    inner.split("][").map(one).collect()
}

/// `(1,"a b",)`: an empty field is NULL.
pub fn row(text: &str) -> Option<Vec<Option<String>>> {
    let mut reader = LiteralReader { rest: text.strip_prefix('(')?.strip_suffix(')')? };
    let mut fields = vec![reader.field(&[','])?];
    while reader.eat(',') {
        fields.push(reader.field(&[','])?);
    }
    reader.rest.is_empty().then_some(fields)
}

#[derive(Debug, PartialEq, Eq)]
pub enum Range {
    Empty,
    /// `[)` and the like, and the two bounds, if any.
    Between(String, Option<String>, Option<String>),
}

pub fn range(text: &str) -> Option<Range> {
    let mut reader = LiteralReader { rest: text };
    let range = reader.range()?;
    reader.rest.is_empty().then_some(range)
}

/// `{[1,3),[5,7)}`
pub fn multirange(text: &str) -> Option<Vec<Range>> {
    let mut reader = LiteralReader { rest: text.strip_prefix('{')?.strip_suffix('}')? };
    let mut ranges = Vec::new();
    while !reader.rest.is_empty() {
        ranges.push(reader.range()?);
        if !reader.eat(',') && !reader.rest.is_empty() {
            return None;
        }
    }
    Some(ranges)
}

/// `"a"=>"1", "b"=>NULL`
pub fn hstore(text: &str) -> Option<Vec<(String, Option<String>)>> {
    let mut reader = LiteralReader { rest: text };
    let mut pairs = Vec::new();
    while !reader.rest.is_empty() {
        let key = reader.quoted()?;
        reader.rest = reader.rest.strip_prefix("=>")?;
        let value = match reader.rest.strip_prefix("NULL") {
            Some(rest) => {
                reader.rest = rest;
                None
            }
            None => Some(reader.quoted()?),
        };
        pairs.push((key, value));
        reader.rest = reader.rest.strip_prefix(", ").unwrap_or(reader.rest);
    }
    Some(pairs)
}

/// Quotes a text as arrays, rows and ranges accept it.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

struct LiteralReader<'a> {
    rest: &'a str,
}

impl LiteralReader<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn branch(&mut self, delimiter: char, depth: usize) -> Option<ArrayNode> {
        if depth > MAX_ARRAY_DEPTH || !self.eat('{') {
            return None;
        }
        let mut nodes = Vec::new();
        if self.eat('}') {
            return Some(ArrayNode::Branch(nodes));
        }
        loop {
            nodes.push(match self.rest.chars().next()? {
                '{' => self.branch(delimiter, depth + 1)?,
                '"' => ArrayNode::Leaf(self.quoted()?),
                _ => match self.field(&[delimiter, '}'])? {
                    Some(text) if text == "NULL" => ArrayNode::Null,
                    Some(text) => ArrayNode::Leaf(text),
                    None => return None,
                },
            });
            if self.eat('}') {
                return Some(ArrayNode::Branch(nodes));
            }
            if !self.eat(delimiter) {
                return None;
            }
        }
    }

    fn range(&mut self) -> Option<Range> {
        if let Some(rest) = self.rest.strip_prefix("empty") {
            self.rest = rest;
            return Some(Range::Empty);
        }
        let open = if self.eat('[') { '[' } else { self.eat('(').then_some('(')? };
        let lower = self.field(&[','])?;
        self.eat(',').then_some(())?;
        let upper = self.field(&[']', ')'])?;
        let close = if self.eat(']') { ']' } else { self.eat(')').then_some(')')? };
        Some(Range::Between(format!("{open}{close}"), lower, upper))
    }

    /// Reads up to one of `ends`; an empty field is `None` inside. Quoted and plain parts may alternate.
    fn field(&mut self, ends: &[char]) -> Option<Option<String>> {
        let (mut text, mut any) = (String::new(), false);
        while let Some(next) = self.rest.chars().next() {
            if ends.contains(&next) {
                break;
            }
            any = true;
            if next == '"' {
                text.push_str(&self.quoted()?);
                continue;
            }
            self.eat(next);
            if next == '\\' {
                let escaped = self.rest.chars().next()?;
                self.eat(escaped);
                text.push(escaped);
            } else {
                text.push(next);
            }
        }
        Some(any.then_some(text))
    }

    /// `"a \"b\" ""c"" \\"`
    fn quoted(&mut self) -> Option<String> {
        self.eat('"').then_some(())?;
        let mut text = String::new();
        loop {
            let next = self.rest.chars().next()?;
            self.eat(next);
            match next {
                '"' if self.eat('"') => text.push('"'),
                '"' => return Some(text),
                '\\' => {
                    let escaped = self.rest.chars().next()?;
                    self.eat(escaped);
                    text.push(escaped);
                }
                other => text.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(text: &str) -> ArrayNode {
        ArrayNode::Leaf(text.to_owned())
    }

    #[test]
    fn arrays_of_every_form_are_read() {
        for (text, bounds, node) in [
            ("{}", None, ArrayNode::Branch(vec![])),
            ("{1,NULL,\"NULL\"}", None, ArrayNode::Branch(vec![leaf("1"), ArrayNode::Null, leaf("NULL")])),
            ("{\"a \\\"b\\\" \\\\\",c}", None, ArrayNode::Branch(vec![leaf("a \"b\" \\"), leaf("c")])),
            (
                "{{1,2},{3,4}}",
                None,
                ArrayNode::Branch(vec![
                    ArrayNode::Branch(vec![leaf("1"), leaf("2")]),
                    ArrayNode::Branch(vec![leaf("3"), leaf("4")]),
                ]),
            ),
            ("[2:3]={a,b}", Some(vec![(2, 3)]), ArrayNode::Branch(vec![leaf("a"), leaf("b")])),
            (
                "[0:0][-1:0]={{a,b}}",
                Some(vec![(0, 0), (-1, 0)]),
                ArrayNode::Branch(vec![ArrayNode::Branch(vec![leaf("a"), leaf("b")])]),
            ),
        ] {
            assert_eq!(array(text, ','), Some((bounds, node)), "{text}");
        }
        for text in ["", "{", "{1", "{1,}", "1}", "{1}x", "[2]={1}", "{\"a}"] {
            assert_eq!(array(text, ','), None, "{text}");
        }
    }

    #[test]
    fn rows_ranges_and_pairs_are_read() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            row("(1,\"a \"\"b\"\", c\",,\"\")"),
            Some(vec![some("1"), some("a \"b\", c"), None, some("")])
        );
        assert_eq!(row("()"), Some(vec![None]));
        assert_eq!(range("empty"), Some(Range::Empty));
        assert_eq!(range("[1,\"a,)\")"), Some(Range::Between("[)".to_owned(), some("1"), some("a,)"))));
        assert_eq!(range("(,)"), Some(Range::Between("()".to_owned(), None, None)));
        assert_eq!(multirange("{}"), Some(vec![]));
        assert_eq!(multirange("{[1,2),(3,]}").map(|ranges| ranges.len()), Some(2));
        assert_eq!(
            hstore("\"a\"=>\"1\", \"b\"=>NULL"),
            Some(vec![("a".to_owned(), some("1")), ("b".to_owned(), None)])
        );
        assert_eq!(hstore("a=>1"), None);
    }

    #[test]
    fn what_is_quoted_is_read_back() {
        for text in ["", "a", "\"", "\\", "a,b}", "NULL", "ü\n\t"] {
            assert_eq!(
                array(&format!("{{{}}}", quote(text)), ','),
                Some((None, ArrayNode::Branch(vec![leaf(text)])))
            );
            assert_eq!(row(&format!("({})", quote(text))), Some(vec![Some(text.to_owned())]));
        }
    }
}

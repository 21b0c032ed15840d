//! Makes hostile markup harmless before it is parsed: the parser's time and memory grow with the square of what is
//! nested, left open, or written into one tag.

/// Browsers stop here as well.
const DEEPEST: usize = 512;
const MOST_TAGS: usize = 300_000;
const MOST_ATTRIBUTES: usize = 200;

const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
const FORMATTING: &[&str] =
    &["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Elements that end when another of their group begins.
const GROUPS: &[&[&str]] =
    &[&["li"], &["dt", "dd"], &["td", "th"], &["tr"], &["option"], &["p"], &["tbody", "thead", "tfoot"]];

/// Markup that can be parsed in bounded time, and the JSON-LD found on the way.
pub struct Tamed {
    pub html: String,
    pub data: Vec<String>,
    /// Whether a script may fill the page.
    pub scripted: bool,
}

pub fn tame(html: &str) -> Tamed {
    let mut work = Work { out: String::with_capacity(html.len()), ..Work::default() };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        work.out.push_str(before);
        rest = work.token(from);
    }
    work.out.push_str(rest);
    Tamed { html: work.out, data: work.data, scripted: work.scripted }
}

#[derive(Default)]
struct Work {
    out: String,
    data: Vec<String>,
    open: Vec<String>,
    /// Tags that were left out since they would lie too deep.
    deep: usize,
    tags: usize,
    endless: Vec<String>,
    scripted: bool,
}

impl Work {
    /// Takes one token off the front, which begins with `<`.
    fn token<'a>(&mut self, from: &'a str) -> &'a str {
        if let Some(comment) = from.strip_prefix("<!--") {
            let short = ["->", ">"].iter().find_map(|end| comment.strip_prefix(end));
            return short.or_else(|| comment.split_once("-->").map(|(_, rest)| rest)).unwrap_or("");
        }
        if from.starts_with("<!") || from.starts_with("<?") {
            let end = from.find('>').map_or(from.len(), |at| at + 1);
            let (token, rest) = from.split_at(end);
            self.out.push_str(token);
            return rest;
        }
        let closing = from.starts_with("</");
        let initial = from.as_bytes().get(if closing { 2 } else { 1 });
        if !initial.is_some_and(u8::is_ascii_alphabetic) {
            self.out.push_str("&lt;");
            return from.get(1..).unwrap_or("");
        }
        let name_at = if closing { 2 } else { 1 };
        let name: String = from
            .get(name_at..)
            .unwrap_or("")
            .chars()
            .take_while(|c| !c.is_whitespace() && !matches!(c, '/' | '>' | '<'))
            .take(64)
            .collect::<String>()
            .to_ascii_lowercase();
        let (length, attributes) = tag_end(from);
        let (token, rest) = from.split_at(length);
        self.tags += 1;
        if closing {
            self.end(&name, token);
            rest
        } else {
            self.start(&name, token, rest, attributes)
        }
    }

    fn start<'a>(&mut self, name: &str, token: &'a str, rest: &'a str, attributes: usize) -> &'a str {
        match name {
            "script" | "style" => {
                let (inner, after) = until_close(rest, name);
                let lower = token.to_ascii_lowercase();
                if name == "script" && lower.contains("ld+json") {
                    if self.data.len() < 64 {
                        self.data.push(inner.to_owned());
                    }
                } else {
                    self.scripted |= name == "script";
                }
                return after.unwrap_or("");
            }
            "iframe" | "noembed" | "noframes" | "svg" | "canvas" | "object" => {
                if token.ends_with("/>") {
                    return rest;
                }
                // Searched for in vain once, an end tag is not searched for again.
                if !self.endless.iter().any(|known| known == name) {
                    if let (_, Some(after)) = until_close(rest, name) {
                        return after;
                    }
                    self.endless.push(name.to_owned());
                }
                return rest;
            }
            "title" | "textarea" => {
                let (inner, after) = until_close(rest, name);
                self.out.push_str(&format!("<{name}>{inner}</{name}>"));
                return after.unwrap_or("");
            }
            "template" if token.contains("shadowroot") => return rest,
            "plaintext" => return rest,
            _ => {}
        }
        if self.tags > MOST_TAGS || attributes > MOST_ATTRIBUTES {
            return rest;
        }
        if VOID.contains(&name) {
            self.out.push_str(token);
            return rest;
        }
        if let Some(group) = GROUPS.iter().find(|group| group.contains(&name))
            && self.open.last().is_some_and(|top| group.contains(&top.as_str()))
        {
            self.open.pop();
        }
        if self.open.len() >= DEEPEST {
            self.deep += 1;
            return rest;
        }
        self.open.push(name.to_owned());
        self.out.push_str(token);
        rest
    }

    fn end(&mut self, name: &str, token: &str) {
        if self.deep > 0 {
            self.deep -= 1;
            return;
        }
        let Some(at) = self.open.iter().rposition(|open| open == name) else {
            // A stray end tag opens a paragraph or a break at most.
            if matches!(name, "p" | "br") || self.tags > MOST_TAGS {
                self.out.push(' ');
            }
            return;
        };
        if FORMATTING.contains(&name) {
            // Ends alone; blocks within it stay open.
            self.open.remove(at);
        } else {
            // What is left open would be opened again in everything that follows.
            for left in self.open.drain(at..).skip(1).rev().filter(|left| FORMATTING.contains(&left.as_str()))
            {
                self.out.push_str("</");
                self.out.push_str(&left);
                self.out.push('>');
            }
        }
        self.out.push_str(token);
    }
}

/// Length of the tag at the front and how many attributes it seems to have.
fn tag_end(from: &str) -> (usize, usize) {
    let mut quote = None;
    let mut attributes = 0;
    let mut before = b' ';
    for (at, byte) in from.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (None, b'>') => return (at + 1, attributes),
            (None, b' ' | b'\t' | b'\n' | b'\r' | b'/') => attributes += 1,
            _ => {}
        }
        if quote.is_none() && !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    // A quote that never ends, most likely: the tag ends at its first bracket then.
    from.find('>').map_or((from.len(), attributes), |at| (at + 1, 0))
}

/// What stands before the end tag of an element whose content is no markup, and what follows it.
fn until_close<'a>(text: &'a str, name: &str) -> (&'a str, Option<&'a str>) {
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("</")) {
        let at = from + found;
        let after = text.get(at + 2..).unwrap_or("");
        if after.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name)) {
            let rest = after.find('>').and_then(|end| after.get(end + 1..)).unwrap_or("");
            return (text.get(..at).unwrap_or(""), Some(rest));
        }
        from = at + 2;
    }
    (text, None)
}

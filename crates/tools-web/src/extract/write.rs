//! Writes what is kept as plain HTML and as text.

use super::measure::inline;
use super::tree::{Element, Tree};
use url::Url;

const KEPT: &[&str] = &[
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "dd",
    "del",
    "dl",
    "dt",
    "em",
    "figcaption",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "ins",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
    "var",
];
const CELLS: &[&str] = &["table", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"];

#[derive(Default)]
pub struct Written {
    pub html: String,
    pub text: String,
}

pub struct Writer<'a> {
    pub tree: &'a Tree,
    pub gone: &'a [bool],
    pub base: &'a Url,
}

impl Writer<'_> {
    pub fn write(&self, roots: &[usize]) -> Written {
        let mut out = Written::default();
        for root in roots {
            self.one(*root, &mut out);
        }
        out.text = tidy(&out.text);
        out
    }

    fn one(&self, root: usize, out: &mut Written) {
        // End tags that are due, each at the place where its subtree ends.
        let mut due: Vec<(usize, &str, bool)> = Vec::new();
        // The tables around this place, and whether each only arranges the page.
        let mut layout: Vec<(usize, bool)> = Vec::new();
        let mut at = root;
        let end = self.tree.end(root);
        while at < end {
            close(&mut due, at, out);
            layout.retain(|(until, _)| *until > at);
            if self.gone.get(at).copied().unwrap_or(false) {
                at = self.tree.end(at);
                continue;
            }
            if let Some(text) = self.tree.text(at) {
                escape(text, &mut out.html);
                out.text.push_str(&text.replace(['\n', '\r', '\t'], " "));
            } else if let Some(element) = self.tree.element(at) {
                if element.tag == "pre" {
                    self.code(at, element, out);
                    at = self.tree.end(at);
                    continue;
                }
                self.open(at, element, &mut due, &mut layout, out);
            }
            at += 1;
        }
        close(&mut due, usize::MAX, out);
    }

    fn open<'t>(
        &'t self,
        at: usize,
        element: &'t Element,
        due: &mut Vec<(usize, &'t str, bool)>,
        layout: &mut Vec<(usize, bool)>,
        out: &mut Written,
    ) {
        let until = self.tree.end(at);
        let tag = element.tag.as_str();
        let block = !inline(tag);
        if block || tag == "br" {
            out.text.push('\n');
        }
        if tag == "table" {
            layout.push((until, !self.is_data(at)));
        }
        let kept =
            KEPT.contains(&tag) && !(CELLS.contains(&tag) && layout.last().is_some_and(|(_, only)| *only));
        match tag {
            "br" | "hr" => out.html.push_str(if tag == "br" { "<br>" } else { "<hr>" }),
            "img" => self.image(element, out),
            "a" => match element.attribute("href").and_then(|href| self.link(href)) {
                Some(href) if !due.iter().any(|(_, tag, _)| *tag == "a") => {
                    out.html.push_str("<a href=\"");
                    escape(&href, &mut out.html);
                    out.html.push_str("\">");
                    due.push((until, "a", false));
                }
                _ => {}
            },
            _ if kept => {
                out.html.push('<');
                out.html.push_str(tag);
                for name in ["colspan", "rowspan", "start"] {
                    let number = element.attribute(name).and_then(|value| value.trim().parse::<u16>().ok());
                    if let Some(number) = number.filter(|number| *number < 1000) {
                        out.html.push_str(&format!(" {name}=\"{number}\""));
                    }
                }
                out.html.push('>');
                due.push((until, tag, block));
            }
            _ if block => {
                out.html.push_str("<div>");
                due.push((until, "div", true));
            }
            _ => {}
        }
    }

    /// A table of data, not one that only arranges the page.
    fn is_data(&self, at: usize) -> bool {
        let (mut rows, mut cells, mut big) = (0, 0, 0);
        for place in self.tree.range(at).skip(1) {
            let Some(element) = self.tree.element(place) else { continue };
            match element.tag.as_str() {
                "table" | "form" => return false,
                "th" | "caption" => {
                    return self
                        .tree
                        .range(at)
                        .skip(1)
                        .all(|at| self.tree.element(at).is_none_or(|element| element.tag != "table"));
                }
                "tr" => rows += 1,
                "td" => cells += 1,
                "h1" | "h2" | "h3" | "article" | "section" | "pre" => big += 1,
                _ => {}
            }
        }
        rows >= 1 && cells >= 2 * rows && big == 0
    }

    fn image(&self, element: &Element, out: &mut Written) {
        let source = ["src", "data-src"]
            .iter()
            .filter_map(|name| element.attribute(name))
            .find_map(|src| self.link(src));
        let Some(source) = source else { return };
        out.html.push_str("<img src=\"");
        escape(&source, &mut out.html);
        out.html.push_str("\" alt=\"");
        escape(element.attribute("alt").unwrap_or(""), &mut out.html);
        out.html.push_str("\">");
    }

    fn link(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.to_string())
    }

    /// A block of code, line by line as it is shown, with its language and without line numbers or buttons.
    fn code(&self, at: usize, element: &Element, out: &mut Written) {
        let mut code = String::new();
        let mut place = at + 1;
        let mut lines: Vec<usize> = Vec::new();
        while place < self.tree.end(at) {
            let due = lines.iter().filter(|until| **until <= place).count();
            lines.truncate(lines.len() - due);
            if due > 0 && !code.ends_with('\n') && !code.is_empty() {
                code.push('\n');
            }
            if let Some(text) = self.tree.text(place) {
                code.push_str(text);
            } else if let Some(inner) = self.tree.element(place) {
                if inner.is(&["button", "style"])
                    || inner.named(&[
                        "lineno",
                        "linenos",
                        "line number",
                        "line numbers",
                        "gutter",
                        "linenumber",
                    ])
                {
                    place = self.tree.end(place);
                    continue;
                }
                if inner.tag == "br" {
                    code.push('\n');
                } else if inner.is(&["div", "p", "li", "tr"]) {
                    if !code.ends_with('\n') && !code.is_empty() {
                        code.push('\n');
                    }
                    lines.push(self.tree.end(place));
                }
            }
            place += 1;
        }
        let code = code.trim_matches('\n').trim_end();
        if code.is_empty() {
            return;
        }
        out.html.push_str("<pre><code");
        if let Some(language) = self.language(at, element) {
            out.html.push_str(&format!(" class=\"language-{language}\""));
        }
        out.html.push('>');
        escape(code, &mut out.html);
        out.html.push_str("</code></pre>");
        out.text.push('\n');
        out.text.push_str(code);
        out.text.push('\n');
    }

    /// Named by the block itself, the code within, or one of two wrappers.
    fn language(&self, at: usize, element: &Element) -> Option<String> {
        let inner = self
            .tree
            .children(at)
            .find_map(|child| self.tree.element(child).filter(|child| child.tag == "code"));
        let around = self.tree.ancestors(at).take(2).filter_map(|at| self.tree.element(at));
        let mut all = std::iter::once(element).chain(inner).chain(around);
        all.find_map(|element| {
            let named = element.attribute("data-lang").or_else(|| element.attribute("data-language"));
            let class = element.attribute("class").unwrap_or("");
            let mut words = class.split_ascii_whitespace();
            let found = named.or_else(|| {
                words.find_map(|word| {
                    ["language-", "lang-", "highlight-source-", "highlight-", "brush:"]
                        .iter()
                        .find_map(|start| word.strip_prefix(start))
                })
            })?;
            let found = found.to_ascii_lowercase();
            let plain =
                found.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '.'));
            (plain && !found.is_empty() && found.len() < 20 && found != "default").then_some(found)
        })
    }
}

/// A text that the page gives as data.
pub fn paragraphs(text: &str) -> Written {
    let mut out = Written { text: tidy(text), ..Written::default() };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        out.html.push_str("<p>");
        escape(line.trim(), &mut out.html);
        out.html.push_str("</p>");
    }
    out
}

fn close(due: &mut Vec<(usize, &str, bool)>, at: usize, out: &mut Written) {
    while let Some((until, tag, block)) = due.last().copied() {
        if until > at {
            return;
        }
        due.pop();
        out.html.push_str("</");
        out.html.push_str(tag);
        out.html.push('>');
        if block {
            out.text.push('\n');
        }
        if matches!(tag, "td" | "th") {
            out.text.push(' ');
        }
    }
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
}

/// At most one empty line, no white space at the ends of lines.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty > 1 { "\n\n" } else { "\n" });
        }
        empty = 0;
        out.push_str(line);
    }
    out
}

//! HTML to Markdown with the least markup that preserves the structure.
//!
//! A single walk over the parsed tree. No library is used because this needs tables with spans, code languages,
//! mathematics and limits for hostile pages, and the page is parsed already.

mod code;
mod inline;
mod line_writer;
mod markdown_table;

use dom_query::{Document, Element, NodeData, NodeRef};
use line_writer::LineWriter;
use url::Url;

/// Rendering options.
#[derive(Clone, Copy, Debug)]
pub struct MarkdownStyle {
    /// Words only: no markup, no URLs.
    pub plain: bool,
    /// Whether links keep their URLs.
    pub links: bool,
    pub images: bool,
    /// Bytes after which the walk stops.
    pub limit: usize,
}

impl Default for MarkdownStyle {
    fn default() -> Self {
        Self { plain: false, links: true, images: true, limit: 4 << 20 }
    }
}

/// Maximum nesting depth; deeper elements are rendered as plain text.
const MAX_DEPTH: usize = 160;

/// Renders a document parsed from [`crate::html_limits::limit_html`] HTML.
pub fn render_document(document: &Document, base: &Url, style: MarkdownStyle) -> String {
    let mut page = MarkdownWalker {
        writer: LineWriter::new(style.limit, style.plain),
        base,
        style,
        depth: 0,
        lists: Vec::new(),
    };
    page.children(document.root());
    page.writer.finish()
}

/// Renders HTML.
#[cfg(test)]
pub fn render_html(html: &str, base: &Url, style: MarkdownStyle) -> String {
    render_document(&parse_html(html), base, style)
}

/// Parses HTML into a tree of bounded depth.
pub fn parse_html(html: &str) -> Document {
    Document::from(crate::html_limits::limit_html(html).as_ref())
}

/// State of the walk.
struct MarkdownWalker<'a> {
    writer: LineWriter,
    base: &'a Url,
    style: MarkdownStyle,
    depth: usize,
    /// Number of the next item for every open list; None for bulleted lists.
    lists: Vec<Option<i64>>,
}

impl MarkdownWalker<'_> {
    fn children(&mut self, node: NodeRef<'_>) {
        if self.depth >= MAX_DEPTH {
            return self.flat_text(node);
        }
        self.depth += 1;
        let mut child = node.first_child();
        while let Some(here) = child {
            if self.writer.is_full() {
                break;
            }
            self.node(here);
            child = here.next_sibling();
        }
        self.depth -= 1;
    }

    fn node(&mut self, node: NodeRef<'_>) {
        let Some(element) = node.element_ref() else {
            node.query(|inner| {
                if let NodeData::Text { contents } = &inner.data {
                    self.writer.push_text(contents);
                }
            });
            return;
        };
        self.element(node, &element);
    }

    fn element(&mut self, node: NodeRef<'_>, element: &Element) {
        let name: &str = &element.name.local;
        if self.is_skipped(node, element, name) {
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(node, name),
            "p" | "figure" | "address" | "fieldset" | "details" => self.block(node, 2),
            "ul" | "ol" | "menu" | "dir" => self.list(node, element, name),
            "li" => self.item(node, element),
            "dt" | "summary" | "figcaption" | "caption" | "legend" => self.term(node, name),
            "dd" => self.prefixed_block(node, ": ", "  "),
            "blockquote" => {
                self.writer.end_line(2);
                self.prefixed_block(node, "> ", "> ");
                self.writer.end_line(2);
            }
            "pre" | "listing" | "xmp" => self.code_block(node),
            "table" => self.table(node),
            "hr" => {
                self.writer.end_line(2);
                self.writer.push_raw(if self.style.plain { "" } else { "---" });
                self.writer.end_line(2);
            }
            "br" => self.writer.break_line(),
            "div" | "section" | "article" | "main" | "header" | "footer" | "nav" | "aside" | "body"
            | "form" | "dl" | "center" | "hgroup" | "search" => self.block(node, 2),
            "tr" => self.block(node, 1),
            "td" | "th" | "option" => {
                self.writer.push_space();
                self.children(node);
                self.writer.push_space();
            }
            _ => self.inline_element(node, element, name),
        }
    }

    fn block(&mut self, node: NodeRef<'_>, ends: usize) {
        self.writer.end_line(ends);
        self.children(node);
        self.writer.end_line(ends);
    }

    fn heading(&mut self, node: NodeRef<'_>, name: &str) {
        if self.writer.is_folded() {
            return self.block(node, 2);
        }
        let mark = match name {
            "h1" => "# ",
            "h2" => "## ",
            "h3" => "### ",
            "h4" => "#### ",
            "h5" => "##### ",
            _ => "###### ",
        };
        self.writer.end_line(2);
        self.writer.open_mark(if self.style.plain { "" } else { mark });
        self.writer.fold();
        self.children(node);
        self.writer.unfold();
        self.writer.close_mark("");
        self.writer.end_line(2);
    }

    fn list(&mut self, node: NodeRef<'_>, element: &Element, name: &str) {
        let nested = !self.lists.is_empty();
        let start = attribute(element, "start").and_then(|start| start.trim().parse().ok());
        self.lists.push((name == "ol").then(|| start.unwrap_or(1)));
        self.writer.end_line(if nested { 1 } else { 2 });
        // A list directly inside a list, without an item around it.
        let bare = node.parent().is_some_and(|parent| parent.has_name("ul") || parent.has_name("ol"));
        if bare {
            self.writer.push_prefix("  ".to_owned(), "  ");
        }
        self.children(node);
        if bare {
            self.writer.pop_prefix();
        }
        self.lists.pop();
        self.writer.end_line(if nested { 1 } else { 2 });
    }

    fn item(&mut self, node: NodeRef<'_>, element: &Element) {
        let value = attribute(element, "value").and_then(|value| value.trim().parse().ok());
        let (first, rest) = match self.lists.last_mut() {
            Some(Some(next)) => {
                let number = value.unwrap_or(*next);
                *next = number.saturating_add(1);
                (format!("{number}. "), "   ")
            }
            _ => ("- ".to_owned(), "  "),
        };
        self.writer.end_line(1);
        self.writer.push_prefix(first, rest);
        self.children(node);
        self.writer.pop_prefix();
        self.writer.end_line(1);
        self.writer.limit_breaks(1);
    }

    fn term(&mut self, node: NodeRef<'_>, name: &str) {
        let (mark, ends) = match name {
            "dt" | "summary" if !self.style.plain => ("**", 1),
            _ => ("", 2),
        };
        self.writer.end_line(2);
        let mark = if inline::has_emphasis(node) { "" } else { mark };
        self.writer.open_mark(mark);
        self.writer.fold();
        self.children(node);
        self.writer.unfold();
        self.writer.close_mark(mark);
        self.writer.end_line(ends);
    }

    fn prefixed_block(&mut self, node: NodeRef<'_>, first: &str, rest: &'static str) {
        self.writer.end_line(1);
        self.writer.push_prefix(
            if self.style.plain { String::new() } else { first.to_owned() },
            if self.style.plain { "" } else { rest },
        );
        self.children(node);
        self.writer.pop_prefix();
        self.writer.end_line(1);
    }

    /// Whether an element is invisible or already handled.
    fn is_skipped(&mut self, node: NodeRef<'_>, element: &Element, name: &str) -> bool {
        match name {
            "script" => {
                self.tex_script(node, element);
                true
            }
            "style" | "noscript" | "template" | "svg" | "iframe" | "object" | "embed" | "canvas"
            | "audio" | "head" | "button" | "select" | "textarea" | "datalist" | "map" | "rp" | "dialog"
            | "link" | "meta" | "title" => true,
            "math" => {
                self.math(node, element);
                true
            }
            _ => (is_hidden(element) && !holds_math(element)) || code::is_line_numbers(element),
        }
    }

    /// Text without structure, for elements that are nested too deep.
    fn flat_text(&mut self, node: NodeRef<'_>) {
        for inner in node.descendants_it() {
            if self.writer.is_full() {
                return;
            }
            let silent = inner.parent().is_some_and(|parent| {
                ["script", "style", "template", "noscript"].iter().any(|name| parent.has_name(name))
            });
            if !silent {
                inner.query(|inner| {
                    if let NodeData::Text { contents } = &inner.data {
                        self.writer.push_text(contents);
                    }
                });
                self.writer.push_space();
            }
        }
    }
}

fn attribute<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    element.attrs.iter().find(|attr| &*attr.name.local == name).map(|attr| attr.value.as_ref())
}

fn has_class(element: &Element, wanted: impl Fn(&str) -> bool) -> bool {
    attribute(element, "class").is_some_and(|classes| classes.split_ascii_whitespace().any(wanted))
}

/// Whether the page hides the element.
pub fn is_hidden(element: &Element) -> bool {
    let styled = attribute(element, "style").is_some_and(|style| {
        let style: String =
            style.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
        let zero = |name: &str| {
            style.split(';').any(|rule| {
                rule.strip_prefix(name).is_some_and(|value| {
                    let value = value.trim_end_matches("!important");
                    value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%').parse()
                        == Ok(0.0_f32)
                })
            })
        };
        style.contains("display:none")
            || style.contains("visibility:hidden")
            || zero("font-size:")
            || zero("opacity:")
    });
    let attr = attribute(element, "hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"));
    styled
        || attr
        || has_class(element, |class| matches!(class, "katex-html" | "MathJax_Preview" | "MathJax_CHTML"))
}

/// Formulas are often in a hidden element beside their image.
fn holds_math(element: &Element) -> bool {
    has_class(element, |class| class.starts_with("mwe-math"))
}

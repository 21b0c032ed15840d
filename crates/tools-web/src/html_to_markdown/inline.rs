//! Inline elements: links, images, emphasis, code, formulas.

use super::code::code_text;
use super::{MarkdownWalker, attribute, has_class};
use dom_query::{Element, NodeRef};
use url::Url;

/// Maximum length of a URL; a longer one is dropped and its text kept.
const MAX_HREF_LEN: usize = 2_000;
/// Number of descendants that are searched for blocks.
const MAX_DESCENDANTS: usize = 64;

impl MarkdownWalker<'_> {
    pub(super) fn inline_element(&mut self, node: NodeRef<'_>, element: &Element, name: &str) {
        match name {
            "a" => self.link(node, element),
            "img" => self.image(element),
            "video" => self.video(element),
            "strong" | "b" => self.emphasis(node, "**"),
            "em" | "i" | "cite" | "dfn" => self.emphasis(node, "*"),
            "del" | "s" | "strike" => self.emphasis(node, "~~"),
            "code" | "kbd" | "samp" | "tt" => self.inline_code(&code_text(node)),
            "q" => {
                self.writer.push_raw("\u{201c}");
                self.children(node);
                self.writer.push_raw("\u{201d}");
            }
            "sup" => self.superscript(node),
            "rt" => {
                self.writer.push_raw("(");
                self.children(node);
                self.writer.push_raw(")");
            }
            "input" => self.checkbox(element),
            _ => self.children(node),
        }
    }

    fn emphasis(&mut self, node: NodeRef<'_>, mark: &'static str) {
        if self.style.plain || has_block(node) || is_nested_emphasis(node) {
            return self.children(node);
        }
        self.writer.open_mark(mark);
        self.children(node);
        self.writer.close_mark(mark);
    }

    fn link(&mut self, node: NodeRef<'_>, element: &Element) {
        if is_heading_anchor(node, element) {
            return;
        }
        let address = attribute(element, "href").and_then(|href| absolute_href(self.base, href));
        let Some(address) = address.filter(|_| self.style.links && !self.style.plain) else {
            return self.children(node);
        };
        if has_large_block(node) {
            return self.children(node);
        }
        let heading = heading_in(node);
        if let Some(mark) = heading.filter(|_| !self.writer.is_folded()) {
            self.writer.end_line(2);
            self.writer.open_mark(mark);
        }
        self.writer.open_mark("[");
        self.writer.fold();
        self.children(node);
        self.writer.unfold();
        self.writer.close_mark(&format!("]({address})"));
        if heading.is_some_and(|_| !self.writer.is_folded()) {
            self.writer.close_mark("");
            self.writer.end_line(2);
        }
    }

    fn image(&mut self, element: &Element) {
        if !self.style.images
            || is_tracking_pixel(element)
            || has_class(element, |class| class.starts_with("mwe-math-fallback"))
        {
            return;
        }
        let alt = attribute(element, "alt").unwrap_or_default();
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ").replace(['[', ']'], "");
        if self.style.plain {
            return self.writer.push_text(&alt);
        }
        match image_source(element).and_then(|src| absolute_href(self.base, src)) {
            Some(src) => self.writer.push_raw(&format!("![{alt}]({src})")),
            None => self.writer.push_text(&alt),
        }
    }

    fn video(&mut self, element: &Element) {
        let src = attribute(element, "src").and_then(|src| absolute_href(self.base, src));
        if let Some(src) = src.filter(|_| self.style.links && !self.style.plain) {
            self.writer.push_raw(&format!("[video]({src})"));
        }
    }

    /// `10<sup>6</sup>` must not become 106.
    fn superscript(&mut self, node: NodeRef<'_>) {
        let linked = node.descendants_it().take(MAX_DESCENDANTS).any(|inner| inner.has_name("a"));
        if linked || self.style.plain {
            return self.children(node);
        }
        self.writer.open_mark("^");
        self.children(node);
        self.writer.close_mark("");
    }

    fn checkbox(&mut self, element: &Element) {
        if attribute(element, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox")) {
            self.writer.push_raw(if attribute(element, "checked").is_some() { "[x]" } else { "[ ]" });
            self.writer.push_space();
        }
    }

    /// Renders a formula: its TeX if the page has it, otherwise its text.
    pub(super) fn math(&mut self, node: NodeRef<'_>, element: &Element) {
        let tex = node.descendants_it().find(|inner| {
            let element = inner.element_ref();
            let encoding = element.as_deref().and_then(|element| attribute(element, "encoding"));
            inner.has_name("annotation") && encoding.is_some_and(|encoding| encoding.contains("tex"))
        });
        let tex = tex.map(|inner| inner.text().to_string());
        let tex = tex.or_else(|| attribute(element, "alttext").map(str::to_owned));
        let display = attribute(element, "display") == Some("block");
        match tex {
            Some(tex) => self.tex(&tex, display),
            None => self.children(node),
        }
    }

    /// `MathJax` keeps formulas in scripts.
    pub(super) fn tex_script(&mut self, node: NodeRef<'_>, element: &Element) {
        if let Some(kind) = attribute(element, "type").filter(|kind| kind.starts_with("math/tex")) {
            self.tex(&node.text(), kind.contains("mode=display"));
        }
    }

    fn tex(&mut self, tex: &str, display: bool) {
        let tex = tex.split_whitespace().collect::<Vec<_>>().join(" ");
        if tex.is_empty() {
            return;
        }
        let tex = if self.writer.is_cell() { tex.replace('|', "\\vert ") } else { tex };
        if display && !self.writer.is_folded() {
            self.writer.end_line(2);
            self.writer.push_raw(&format!("$${tex}$$"));
            self.writer.end_line(2);
        } else {
            self.writer.push_raw(&format!("${tex}$"));
        }
    }
}

/// Absolute URL for Markdown; None for scripts, blobs and anchors on the same page.
pub fn absolute_href(base: &Url, href: &str) -> Option<String> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') || href.len() > MAX_HREF_LEN {
        return None;
    }
    let url = base.join(href).ok()?;
    if !matches!(url.scheme(), "http" | "https" | "mailto" | "tel" | "ftp" | "magnet") {
        return None;
    }
    let text = String::from(url);
    if text.contains(['(', ')', '<', '>', ' ']) {
        let safe = [("(", "%28"), (")", "%29"), ("<", "%3C"), (">", "%3E"), (" ", "%20")];
        return Some(safe.iter().fold(text, |text, (bad, good)| text.replace(bad, good)));
    }
    Some(text)
}

/// Source of an image; lazy-loading pages keep it in other attributes.
fn image_source(element: &Element) -> Option<&str> {
    let first_of_set = |set: &'static str| {
        attribute(element, set)
            .and_then(|set| set.split_ascii_whitespace().next())
            .map(|src| src.trim_end_matches(','))
    };
    ["src", "data-src", "data-original", "data-lazy-src"]
        .into_iter()
        .filter_map(|name| attribute(element, name))
        .chain(["srcset", "data-srcset"].into_iter().filter_map(first_of_set))
        .map(str::trim)
        .find(|src| !src.is_empty() && !src.starts_with("data:") && !src.starts_with("blob:"))
}

/// Images of one pixel are trackers.
fn is_tracking_pixel(element: &Element) -> bool {
    let small =
        |name| attribute(element, name).is_some_and(|size| matches!(size.trim(), "0" | "1" | "0px" | "1px"));
    small("width") || small("height")
}

/// Whether a link is the anchor of a heading.
fn is_heading_anchor(node: NodeRef<'_>, element: &Element) -> bool {
    let here = attribute(element, "href").is_some_and(|href| href.contains('#'));
    let anchor = |class: &str| {
        matches!(class, "headerlink" | "anchor" | "anchorjs-link" | "hash-link" | "header-anchor")
    };
    here && (has_class(element, anchor) || matches!(node.text().trim(), "¶" | "#" | "§" | "🔗"))
}

/// Whether an emphasis is nested in one of the same kind.
fn is_nested_emphasis(node: NodeRef<'_>) -> bool {
    let group = |node: &NodeRef<'_>| match node.node_name().as_deref() {
        Some("b" | "strong") => 1,
        Some("i" | "em" | "cite" | "dfn") => 2,
        Some("del" | "s" | "strike") => 3,
        _ => 0,
    };
    let own = group(&node);
    node.ancestors(Some(8)).iter().any(|outer| group(outer) == own)
}

/// Whether emphasis is inside, so that more around it would be ambiguous.
pub fn has_emphasis(node: NodeRef<'_>) -> bool {
    has_descendant(node, |name| matches!(name, "b" | "strong" | "em" | "i" | "pre"))
}

fn has_block(node: NodeRef<'_>) -> bool {
    has_descendant(node, |name| {
        matches!(
            name,
            "p" | "div"
                | "ul"
                | "ol"
                | "li"
                | "table"
                | "pre"
                | "blockquote"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
                | "section"
                | "article"
                | "dl"
                | "hr"
                | "figure"
        )
    })
}

/// Whether it contains blocks that do not fit into a link text.
fn has_large_block(node: NodeRef<'_>) -> bool {
    has_descendant(node, |name| matches!(name, "table" | "pre" | "ul" | "ol" | "dl" | "blockquote" | "a"))
}

fn heading_in(node: NodeRef<'_>) -> Option<&'static str> {
    let marks =
        [("h1", "# "), ("h2", "## "), ("h3", "### "), ("h4", "#### "), ("h5", "##### "), ("h6", "###### ")];
    let mut inside = node.descendants_it().take(MAX_DESCENDANTS);
    inside.find_map(|inner| marks.iter().find(|(name, _)| inner.has_name(name)).map(|(_, mark)| *mark))
}

fn has_descendant(node: NodeRef<'_>, wanted: impl Fn(&str) -> bool) -> bool {
    node.descendants_it()
        .take(MAX_DESCENDANTS)
        .any(|inner| inner.element_ref().is_some_and(|element| wanted(&element.name.local)))
}

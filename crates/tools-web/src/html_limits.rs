//! Limits the size and nesting of HTML before it is parsed. For deeply nested tags parsers need quadratic time and tree
//! walks need stack; an unclosed formatting element (`<b>`) is reopened in every following block; a tag's attributes
//! are compared with each other.
//!
//! The scan reads tags as the HTML tokenizer does. Where it cannot know whether a tokenizer would see text or tags, it
//! counts tags: that may cost a tag on an unusual page but never lets a deep one through.

use std::borrow::Cow;

/// Maximum nesting depth; deeper elements lose their tags and keep their text.
const MAX_DEPTH: usize = 256;
/// Maximum attributes of a tag; a tag with more is dropped.
const MAX_TAG_ATTRIBUTES: usize = 200;
/// Maximum elements of a page; later ones lose their tags and keep their text.
const MAX_ELEMENTS: usize = 300_000;
/// Maximum attributes of a page; after that only tags without attributes are kept.
const MAX_ATTRIBUTES: usize = 600_000;
/// Maximum number of formatting elements that a parser may have to reopen.
const MAX_REOPENED: usize = 100_000;

/// Returns the page without the tags that would make it costly.
pub fn limit_html(html: &str) -> Cow<'_, str> {
    let mut scan = TagScanner { html, open: Vec::with_capacity(64), ..TagScanner::default() };
    let (mut kept, mut from) = (String::new(), 0);
    while let Some(edit) = scan.next_tag() {
        if edit.drop || !edit.insert.is_empty() {
            kept.push_str(html.get(from..edit.at).unwrap_or_default());
            kept.push_str(&edit.insert);
            from = if edit.drop { scan.at } else { edit.at };
        }
    }
    if from == 0 && kept.is_empty() {
        return Cow::Borrowed(html);
    }
    kept.push_str(html.get(from..).unwrap_or_default());
    Cow::Owned(kept)
}

/// Edit of one tag.
#[derive(Default)]
struct Edit {
    at: usize,
    drop: bool,
    insert: String,
}

#[derive(Default)]
struct TagScanner<'a> {
    html: &'a str,
    at: usize,
    /// Names of the open elements.
    open: Vec<&'a str>,
    /// Number of open elements in which `<style>` and the like do not start raw text.
    foreign_open: usize,
    /// Number of open elements that parsers reopen when they are left unclosed.
    formatting_open: usize,
    reopened: usize,
    elements: usize,
    attributes: usize,
    /// Names of elements without an end tag in the rest of the page.
    unterminated: Vec<&'a str>,
    /// Whether the head has ended.
    head_ended: bool,
    /// Whether the page closes elements in an order that parsers treat differently.
    has_misnesting: bool,
}

impl<'a> TagScanner<'a> {
    /// Returns the next tag's edit. Afterwards `at` is behind the tag.
    fn next_tag(&mut self) -> Option<Edit> {
        loop {
            let start = self.at + self.rest().find('<')?;
            self.at = start + 1;
            let next = self.byte(self.at);
            if next == Some(b'!') {
                self.skip_comment();
            } else if next == Some(b'?') {
                self.skip_past(">");
            } else if next == Some(b'/') {
                self.at += 1;
                if !self.byte(self.at).is_some_and(|byte| byte.is_ascii_alphabetic()) {
                    self.skip_past(">");
                    continue;
                }
                let name = self.read_name();
                self.skip_attributes();
                return Some(Edit { at: start, drop: false, insert: self.end_tag(name) });
            } else if next.is_some_and(|byte| byte.is_ascii_alphabetic()) {
                let name = self.read_name();
                let (alone, attributes) = self.skip_attributes();
                if self.exceeds_limits(attributes) || self.is_dropped(name, start) {
                    return Some(Edit { at: start, drop: true, ..Edit::default() });
                }
                let edit = self.start_tag(name, alone);
                return Some(Edit { at: start, ..edit });
            }
        }
    }

    /// Counts the tag; whether it exceeds a limit.
    fn exceeds_limits(&mut self, attributes: usize) -> bool {
        self.elements += 1;
        self.attributes += attributes;
        let many = self.attributes > MAX_ATTRIBUTES && attributes > 0;
        attributes > MAX_TAG_ATTRIBUTES || self.elements > MAX_ELEMENTS || many
    }

    /// Tags that would hide what follows: a declarative shadow root, which browsers show in place, and `plaintext`.
    fn is_dropped(&self, name: &str, start: usize) -> bool {
        let shown = || self.html.get(start..self.at).is_some_and(|tag| tag.contains("shadowroot"));
        name.eq_ignore_ascii_case("template") && shown() || name.eq_ignore_ascii_case("plaintext")
    }

    fn rest(&self) -> &'a str {
        self.html.get(self.at..).unwrap_or_default()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.html.as_bytes().get(at).copied()
    }

    fn skip_past(&mut self, end: &str) {
        self.at = self.rest().find(end).map_or(self.html.len(), |found| self.at + found + end.len());
    }

    fn skip_comment(&mut self) {
        self.at += 1;
        if !self.rest().starts_with("--") {
            return self.skip_past(">");
        }
        self.at += 2;
        for empty in [">", "->"] {
            if self.rest().starts_with(empty) {
                self.at += empty.len();
                return;
            }
        }
        // A search for each of the two ends would scan the whole rest at every comment if one of them never occurs.
        while let Some(found) = self.rest().find("--") {
            self.at += found + 1;
            for end in ["->", "-!>"] {
                if self.rest().starts_with(end) {
                    self.at += end.len();
                    return;
                }
            }
        }
        self.at = self.html.len();
    }

    fn read_name(&mut self) -> &'a str {
        let rest = self.rest();
        let end =
            rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>')).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Skips to the end of the tag; whether it is self-closing, and an upper bound of its attributes.
    fn skip_attributes(&mut self) -> (bool, usize) {
        let (mut slash, mut count) = (false, 0);
        while let Some(byte) = self.byte(self.at) {
            self.at += 1;
            match byte {
                b'>' => return (slash, count),
                b'=' => {
                    self.skip_value();
                    count += 1;
                }
                b'/' => count += 1,
                byte if byte.is_ascii_whitespace() => count += 1,
                _ => {}
            }
            slash = byte == b'/';
        }
        (false, count)
    }

    fn skip_value(&mut self) {
        while self.byte(self.at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
        match self.byte(self.at) {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                self.skip_past(if quote == b'"' { "\"" } else { "'" });
            }
            _ => {
                let rest = self.rest();
                let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len());
                self.at += end;
            }
        }
    }

    /// Records a start tag.
    fn start_tag(&mut self, name: &'a str, self_closing: bool) -> Edit {
        let kind = ElementKind::of(name);
        let mut edit = Edit::default();
        match kind {
            ElementKind::RawText if !self.has_misnesting && self.foreign_open == 0 => {
                self.skip_text_of(name);
                return edit;
            }
            ElementKind::Void => return edit,
            // Parsers move noscript content out of the head and end the head with it.
            ElementKind::Noscript if !self.head_ended => {
                self.skip_element(name);
                return Edit { drop: true, ..edit };
            }
            // Raw text up to its end tag; without one it would swallow the rest of the page.
            ElementKind::Embedded => {
                if !self_closing {
                    self.skip_element(name);
                }
                return Edit { drop: true, ..edit };
            }
            ElementKind::Formatting if self.reopened > MAX_REOPENED => return Edit { drop: true, ..edit },
            ElementKind::Formatting => {}
            _ => {
                self.reopened += self.formatting_open;
                if self.reopened > MAX_REOPENED {
                    edit.insert = self.close_formatting(0);
                }
            }
        }
        self.head_ended |= name.eq_ignore_ascii_case("body");
        if (kind == ElementKind::OptionalEnd && self.foreign_open == 0)
            || (self_closing && self.foreign_open > 0)
        {
            return edit;
        }
        if self.open.len() >= MAX_DEPTH {
            return Edit { drop: true, ..edit };
        }
        self.foreign_open += usize::from(kind == ElementKind::Foreign);
        self.formatting_open += usize::from(kind == ElementKind::Formatting);
        self.open.push(name);
        edit
    }

    /// End tags for formatting elements that are open from this index on and would be reopened.
    fn close_formatting(&mut self, from: usize) -> String {
        let styled = |name: &&str| ElementKind::of(name) == ElementKind::Formatting;
        let late = self.open.split_off(from.min(self.open.len()));
        let (ended, kept): (Vec<&str>, Vec<&str>) = late.into_iter().partition(styled);
        self.open.extend(kept);
        self.formatting_open -= ended.len();
        ended.iter().rev().map(|name| format!("</{name}>")).collect()
    }

    /// Skips past the end tag, if there is one.
    fn skip_element(&mut self, name: &'a str) {
        let from = self.at;
        // An end tag that was not found once is not searched again.
        if !self.unterminated.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            self.skip_text_of(name);
            if self.at == self.html.len() {
                self.at = from;
                self.unterminated.push(name);
            }
        }
    }

    fn skip_text_of(&mut self, name: &str) {
        let bytes = self.html.as_bytes();
        while let Some(found) = self.rest().find("</") {
            self.at += found + 2;
            let end = self.at + name.len();
            let same = bytes.get(self.at..end).is_some_and(|seen| seen.eq_ignore_ascii_case(name.as_bytes()));
            let ends =
                self.byte(end).is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
            if same && ends {
                return self.skip_past(">");
            }
        }
        self.at = self.html.len();
    }

    /// Records an end tag; returns the end tags that must precede it.
    fn end_tag(&mut self, name: &str) -> String {
        self.head_ended |= name.eq_ignore_ascii_case("head");
        let Some(at) = self.open.iter().rposition(|open| open.eq_ignore_ascii_case(name)) else {
            return String::new();
        };
        let insert = if self.formatting_open > 0 { self.close_formatting(at + 1) } else { String::new() };
        for (place, closed) in self.open.drain(at..).enumerate() {
            let kind = ElementKind::of(closed);
            self.foreign_open -= usize::from(kind == ElementKind::Foreign);
            self.formatting_open -= usize::from(kind == ElementKind::Formatting);
            self.has_misnesting |= place > 0
                && matches!(
                    kind,
                    ElementKind::Foreign | ElementKind::IntegrationPoint | ElementKind::RawText
                );
        }
        insert
    }
}

/// Nesting behaviour of an element.
#[derive(PartialEq, Eq, Clone, Copy)]
enum ElementKind {
    Plain,
    /// Has no content.
    Void,
    /// May lack its end tag; nests only inside elements that are counted.
    OptionalEnd,
    /// Contains raw text up to its end tag.
    RawText,
    /// Dropped in the head.
    Noscript,
    /// Dropped together with its text.
    Embedded,
    /// Reopened by parsers when it is left unclosed.
    Formatting,
    /// Has its own parsing rules inside.
    Foreign,
    /// Kept open by some parsers when an outer element ends.
    IntegrationPoint,
}

impl ElementKind {
    fn of(name: &str) -> Self {
        let mut lower = [0_u8; 16];
        let Some(lower) = lower.get_mut(..name.len()) else { return Self::Plain };
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        match &*lower {
            b"area" | b"base" | b"br" | b"col" | b"embed" | b"hr" | b"img" | b"input" | b"link" | b"meta"
            | b"param" | b"source" | b"track" | b"wbr" => Self::Void,
            b"html" | b"head" | b"body" | b"p" | b"li" | b"dt" | b"dd" | b"tr" | b"td" | b"th" | b"thead"
            | b"tbody" | b"tfoot" | b"colgroup" | b"caption" | b"option" | b"a" => Self::OptionalEnd,
            b"script" | b"style" | b"title" | b"textarea" => Self::RawText,
            b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small" | b"strike"
            | b"strong" | b"tt" | b"u" => Self::Formatting,
            b"noscript" => Self::Noscript,
            b"iframe" | b"noembed" | b"noframes" => Self::Embedded,
            b"svg" | b"math" | b"select" => Self::Foreign,
            b"desc" | b"foreignobject" | b"annotation-xml" | b"mi" | b"mo" | b"mn" | b"ms" | b"mtext" => {
                Self::IntegrationPoint
            }
            _ => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_as_they_should_be_are_left_alone() {
        let pages = [
            "<p>a<p>b<div title='>'>c</div><!-- <div> --><script>'<div><div>'</script>",
            "",
            "<",
            "a < b",
            "<!-->x<!--->y",
            "<svg><title>t</title></svg><style>a>b{}</style>",
            "<div\u{0}=\"",
        ];
        for page in pages {
            assert!(matches!(limit_html(page), Cow::Borrowed(_)), "{page}");
        }
        let long = "<li><p>x".repeat(5_000) + &"<script>\"<div>\"</script>".repeat(5_000);
        assert!(matches!(limit_html(&long), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_too_deep_loses_its_tags_and_keeps_its_text() {
        let deep = format!("{}x{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        let flat = limit_html(&deep);
        assert_eq!(flat.matches("<div>").count(), MAX_DEPTH);
        assert!(flat.contains('x'));
    }

    #[test]
    fn what_is_left_open_is_closed_where_its_block_ends() {
        assert_eq!(limit_html("<div><b>x<i>y</div>z"), "<div><b>x<i>y</i></b></div>z");
        assert_eq!(limit_html("<b><i>x</b>y</i>"), "<b><i>x</i></b>y</i>");
        let fonts: String = (0..200).map(|at| format!("<font size={at}>")).collect();
        let page = limit_html(&format!("<p>{fonts}{}", "<p>x".repeat(5_000))).into_owned();
        assert_eq!(page.matches("</font>").count(), 200);
    }

    #[test]
    fn a_tag_with_a_thousand_attributes_is_left_out() {
        let attributes: String = (0..1_000).map(|at| format!(" a{at}")).collect();
        assert_eq!(limit_html(&format!("<div{attributes}>x")), "x");
    }

    #[test]
    fn tricks_to_hide_depth_do_not_work() {
        let starts = [
            "<svg><style>",
            "<svg><title></svg></title><style>",
            "<select><style></select>",
            "<div><select></div><style>",
            "<a title='</style>'>",
            "<!--><!-- -->",
            "<br/><svg/><math><mi></math></mi><style>",
        ];
        for start in starts {
            let page = format!("{start}{}", "<div>".repeat(20_000));
            let kept = limit_html(&page).matches("<div>").count();
            assert!(kept <= MAX_DEPTH, "{start}: {kept}");
        }
    }
}

//! Keeps a page within bounds before it is parsed: parsers need quadratic time, and walks over the tree need stack, for
//! tags inside tags inside tags; what is left open (`<b>`) is opened again in every block that follows; a tag's
//! attributes are compared with each other.
//!
//! The scan reads tags as the HTML tokenizer does. Where it cannot know whether a tokenizer would see text or tags, it
//! counts tags: that may cost a tag on a strange page and never lets a deep one through.

use std::borrow::Cow;

/// Elements inside each other; deeper ones lose their tags and keep their text.
const DEEPEST: usize = 256;
/// A tag with more attributes is left out.
const ATTRIBUTES: usize = 200;
/// Elements of a page; what is after them loses its tags and keeps its text.
const ELEMENTS: usize = 300_000;
/// Attributes of a page; after them only tags without any are kept.
const ALL_ATTRIBUTES: usize = 600_000;
/// How often a parser may have to open again what is left open.
const REOPENED: usize = 100_000;

/// The page without the tags that would make it costly.
pub fn shallow(html: &str) -> Cow<'_, str> {
    let mut scan = Scan { html, open: Vec::with_capacity(64), ..Scan::default() };
    let (mut kept, mut from) = (String::new(), 0);
    while let Some(edit) = scan.tag() {
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

/// What becomes of one tag.
#[derive(Default)]
struct Edit {
    at: usize,
    drop: bool,
    insert: String,
}

#[derive(Default)]
struct Scan<'a> {
    html: &'a str,
    at: usize,
    /// Names of the elements that are open.
    open: Vec<&'a str>,
    /// How many of them do not let `<style>` and the like begin text.
    odd: usize,
    /// How many of them are opened again when they are left open.
    styled: usize,
    reopened: usize,
    elements: usize,
    attributes: usize,
    /// Names of elements that have no end tag in what is left.
    endless: Vec<&'a str>,
    /// Whether the page's head is over.
    headed: bool,
    /// Whether the page closes elements in an order that parsers treat in ways of their own.
    doubt: bool,
}

impl<'a> Scan<'a> {
    /// The next tag and what becomes of it. Afterwards `at` is behind it.
    fn tag(&mut self) -> Option<Edit> {
        loop {
            let start = self.at + self.rest().find('<')?;
            self.at = start + 1;
            let next = self.byte(self.at);
            if next == Some(b'!') {
                self.comment();
            } else if next == Some(b'?') {
                self.skip_past(">");
            } else if next == Some(b'/') {
                self.at += 1;
                if !self.byte(self.at).is_some_and(|byte| byte.is_ascii_alphabetic()) {
                    self.skip_past(">");
                    continue;
                }
                let name = self.name();
                self.attributes();
                return Some(Edit { at: start, drop: false, insert: self.close(name) });
            } else if next.is_some_and(|byte| byte.is_ascii_alphabetic()) {
                let name = self.name();
                let (alone, attributes) = self.attributes();
                if self.is_costly(attributes) || self.is_no_element(name, start) {
                    return Some(Edit { at: start, drop: true, ..Edit::default() });
                }
                let edit = self.enter(name, alone);
                return Some(Edit { at: start, ..edit });
            }
        }
    }

    /// Counts the tag; whether it is one too many.
    fn is_costly(&mut self, attributes: usize) -> bool {
        self.elements += 1;
        self.attributes += attributes;
        let many = self.attributes > ALL_ATTRIBUTES && attributes > 0;
        attributes > ATTRIBUTES || self.elements > ELEMENTS || many
    }

    /// Tags that would hide what follows: a part that is shown in its place by the browser, and the end of all markup.
    fn is_no_element(&self, name: &str, start: usize) -> bool {
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

    fn comment(&mut self) {
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
        // Not a search for each of the two ends: one that never comes would be looked for in all the rest, at every comment.
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

    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let end =
            rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>')).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Goes past the end of the tag; whether it closes itself, and how many attributes it has at most.
    fn attributes(&mut self) -> (bool, usize) {
        let (mut slash, mut count) = (false, 0);
        while let Some(byte) = self.byte(self.at) {
            self.at += 1;
            match byte {
                b'>' => return (slash, count),
                b'=' => {
                    self.value();
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

    fn value(&mut self) {
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

    /// Takes note of a start tag.
    fn enter(&mut self, name: &'a str, alone: bool) -> Edit {
        let sort = Sort::of(name);
        let mut edit = Edit::default();
        match sort {
            Sort::Text if !self.doubt && self.odd == 0 => {
                self.skip_text_of(name);
                return edit;
            }
            Sort::Void => return edit,
            // Parsers take what is only there without scripts out of the head, and end the head with it.
            Sort::Silent if !self.headed => {
                self.skip_element(name);
                return Edit { drop: true, ..edit };
            }
            // Its text is no markup up to its end; without an end it would be all that follows.
            Sort::Frame => {
                if !alone {
                    self.skip_element(name);
                }
                return Edit { drop: true, ..edit };
            }
            Sort::Styled if self.reopened > REOPENED => return Edit { drop: true, ..edit },
            Sort::Styled => {}
            _ => {
                self.reopened += self.styled;
                if self.reopened > REOPENED {
                    edit.insert = self.close_styled(0);
                }
            }
        }
        self.headed |= name.eq_ignore_ascii_case("body");
        if (sort == Sort::Implied && self.odd == 0) || (alone && self.odd > 0) {
            return edit;
        }
        if self.open.len() >= DEEPEST {
            return Edit { drop: true, ..edit };
        }
        self.odd += usize::from(sort == Sort::Odd);
        self.styled += usize::from(sort == Sort::Styled);
        self.open.push(name);
        edit
    }

    /// End tags for what is open from this place on and would be opened again.
    fn close_styled(&mut self, from: usize) -> String {
        let styled = |name: &&str| Sort::of(name) == Sort::Styled;
        let late = self.open.split_off(from.min(self.open.len()));
        let (ended, kept): (Vec<&str>, Vec<&str>) = late.into_iter().partition(styled);
        self.open.extend(kept);
        self.styled -= ended.len();
        ended.iter().rev().map(|name| format!("</{name}>")).collect()
    }

    /// Goes past the end tag when there is one.
    fn skip_element(&mut self, name: &'a str) {
        let from = self.at;
        // Searched for in vain once, an end tag is not searched for again.
        if !self.endless.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            self.skip_text_of(name);
            if self.at == self.html.len() {
                self.at = from;
                self.endless.push(name);
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

    /// Takes note of an end tag; end tags that must come before it.
    fn close(&mut self, name: &str) -> String {
        self.headed |= name.eq_ignore_ascii_case("head");
        let Some(at) = self.open.iter().rposition(|open| open.eq_ignore_ascii_case(name)) else {
            return String::new();
        };
        let insert = if self.styled > 0 { self.close_styled(at + 1) } else { String::new() };
        for (place, closed) in self.open.drain(at..).enumerate() {
            let sort = Sort::of(closed);
            self.odd -= usize::from(sort == Sort::Odd);
            self.styled -= usize::from(sort == Sort::Styled);
            self.doubt |= place > 0 && matches!(sort, Sort::Odd | Sort::Unclear | Sort::Text);
        }
        insert
    }
}

/// What an element's name means for nesting.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Sort {
    Plain,
    /// Has no content.
    Void,
    /// May lack its end tag; nests only inside elements that are counted.
    Implied,
    /// Holds text up to its end tag.
    Text,
    /// Is left out of the head.
    Silent,
    /// Is left out with the text in it.
    Frame,
    /// Is opened again by parsers when it is left open.
    Styled,
    /// Has rules of its own inside.
    Odd,
    /// Some parsers keep it open when an outer one ends.
    Unclear,
}

impl Sort {
    fn of(name: &str) -> Self {
        let mut lower = [0_u8; 16];
        let Some(lower) = lower.get_mut(..name.len()) else { return Self::Plain };
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        match &*lower {
            b"area" | b"base" | b"br" | b"col" | b"embed" | b"hr" | b"img" | b"input" | b"link" | b"meta"
            | b"param" | b"source" | b"track" | b"wbr" => Self::Void,
            b"html" | b"head" | b"body" | b"p" | b"li" | b"dt" | b"dd" | b"tr" | b"td" | b"th" | b"thead"
            | b"tbody" | b"tfoot" | b"colgroup" | b"caption" | b"option" | b"a" => Self::Implied,
            b"script" | b"style" | b"title" | b"textarea" => Self::Text,
            b"b" | b"big" | b"code" | b"em" | b"font" | b"i" | b"nobr" | b"s" | b"small" | b"strike"
            | b"strong" | b"tt" | b"u" => Self::Styled,
            b"noscript" => Self::Silent,
            b"iframe" | b"noembed" | b"noframes" => Self::Frame,
            b"svg" | b"math" | b"select" => Self::Odd,
            b"desc" | b"foreignobject" | b"annotation-xml" | b"mi" | b"mo" | b"mn" | b"ms" | b"mtext" => {
                Self::Unclear
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
            assert!(matches!(shallow(page), Cow::Borrowed(_)), "{page}");
        }
        let long = "<li><p>x".repeat(5_000) + &"<script>\"<div>\"</script>".repeat(5_000);
        assert!(matches!(shallow(&long), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_too_deep_loses_its_tags_and_keeps_its_text() {
        let deep = format!("{}x{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        let flat = shallow(&deep);
        assert_eq!(flat.matches("<div>").count(), DEEPEST);
        assert!(flat.contains('x'));
    }

    #[test]
    fn what_is_left_open_is_closed_where_its_block_ends() {
        assert_eq!(shallow("<div><b>x<i>y</div>z"), "<div><b>x<i>y</i></b></div>z");
        assert_eq!(shallow("<b><i>x</b>y</i>"), "<b><i>x</i></b>y</i>");
        let fonts: String = (0..200).map(|at| format!("<font size={at}>")).collect();
        let page = shallow(&format!("<p>{fonts}{}", "<p>x".repeat(5_000))).into_owned();
        assert_eq!(page.matches("</font>").count(), 200);
    }

    #[test]
    fn a_tag_with_a_thousand_attributes_is_left_out() {
        let attributes: String = (0..1_000).map(|at| format!(" a{at}")).collect();
        assert_eq!(shallow(&format!("<div{attributes}>x")), "x");
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
            let kept = shallow(&page).matches("<div>").count();
            assert!(kept <= DEEPEST, "{start}: {kept}");
        }
    }
}

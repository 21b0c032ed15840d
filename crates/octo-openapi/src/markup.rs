//! Converts Markdown and HTML to one line of plain text.

use octo_toolkit::hidden_text::strip_hidden_owned;

/// Tags that format text. Other angle brackets, such as `<owner>`, are text.
const FORMATTING_TAGS: [&str; 38] = [
    "a",
    "article",
    "b",
    "blockquote",
    "br",
    "center",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figure",
    "font",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "span",
    "strong",
    "summary",
    "table",
    "td",
    "th",
    "tr",
    "u",
    "ul",
];
/// Maximum length of a tag or link.
const MAX_MARKUP_LEN: usize = 2_000;

/// Text without link targets, images, comments and tags; truncated at a word after `most` characters.
pub(crate) fn to_plain_text(text: &str, most: usize) -> String {
    // Text far beyond the limit is not scanned.
    let near: String = text.chars().take(most.saturating_mul(4).saturating_add(MAX_MARKUP_LEN)).collect();
    let near = strip_hidden_owned(near, &mut 0);
    let mut out = String::new();
    let mut rest = near.as_str();
    while let Some(at) = rest.find(['<', '[', '!']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (said, length) = parse_markup(from);
        out.push_str(&said);
        rest = from.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    cut(&out.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Plain text for markup at the start of `from`, and its length in bytes.
fn parse_markup(from: &str) -> (String, usize) {
    if let Some(comment) = from.strip_prefix("<!--") {
        return (String::new(), comment.find("-->").map_or(from.len(), |end| end + 7));
    }
    if from.starts_with('<') {
        return match tag(from) {
            Some((joint, length)) => (joint.to_owned(), length),
            None => ("<".to_owned(), 1),
        };
    }
    if let Some(picture) = from.strip_prefix('!') {
        return match link(picture) {
            Some((_, length)) => (String::new(), length + 1),
            None => ("!".to_owned(), 1),
        };
    }
    match link(from) {
        Some((label, length)) => (label.to_owned(), length),
        None => ("[".to_owned(), 1),
    }
}

/// Replacement for a formatting tag, and the length of the tag.
fn tag(from: &str) -> Option<(&'static str, usize)> {
    let inside = from.strip_prefix('<')?;
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    let name: String = inside.chars().take_while(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    let known = FORMATTING_TAGS.binary_search(&name.as_str()).is_ok();
    let within = ["a", "b", "code", "em", "font", "i", "span", "strong", "u"].contains(&name.as_str());
    let end = from.find('>').filter(|end| known && *end <= MAX_MARKUP_LEN)?;
    Some((if within { "" } else { " " }, end + 1))
}

/// Label of `[label](address)`, and the length of the whole.
fn link(from: &str) -> Option<(&str, usize)> {
    let label = from.strip_prefix('[')?;
    let close = label.find(']').filter(|close| *close <= MAX_MARKUP_LEN)?;
    let address = label.get(close + 1..)?.strip_prefix('(')?;
    let end = address.find(')').filter(|end| *end <= MAX_MARKUP_LEN)?;
    Some((label.get(..close)?, close + end + 4))
}

fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let head = text.get(..end).unwrap_or_default();
    let words = head.rsplit_once(' ').map_or(head, |(words, _)| words);
    format!("{words} …")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_words_stay() {
        for (text, most, said) in [
            ("Gets a [user](https://x.example/a(b).", 100, "Gets a user."),
            ("One\n\n  two\tthree ", 100, "One two three"),
            ("See ![shot](https://x.example/s.png) here!", 100, "See here!"),
            ("a<!-- hidden -->b <b>bold</b><BR/>end", 100, "ab bold end"),
            ("repos/<owner>/<repo> where a < b", 100, "repos/<owner>/<repo> where a < b"),
            ("[not a link] and [x", 100, "[not a link] and [x"),
            ("a\u{200b}b\u{1b}[31mc", 100, "abc"),
            ("one two three", 9, "one two …"),
            ("ä".repeat(20).as_str(), 5, "äääää …"),
            ("<!-- never closed", 100, ""),
        ] {
            assert_eq!(to_plain_text(text, most), said, "{text}");
        }
        assert!(FORMATTING_TAGS.is_sorted());
    }

    #[test]
    fn a_megabyte_of_marks_takes_no_time() {
        let begun = std::time::Instant::now();
        for mark in ["[", "<", "!", "<a", "<!--", "[](", "![]("] {
            to_plain_text(&mark.repeat(1 << 20), 300);
        }
        assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    }
}

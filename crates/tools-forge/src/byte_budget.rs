//! Byte budget of a reply: takes what fits and returns where the rest starts.

use serde::Serialize;

/// Remaining bytes of JSON.
pub struct ByteBudget(usize);

impl ByteBudget {
    pub fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Items starting at `offset`, as many as fit into `share` bytes and at least one; and the offset of the rest.
    pub fn take_items<T: Serialize>(
        &mut self,
        items: Vec<T>,
        offset: usize,
        share: usize,
    ) -> (Vec<T>, Option<usize>) {
        let total = items.len();
        let (mut kept, mut used) = (Vec::new(), 0);
        for item in items.into_iter().skip(offset) {
            let size = size(&item) + 1;
            if !kept.is_empty() && used + size > share.min(self.0) {
                break;
            }
            used += size;
            kept.push(item);
        }
        self.0 = self.0.saturating_sub(used);
        let next = offset.saturating_add(kept.len());
        (kept, (next < total).then_some(next))
    }

    /// A part of a long text starting at byte `offset`, ending at a line break if possible; and the offset of the rest.
    pub fn page(&mut self, text: &str, offset: usize, share: usize) -> (String, Option<usize>) {
        let start = text.floor_char_boundary(offset);
        let rest = text.get(start..).unwrap_or_default();
        let fits = fitting(rest, share.min(self.0)).max(rest.chars().next().map_or(0, char::len_utf8));
        let end = if fits == rest.len() { fits } else { page_break(rest.get(..fits).unwrap_or_default()) };
        let page = rest.get(..end).unwrap_or_default().to_owned();
        self.0 = self.0.saturating_sub(size(&page));
        (page, (end < rest.len()).then_some(start + end))
    }

    pub fn remaining(&self) -> usize {
        self.0
    }
}

/// A text of at most `most` bytes, and whether it was truncated.
pub fn truncate_bytes(mut text: String, most: usize) -> (String, bool) {
    if text.len() <= most {
        return (text, false);
    }
    text.truncate(text.floor_char_boundary(most));
    (text, true)
}

fn size(item: &impl Serialize) -> usize {
    serde_json::to_vec(item).map_or(0, |text| text.len())
}

/// Number of bytes of a text that fit into `room` bytes of JSON, where quotes and line breaks take two.
fn fitting(text: &str, room: usize) -> usize {
    let mut used = 2;
    for (at, c) in text.char_indices() {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            '\0'..='\u{1f}' => 6,
            c => c.len_utf8(),
        };
        if used > room {
            return at;
        }
    }
    text.len()
}

/// Where to split a text: before a file of a diff if one starts in the second half, else after a line.
fn page_break(text: &str) -> usize {
    let file = text.rfind("\ndiff --git ").map(|at| at + 1).filter(|at| *at > text.len() / 2);
    file.or_else(|| text.rfind('\n').map(|at| at + 1)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_keep_to_their_share_and_always_move_on() {
        let items = || vec!["aaaa"; 5];
        assert_eq!(ByteBudget::new(100).take_items(items(), 0, 100), (items(), None));
        assert_eq!(ByteBudget::new(100).take_items(items(), 0, 15), (vec!["aaaa"; 2], Some(2)));
        assert_eq!(ByteBudget::new(15).take_items(items(), 2, 100), (vec!["aaaa"; 2], Some(4)));
        assert_eq!(ByteBudget::new(0).take_items(items(), 4, 0), (vec!["aaaa"], None));
        assert_eq!(ByteBudget::new(100).take_items(items(), 9, 100), (vec![], None));
    }

    #[test]
    fn a_page_ends_with_a_line_and_best_before_a_file() {
        let rows = [
            ("one\ntwo\nthree\n", 0, 13, "one\ntwo\n", Some(8)),
            ("one\ntwo\nthree\n", 8, 50, "three\n", None),
            ("a\nb\ndiff --git x\n+1\n+2\n", 0, 24, "a\nb\ndiff --git x\n", Some(17)),
            ("aaaa\nbbbb\ndiff --git x\n", 0, 24, "aaaa\nbbbb\n", Some(10)),
            ("long line", 0, 6, "long", Some(4)),
            ("ää", 1, 0, "ä", Some(2)),
            ("x", 7, 9, "", None),
            ("", 0, 0, "", None),
        ];
        for (text, offset, share, page, next) in rows {
            assert_eq!(
                ByteBudget::new(1_000).page(text, offset, share),
                (page.to_owned(), next),
                "{text:?} {share}"
            );
        }
    }

    proptest! {
        #[test]
        fn pages_put_together_are_the_text(text in "(diff --git a\n|[a-zäö\"\\\\]{0,9}\n?|\n){0,20}", share in 0_usize..40) {
            let (mut whole, mut offset, mut pages) = (String::new(), Some(0), 0);
            while let Some(at) = offset {
                let (page, next) = ByteBudget::new(1_000).page(&text, at, share);
                whole.push_str(&page);
                offset = next;
                pages += 1;
                prop_assert!(pages <= text.len() + 1);
            }
            prop_assert_eq!(whole, text);
        }
    }
}

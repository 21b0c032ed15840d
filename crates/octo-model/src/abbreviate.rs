//! Shortened texts for messages.

use std::borrow::Cow;

/// The text, or its first `max_chars` characters and `…`.
pub fn abbreviate(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_texts_end_with_an_ellipsis() {
        for (text, short) in [("", ""), ("äöü", "äöü"), ("äöüß", "äöü…")] {
            assert_eq!(abbreviate(text, 3), short);
        }
    }
}

//! Splits a long text into chunks for a model.

use unicode_segmentation::UnicodeSegmentation;

/// Splits the text into chunks of at most `max_bytes` bytes, between paragraphs if possible, else between sentences,
/// else between characters. Nothing is lost: the joined chunks are the text.
pub fn split_into_chunks(text: &str, max_bytes: usize) -> Vec<&str> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while rest.len() > max_bytes {
        let head = rest.get(..rest.floor_char_boundary(max_bytes)).unwrap_or(rest);
        let (part, tail) = rest.split_at(chunk_end(head));
        chunks.push(part);
        rest = tail;
    }
    if !rest.is_empty() {
        chunks.push(rest);
    }
    chunks
}

/// Where to split, in the second half, so that there are few chunks.
fn chunk_end(head: &str) -> usize {
    let half = head.len() / 2;
    let paragraph = head.rfind("\n\n").map(|at| at + 2).filter(|at| *at > half);
    let sentence = || {
        let last = head.unicode_sentences().last().map_or(0, str::len);
        Some(head.len() - last).filter(|at| *at > half)
    };
    let word = || head.rfind(char::is_whitespace).map(|at| at + 1).filter(|at| *at > half);
    paragraph
        .or_else(sentence)
        .or_else(|| word().filter(|at| head.is_char_boundary(*at)))
        .unwrap_or(head.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_where_a_reader_would_and_loses_nothing() {
        let paragraphs = "One two three.\n\nFour five six.\n\nSeven eight nine.\n\n".repeat(20);
        let sentences = "One two three four. ".repeat(50);
        let letters = "ä".repeat(500);
        for text in [paragraphs.as_str(), sentences.as_str(), letters.as_str(), "short", ""] {
            let chunks = split_into_chunks(text, 100);
            assert_eq!(chunks.concat(), text);
            assert!(chunks.iter().all(|part| !part.is_empty() && part.len() <= 100), "{chunks:?}");
        }
        assert!(split_into_chunks(&paragraphs, 100).iter().all(|part| part.ends_with("\n\n")));
        assert!(split_into_chunks(&sentences, 100).iter().all(|part| part.starts_with("One")));
    }
}

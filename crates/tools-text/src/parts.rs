//! A long text in parts that a model can take at once.

use unicode_segmentation::UnicodeSegmentation;

/// The text in parts of at most so many bytes, cut between paragraphs where that is possible, else between sentences, else
/// between characters. Nothing is lost: the parts joined are the text.
pub fn parts(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > most {
        let head = rest.get(..rest.floor_char_boundary(most)).unwrap_or(rest);
        let (part, tail) = rest.split_at(boundary(head));
        parts.push(part);
        rest = tail;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Where to cut, in the second half, so that parts are not many.
fn boundary(head: &str) -> usize {
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
            let parts = parts(text, 100);
            assert_eq!(parts.concat(), text);
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= 100), "{parts:?}");
        }
        assert!(parts(&paragraphs, 100).iter().all(|part| part.ends_with("\n\n")));
        assert!(parts(&sentences, 100).iter().all(|part| part.starts_with("One")));
    }
}

//! BM25: relevance of a text for the words of a query.

/// Term frequency saturation.
const K1: f64 = 1.2;
/// Length normalization.
const B: f64 = 0.5;

/// Inverse document frequency of a word in `having` of `all` texts.
pub fn idf(all: f64, having: f64) -> f64 {
    ((all - having).max(0.0) + 0.5).mul_add(1.0 / (having + 0.5), 1.0).ln()
}

/// Weight of `count` occurrences of a word in a text of `length` words, where texts have `typical_length`
/// words.
pub fn term_weight(count: f64, length: f64, typical_length: f64) -> f64 {
    let norm = K1 * B.mul_add(length / typical_length, 1.0 - B);
    if count == 0.0 { 0.0 } else { count * (K1 + 1.0) / (count + norm) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_tell_more_and_every_word_tells_something() {
        assert!(idf(1e6, 1.0) > idf(1e6, 1e3));
        assert!(idf(10.0, 10.0) > 0.0);
        assert!(idf(10.0, 20.0) > 0.0);
    }

    #[test]
    fn more_of_a_word_and_a_shorter_text_count_more() {
        assert!(term_weight(2.0, 4.0, 12.0) > term_weight(1.0, 4.0, 12.0));
        assert!(term_weight(1.0, 4.0, 12.0) > term_weight(1.0, 40.0, 12.0));
        assert_eq!(term_weight(0.0, 4.0, 12.0), 0.0);
    }
}

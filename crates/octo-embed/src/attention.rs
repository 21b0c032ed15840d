//! Attention of tokens to each other, head by head.

use crate::activations::softmax;
use crate::model_weights::{HEAD_WIDTH, HIDDEN};

/// What each token takes from the others; `projection` has queries, keys and values of each token.
pub(crate) fn attend(projection: &[f32]) -> Vec<f32> {
    let count = projection.len() / (3 * HIDDEN);
    let mut output = vec![0.0; count * HIDDEN];
    let mut scores = vec![0.0_f32; count];
    for head in 0..HIDDEN / HEAD_WIDTH {
        let part = |kind: usize| {
            let tokens = projection.chunks_exact(3 * HIDDEN);
            tokens.filter_map(move |token| token.get(kind * HIDDEN + head * HEAD_WIDTH..)?.first_chunk())
        };
        let keys = columns(part(1), count);
        let values: Vec<&[f32; HEAD_WIDTH]> = part(2).collect();
        for (query, output) in part(0).zip(output.chunks_exact_mut(HIDDEN)) {
            scores.fill(0.0);
            for (query, keys) in query.iter().zip(keys.chunks_exact(count)) {
                let query = query / (HEAD_WIDTH as f32).sqrt();
                scores.iter_mut().zip(keys).for_each(|(score, key)| *score += query * key);
            }
            softmax(&mut scores);
            let mut sums = [0.0; HEAD_WIDTH];
            for (share, values) in scores.iter().zip(&values) {
                sums.iter_mut().zip(*values).for_each(|(sum, value)| *sum += share * value);
            }
            let place = output.iter_mut().skip(head * HEAD_WIDTH);
            place.zip(sums).for_each(|(place, sum)| *place = sum);
        }
    }
    output
}

/// The same numbers, ordered by place first and by token second.
fn columns<'a>(tokens: impl Iterator<Item = &'a [f32; HEAD_WIDTH]>, count: usize) -> Vec<f32> {
    let mut columns = vec![0.0; HEAD_WIDTH * count];
    for (number, token) in tokens.enumerate() {
        for (column, value) in columns.chunks_exact_mut(count).zip(token) {
            column.iter_mut().skip(number).take(1).for_each(|place| *place = *value);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_takes_from_those_that_its_query_matches() {
        let mut projection = vec![0.0; 2 * 3 * HIDDEN];
        let (first, second) = projection.split_at_mut(3 * HIDDEN);
        // The first token's query matches the second token's key, in each head.
        first[..HIDDEN].fill(10.0);
        second[HIDDEN..2 * HIDDEN].fill(10.0);
        first[2 * HIDDEN..].fill(1.0);
        second[2 * HIDDEN..].fill(3.0);
        let output = attend(&projection);
        assert!(output[..HIDDEN].iter().all(|value| (value - 3.0).abs() < 1e-5));
        assert!(output[HIDDEN..].iter().all(|value| (value - 2.0).abs() < 1e-5));
    }
}

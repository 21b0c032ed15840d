//! The meaning of a text, as a direction.

use crate::model_weights::HIDDEN;

const MAX_INT8: f32 = 127.0;

/// A direction in 384 dimensions, in int8.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    values: [i8; HIDDEN],
    inverse_norm: f32,
}

impl Embedding {
    /// Length of `to_bytes`.
    pub const BYTES: usize = HIDDEN;

    pub(crate) fn from_floats(floats: &[f32; HIDDEN]) -> Self {
        let max = floats.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
        let scale = if max > 0.0 { MAX_INT8 / max } else { 0.0 };
        Self::new(floats.map(|value| (value * scale).round() as i8))
    }

    fn new(values: [i8; HIDDEN]) -> Self {
        let square = dot(&values, &values);
        let inverse_norm = if square > 0 { (square as f32).sqrt().recip() } else { 0.0 };
        Self { values, inverse_norm }
    }

    /// For a store.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        self.values.map(i8::cast_unsigned)
    }

    /// Returns None if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HIDDEN] = bytes.try_into().ok()?;
        Some(Self::new(bytes.map(u8::cast_signed)))
    }
}

/// Cosine of the angle between two embeddings: 1 for the same meaning, about 0 for unrelated texts.
pub fn similarity(left: &Embedding, right: &Embedding) -> f32 {
    dot(&left.values, &right.values) as f32 * left.inverse_norm * right.inverse_norm
}

fn dot(left: &[i8; HIDDEN], right: &[i8; HIDDEN]) -> i32 {
    left.iter().zip(right).map(|(left, right)| i32::from(*left) * i32::from(*right)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(step: usize) -> Embedding {
        Embedding::from_floats(&std::array::from_fn(|n| (n * step) as f32 % 7.0 - 3.0))
    }

    #[test]
    fn similarities() {
        let (a, b) = (wave(1), wave(2));
        assert!((similarity(&a, &a) - 1.0).abs() < 1e-6);
        assert!(similarity(&a, &b) < 0.9);
        assert_eq!(similarity(&a, &b), similarity(&b, &a));
        let opposite = Embedding::new(a.values.map(|value| -value));
        assert!((similarity(&a, &opposite) + 1.0).abs() < 1e-6);
    }

    #[test]
    fn embeddings_are_stored_as_bytes() {
        let embedding = wave(3);
        assert_eq!(Embedding::from_bytes(&embedding.to_bytes()), Some(embedding));
        for length in [0, 383, 385] {
            assert_eq!(Embedding::from_bytes(&vec![1; length]), None);
        }
    }

    #[test]
    fn numbers_that_have_no_direction_are_similar_to_nothing() {
        for value in [0.0, f32::NAN, f32::INFINITY] {
            let none = Embedding::from_floats(&[value; HIDDEN]);
            assert!(similarity(&none, &wave(1)).is_finite());
        }
        let least = Embedding::from_bytes(&[0x80; HIDDEN]).unwrap();
        assert!((similarity(&least, &least) - 1.0).abs() < 1e-6);
    }
}

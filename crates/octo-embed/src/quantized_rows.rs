//! A matrix of int8 with one scale per row.

use crate::model_error::ModelError;

const MAX_INT8: f32 = 127.0;

/// Rows of `width` values; a weight is its value times the scale of its row.
pub(crate) struct QuantizedRows {
    width: usize,
    values: Vec<i8>,
    scales: Vec<f32>,
}

impl QuantizedRows {
    /// Rounds each row to int8, symmetrically.
    pub(crate) fn quantize(weights: &[f32], width: usize) -> Self {
        let mut values = Vec::with_capacity(weights.len());
        let mut scales = Vec::with_capacity(weights.len() / width);
        for row in weights.chunks_exact(width) {
            let scale = row.iter().fold(0.0_f32, |max, value| max.max(value.abs())) / MAX_INT8;
            let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
            values.extend(row.iter().map(|value| (value * inverse).round() as i8));
            scales.push(scale);
        }
        Self { width, values, scales }
    }

    pub(crate) fn new(width: usize, values: Vec<i8>, scales: Vec<f32>) -> Result<Self, ModelError> {
        if values.len() != width * scales.len() {
            return Err(ModelError::Pack("a matrix has a wrong size"));
        }
        Ok(Self { width, values, scales })
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn values(&self) -> &[i8] {
        &self.values
    }

    pub(crate) fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// The weights of one row.
    pub(crate) fn row(&self, number: usize) -> Option<impl Iterator<Item = f32>> {
        let start = number.checked_mul(self.width)?;
        let values = self.values.get(start..start + self.width)?;
        let scale = *self.scales.get(number)?;
        Some(values.iter().map(move |value| f32::from(*value) * scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_rounded_by_scales_of_their_own() {
        let rows = QuantizedRows::quantize(&[127.0, -63.5, 0.4, 0.0, 0.0, 0.0, -0.01, 0.005, 0.0], 3);
        assert_eq!(rows.values(), [127, -64, 0, 0, 0, 0, -127, 64, 0]);
        assert_eq!(rows.scales(), [1.0, 0.0, 0.01 / 127.0]);
        assert_eq!(rows.row(0).unwrap().collect::<Vec<_>>(), [127.0, -64.0, 0.0]);
        assert!(rows.row(3).is_none());
    }
}

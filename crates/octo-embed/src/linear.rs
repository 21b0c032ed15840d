//! A linear layer with int8 weights.

use crate::activations::ROUND;
use crate::dot_products::{ROWS, multiply};
use crate::quantized_rows::QuantizedRows;
use fearless_simd::Level;

/// Activations are rounded to this many steps per sign: as fine as the sums of int32 allow.
pub(crate) const MAX_ACTIVATION: i16 = 8191;

pub(crate) struct Linear {
    pub(crate) rows: QuantizedRows,
    pub(crate) bias: Vec<f32>,
}

impl Linear {
    /// The output for each token of the input.
    pub(crate) fn apply(&self, level: Level, input: &[f32]) -> Vec<f32> {
        let (width, outputs) = (self.rows.width(), self.bias.len());
        let (tokens, token_scales) = quantize(input, width);
        let mut output = vec![0.0; token_scales.len() * outputs];
        let mut sums = vec![[0; ROWS]; token_scales.len()];
        let mut wide = vec![0_i16; ROWS * width];
        let blocks = self.rows.values().chunks_exact(ROWS * width);
        let (scales, biases) = (self.rows.scales().as_chunks::<ROWS>().0, self.bias.as_chunks::<ROWS>().0);
        for (block, ((rows, scales), biases)) in blocks.zip(scales).zip(biases).enumerate() {
            multiply(level, rows, &mut wide, &tokens, width, &mut sums);
            let places = output.chunks_exact_mut(outputs).map(|place| place.as_chunks_mut::<ROWS>().0);
            for ((place, sums), token_scale) in places.zip(&sums).zip(&token_scales) {
                let Some(place) = place.get_mut(block) else { continue };
                for (((place, sum), scale), bias) in place.iter_mut().zip(sums).zip(scales).zip(biases) {
                    *place = *sum as f32 * (scale * token_scale) + bias;
                }
            }
        }
        output
    }
}

/// Tokens in steps of their scale, and the scales.
fn quantize(input: &[f32], width: usize) -> (Vec<i16>, Vec<f32>) {
    let mut tokens = Vec::with_capacity(input.len());
    let mut scales = Vec::with_capacity(input.len() / width);
    for token in input.chunks_exact(width) {
        // Numbers without sign are in the order of their bits, which are compared faster.
        let max = token.iter().map(|value| value.abs().to_bits() as i32).max().unwrap_or_default();
        let scale = f32::from_bits(max as u32) / f32::from(MAX_ACTIVATION);
        let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
        tokens.extend(token.iter().map(|value| (value * inverse + ROUND).to_bits() as i16));
        scales.push(scale);
    }
    (tokens, scales)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_multiplies_and_adds() {
        let (inputs, outputs, tokens) = (32, 8, 3);
        let value = |n: usize| ((n * 37 % 101) as f32 - 50.0) / 25.0;
        let weights: Vec<f32> = (0..inputs * outputs).map(value).collect();
        let bias: Vec<f32> = (0..outputs).map(|n| n as f32).collect();
        let input: Vec<f32> = (0..inputs * tokens).map(|n| value(n + 13)).collect();
        let layer = Linear { rows: QuantizedRows::quantize(&weights, inputs), bias: bias.clone() };
        let output = layer.apply(Level::new(), &input);
        for (token, output) in input.chunks_exact(inputs).zip(output.chunks_exact(outputs)) {
            for ((row, bias), output) in weights.chunks_exact(inputs).zip(&bias).zip(output) {
                let exact = row.iter().zip(token).map(|(a, b)| a * b).sum::<f32>() + bias;
                assert!((exact - output).abs() < 0.1, "{exact} {output}");
            }
        }
    }

    #[test]
    fn activations_are_rounded_to_the_nearest_step() {
        let (tokens, scales) = quantize(&[8191.0, -8191.0, 0.6, -2.4, 0.0, 0.0, 0.0, 0.0], 4);
        assert_eq!(tokens, [8191, -8191, 1, -2, 0, 0, 0, 0]);
        assert_eq!(scales, [1.0, 0.0]);
        let (tokens, _) = quantize(&[f32::NAN, f32::INFINITY], 2);
        assert_eq!(tokens.len(), 2);
    }
}

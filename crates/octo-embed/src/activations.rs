//! Functions on activations, written so that the compiler vectorizes them: sums in lanes, and no calls of the C library.

/// Independent sums of one row.
const LANES: usize = 16;
const EPSILON: f32 = 1e-12;
/// Added to a small number, this leaves the nearest integer in the low bits of the result.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// Layer normalization with learned weights.
pub(crate) struct LayerNorm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl LayerNorm {
    /// Normalizes each row in place.
    pub(crate) fn apply(&self, rows: &mut [f32]) {
        let width = self.weight.len();
        for row in rows.chunks_exact_mut(width) {
            let mean = sum_by(row, |value| value) / width as f32;
            let variance = sum_by(row, |value| (value - mean) * (value - mean)) / width as f32;
            let inverse = (variance + EPSILON).sqrt().recip();
            for ((value, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *value = (*value - mean) * inverse * weight + bias;
            }
        }
    }
}

/// Sum of a function of each value.
pub(crate) fn sum_by(values: &[f32], function: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += function(*value));
    }
    sums.iter().sum::<f32>() + rest.iter().map(|value| function(*value)).sum::<f32>()
}

/// GELU, with a rational approximation of the error function (largest error 4e-7).
pub(crate) fn gelu(values: &mut [f32]) {
    for value in values {
        let x = (*value * std::f32::consts::FRAC_1_SQRT_2).clamp(-4.0, 4.0);
        let square = x * x;
        let top =
            [2.770_681_4e-8, -2.101_024e-6, -5.692_506_4e-5, -7.349_906_3e-4, -2.954_6e-3, -1.609_603_3e-2];
        let bottom = [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2];
        let top = top.iter().fold(-2.726_142_3e-10, |sum, next| sum * square + next);
        let bottom = bottom.iter().fold(-1.456_607_2e-5, |sum, next| sum * square + next);
        *value *= 0.5 * (1.0 + x * top / bottom);
    }
}

/// Replaces scores by their shares, which sum to 1.
pub(crate) fn softmax(scores: &mut [f32]) {
    let max = scores.iter().fold(f32::NEG_INFINITY, |max, score| max.max(*score));
    scores.iter_mut().for_each(|score| *score = exp_of_negative(*score - max));
    let inverse = sum_by(scores, |value| value).recip();
    scores.iter_mut().for_each(|score| *score *= inverse);
}

/// `exp` of a number that is not positive (relative error 2e-7).
fn exp_of_negative(x: f32) -> f32 {
    let powers = x.max(-87.0) * std::f32::consts::LOG2_E;
    let rounded = powers + ROUND;
    let rest = (powers - (rounded - ROUND)) * std::f32::consts::LN_2;
    let terms = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let fraction = terms.iter().fold(1.0 / 720.0, |sum, next| sum * rest + next);
    fraction * f32::from_bits(rounded.to_bits().wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_close() {
        for step in 0..8700 {
            let x = -(step as f32) / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp_of_negative(x)) - exact).abs() / exact;
            assert!(error < 2e-5, "{x}: {error}");
        }
        assert!(exp_of_negative(-1e30) < 1e-37);
    }

    #[test]
    fn gelu_has_the_known_values() {
        // From the definition with the error function, in double precision.
        for (x, expected) in [
            (-10.0, 0.0),
            (-3.0, -0.004_049_694),
            (-1.0, -0.158_655_25),
            (-0.5, -0.154_268_77),
            (0.0, 0.0),
            (0.5, 0.345_731_23),
            (1.0, 0.841_344_8),
            (3.0, 2.995_950_3),
            (10.0, 10.0),
        ] {
            let mut values = [x];
            gelu(&mut values);
            assert!((values[0] - expected).abs() < 4e-6, "{x}: {}", values[0]);
        }
    }

    #[test]
    fn shares_sum_to_one() {
        let mut scores: Vec<f32> = (0..37).map(|n| (n * 7 % 11) as f32).collect();
        softmax(&mut scores);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((scores[3] / scores[0] - 10.0_f32.exp()).abs() < 0.1);
    }

    #[test]
    fn rows_are_normalized() {
        let norm = LayerNorm { weight: vec![2.0; 20], bias: vec![1.0; 20] };
        let mut rows: Vec<f32> = (0..40).map(|n| n as f32).collect();
        norm.apply(&mut rows);
        for row in rows.chunks_exact(20) {
            let mean = row.iter().sum::<f32>() / 20.0;
            let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / 20.0;
            assert!((mean - 1.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4, "{mean} {variance}");
        }
    }
}

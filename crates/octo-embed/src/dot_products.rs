//! Dot products of int16, four rows at a time: with AVX2 where the processor has it, else as the compiler vectorizes them.

use fearless_simd::Level;

/// Rows that are multiplied at once.
pub(crate) const ROWS: usize = 4;

/// The product of each token with each of four rows. Rows and tokens have `width` values, a multiple of 16; `wide` is a
/// buffer for the rows.
pub(crate) fn multiply(
    level: Level,
    rows: &[i8],
    wide: &mut [i16],
    tokens: &[i16],
    width: usize,
    sums: &mut [[i32; ROWS]],
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = level.as_avx2() {
        return multiply_avx2(avx2, rows, wide, tokens, width, sums);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    multiply_portable(rows, wide, tokens, width, sums);
}

fn multiply_portable(rows: &[i8], wide: &mut [i16], tokens: &[i16], width: usize, sums: &mut [[i32; ROWS]]) {
    widen(rows, wide);
    for (token, sums) in tokens.chunks_exact(width).zip(sums) {
        for (row, sum) in wide.chunks_exact(width).zip(sums) {
            *sum = row.iter().zip(token).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        }
    }
}

#[inline(always)]
fn widen(rows: &[i8], wide: &mut [i16]) {
    wide.iter_mut().zip(rows).for_each(|(wide, value)| *wide = i16::from(*value));
}

#[cfg(target_arch = "x86_64")]
fearless_simd::kernel!(
    fn multiply_avx2(
        avx2: Avx2,
        rows: &[i8],
        wide: &mut [i16],
        tokens: &[i16],
        width: usize,
        sums: &mut [[i32; ROWS]],
    ) {
        use fearless_simd::{i16x16, i32x4, prelude::*};
        use std::arch::x86_64::*;

        widen(rows, wide);
        let (ab, cd) = wide.split_at(2 * width);
        let ((a, b), (c, d)) = (ab.split_at(width), cd.split_at(width));
        let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
        let (c, d) = (c.as_chunks::<16>().0, d.as_chunks::<16>().0);
        for (pair, sums) in tokens.chunks(2 * width).zip(sums.chunks_mut(2)) {
            let (x, y) = pair.split_at(width);
            // The last token may be alone.
            let y = if y.is_empty() { x } else { y };
            let (x, y) = (x.as_chunks::<16>().0, y.as_chunks::<16>().0);
            let mut x_sums = [_mm256_setzero_si256(); ROWS];
            let mut y_sums = x_sums;
            for (((((a, b), c), d), x), y) in a.iter().zip(b).zip(c).zip(d).zip(x).zip(y) {
                let x = __m256i::from(i16x16::from_slice(avx2, x));
                let y = __m256i::from(i16x16::from_slice(avx2, y));
                for ((row, x_sum), y_sum) in [a, b, c, d].into_iter().zip(&mut x_sums).zip(&mut y_sums) {
                    let row = __m256i::from(i16x16::from_slice(avx2, row));
                    *x_sum = _mm256_add_epi32(*x_sum, _mm256_madd_epi16(row, x));
                    *y_sum = _mm256_add_epi32(*y_sum, _mm256_madd_epi16(row, y));
                }
            }
            for (sums, [a, b, c, d]) in sums.iter_mut().zip([x_sums, y_sums]) {
                let halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
                let (low, high) = (_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
                let both: i32x4<_> = _mm_add_epi32(low, high).simd_into(avx2);
                *sums = both.into();
            }
        }
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_have_the_same_products() {
        let value = |n: usize, max: usize| (n * 7919 % (2 * max + 1)) as i16 - max as i16;
        for (width, tokens) in [(16, 1), (384, 2), (384, 7), (1536, 3)] {
            let rows: Vec<i8> = (0..ROWS * width).map(|n| value(n, 127) as i8).collect();
            let input: Vec<i16> = (0..tokens * width).map(|n| value(n, 8191)).collect();
            let mut wide = vec![0; rows.len()];
            let (mut fast, mut portable) = (vec![[0; ROWS]; tokens], vec![[0; ROWS]; tokens]);
            multiply(Level::new(), &rows, &mut wide, &input, width, &mut fast);
            multiply_portable(&rows, &mut wide, &input, width, &mut portable);
            assert_eq!(fast, portable, "{width} {tokens}");
        }
    }

    #[test]
    fn the_largest_sum_fits() {
        let (width, max) = (1536, i64::from(crate::linear::MAX_ACTIVATION));
        assert!(width * 128 * max <= i64::from(i32::MAX));
    }
}

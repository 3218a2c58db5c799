//! Vectors: a text's from its tokens, in 8 bits, and cosines of one against many.

use super::document::Embed;

/// What 1.0 is in 8 bits.
const ONE: f32 = 127.0;

/// The sum of the vectors of `text`'s tokens at unit length, or nothing when no token is known.
pub(super) fn embed(embedder: &dyn Embed, text: &str) -> Option<Vec<f32>> {
    let mut tokens = Vec::new();
    embedder.tokenize(text, &mut tokens);
    let mut sum = vec![0.0; embedder.dimensions()];
    for token in tokens {
        embedder.add(token, 1.0, &mut sum);
    }
    normalize(&mut sum).then_some(sum)
}

/// Scales to unit length; false when there is no direction.
pub(super) fn normalize(vector: &mut [f32]) -> bool {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !(norm.is_finite() && norm > 1e-9) {
        return false;
    }
    for x in vector.iter_mut() {
        *x /= norm;
    }
    true
}

/// A vector in 8 bits, stretched so that its largest place is 127.
pub(super) fn quantize(vector: &[f32]) -> Box<[i8]> {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    if largest == 0.0 {
        return vec![0; vector.len()].into();
    }
    vector.iter().map(|x| (x / largest * ONE).round() as i8).collect()
}

/// 1 over the length of a vector in 8 bits; 0 for one of zeros.
pub(super) fn inverse_norm(vector: &[i8]) -> f32 {
    let square: i32 = vector.iter().map(|&x| i32::from(x) * i32::from(x)).sum();
    if square == 0 { 0.0 } else { 1.0 / (square as f32).sqrt() }
}

/// A query's unit vector, in numbers fine enough that rounding does not decide an order.
#[derive(Debug)]
pub(super) struct QueryVector {
    numbers: Vec<i16>,
}

/// What 1.0 is in a query's vector. 2047 * 127 * 4096 dimensions stay below `i32::MAX`.
const QUERY_ONE: f32 = 2047.0;

impl QueryVector {
    /// From a unit vector.
    pub fn new(unit: &[f32]) -> Self {
        Self { numbers: unit.iter().map(|x| (x * QUERY_ONE).round() as i16).collect() }
    }

    /// The cosines with each of `vectors`, which lie one after the other. Whole numbers are summed, so the result does
    /// not depend on the machine.
    ///
    /// # Cost
    ///
    /// About 15 ns for 256 dimensions.
    pub fn cosines(&self, vectors: &[i8], inverse_norms: &[f32]) -> Vec<f32> {
        let dimensions = self.numbers.len();
        let all = vectors.chunks_exact(dimensions).zip(inverse_norms);
        all.map(|(vector, inverse_norm)| dot(&self.numbers, vector) as f32 / QUERY_ONE * inverse_norm)
            .collect()
    }
}

fn dot(query: &[i16], vector: &[i8]) -> i32 {
    query.iter().zip(vector).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
}

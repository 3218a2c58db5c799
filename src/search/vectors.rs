//! Vectors: a text's from its tokens, in 8 bits, and cosines of one against many.

use super::document::{Document, Embed};
use super::options::VectorOptions;
use super::text;

/// What 1.0 is in 8 bits.
const ONE: f32 = 127.0;

/// The texts that a tool's vector is made of.
pub(super) struct Parts<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub lead: &'a str,
    pub body: &'a str,
}

impl Parts<'_> {
    /// The weighted sum of the parts' unit vectors, in 8 bits; `None` when no token is known.
    ///
    /// Each part has its say whatever its length: the mean over all words would drown a name in a long description.
    pub fn vector(
        &self,
        embedder: &dyn Embed,
        document: &Document<'_>,
        options: &VectorOptions,
    ) -> Option<Box<[i8]>> {
        /// How much of a long description is embedded.
        const BODY_BYTES_MAX: usize = 300;
        let body = &self.body[..self.body.floor_char_boundary(BODY_BYTES_MAX)];
        let parameters: Vec<String> =
            document.parameters.iter().map(|parameter| spelled(parameter.name)).collect();
        let parts = [
            (spelled(self.server).as_str(), options.server),
            (spelled(self.name).as_str(), options.name),
            (document.title, options.title),
            (self.lead, options.lead),
            (body, options.body),
            (parameters.join(" ").as_str(), options.parameters),
        ]
        .map(|(text, weight)| if weight > 0.0 { (embed(embedder, text), weight) } else { (None, weight) });
        let mut sum = vec![0.0; embedder.dimensions()];
        for (vector, weight) in parts {
            for (place, x) in sum.iter_mut().zip(vector.into_iter().flatten()) {
                *place += weight * x;
            }
        }
        normalize(&mut sum).then(|| quantize(&sum))
    }
}

/// A name as words.
fn spelled(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    text::for_each_word(name, |word| {
        if !word.joined {
            words.push_str(word.lower);
            words.push(' ');
        }
    });
    words
}

/// The sum of the vectors of `text`'s tokens at unit length, or nothing when no token is known.
pub(super) fn embed(embedder: &dyn Embed, text: &str) -> Option<Vec<f32>> {
    embed_known(embedder, text).map(|(vector, _)| vector)
}

/// Likewise, with the share of the text's letters that the embedder knows.
pub(super) fn embed_known(embedder: &dyn Embed, text: &str) -> Option<(Vec<f32>, f32)> {
    let mut tokens = Vec::new();
    let unknown = embedder.tokenize(text, &mut tokens);
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count().max(1);
    let known = 1.0 - unknown.min(letters) as f32 / letters as f32;
    let mut sum = vec![0.0; embedder.dimensions()];
    for token in tokens {
        embedder.add(token, 1.0, &mut sum);
    }
    normalize(&mut sum).then_some((sum, known))
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
    sum: i32,
}

/// What 1.0 is in a query's vector. A dot product stays below `i32::MAX` up to 4096 dimensions.
const QUERY_ONE: f32 = 2047.0;

impl QueryVector {
    /// From a unit vector.
    pub fn new(unit: &[f32]) -> Self {
        let numbers: Vec<i16> = unit.iter().map(|x| (x * QUERY_ONE).round() as i16).collect();
        let sum = numbers.iter().map(|&x| i32::from(x)).sum();
        Self { numbers, sum }
    }

    /// The cosine with one biased vector ([`biased`]). Whole numbers are summed, so the result does not depend on the
    /// machine.
    ///
    /// # Cost
    ///
    /// 11 ns for 256 dimensions with SSE2.
    pub fn cosine(&self, vector: &[u8], inverse_norm: f32) -> f32 {
        let product = dot(&self.numbers, vector) - BIAS * self.sum;
        product as f32 / QUERY_ONE * inverse_norm
    }

    pub fn dimensions(&self) -> usize {
        self.numbers.len()
    }
}

/// Vectors are kept with 128 added to each number: machines widen unsigned bytes in half the steps.
const BIAS: i32 = 128;

pub(super) fn biased(vector: &[i8]) -> impl Iterator<Item = u8> {
    vector.iter().map(|&x| (x as u8) ^ 0x80)
}

/// How many numbers are widened at once, so that compilers see two plain loops over 16-bit numbers.
const BLOCK: usize = 64;

fn dot(query: &[i16], vector: &[u8]) -> i32 {
    let (query_blocks, query_rest) = query.as_chunks::<BLOCK>();
    let (vector_blocks, vector_rest) = vector.as_chunks::<BLOCK>();
    let mut wide = [0_i16; BLOCK];
    // Two sums, so that one addition need not wait for the other. Neither can overflow, and checks for it would keep
    // the compiler from using wide instructions.
    let (mut first, mut second) = (0_i32, 0_i32);
    for (query, vector) in query_blocks.iter().zip(vector_blocks) {
        for (wide, &narrow) in wide.iter_mut().zip(vector) {
            *wide = i16::from(narrow);
        }
        for j in 0..BLOCK / 2 {
            first = first.wrapping_add(i32::from(query[j]).wrapping_mul(i32::from(wide[j])));
        }
        for j in BLOCK / 2..BLOCK {
            second = second.wrapping_add(i32::from(query[j]).wrapping_mul(i32::from(wide[j])));
        }
    }
    let rest = query_rest.iter().zip(vector_rest).map(|(&a, &b)| i32::from(a) * i32::from(b));
    first + second + rest.sum::<i32>()
}

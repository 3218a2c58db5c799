//! Vectors: a text's from its tokens, in 8 bits, and cosines of one against many.

use super::document::{Document, Embed};
use super::options::VectorOptions;

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
    ///
    /// `spell` appends a name as words.
    pub fn vector(
        &self,
        embedder: &dyn Embed,
        document: &Document<'_>,
        options: &VectorOptions,
        spell: &mut dyn FnMut(&str, &mut String),
    ) -> Option<Box<[i8]>> {
        /// How much of a long description is embedded.
        const BODY_BYTES_MAX: usize = 300;
        let body = &self.body[..self.body.floor_char_boundary(BODY_BYTES_MAX)];
        let mut spelled = String::with_capacity(256);
        spell(self.server, &mut spelled);
        let server_end = spelled.len();
        spell(self.name, &mut spelled);
        let name_end = spelled.len();
        for parameter in &document.parameters {
            spell(parameter.name, &mut spelled);
            spelled.push(' ');
        }
        let parts = [
            (&spelled[..server_end], options.server),
            (&spelled[server_end..name_end], options.name),
            (document.title, options.title),
            (self.lead, options.lead),
            (body, options.body),
            (&spelled[name_end..], options.parameters),
        ];
        let mut sum = vec![0.0; embedder.dimensions()];
        let mut part = vec![0.0; embedder.dimensions()];
        let mut tokens = Vec::with_capacity(128);
        for (text, weight) in parts.into_iter().filter(|(text, weight)| *weight > 0.0 && !text.is_empty()) {
            tokens.clear();
            embedder.tokenize(text, &mut tokens);
            part.fill(0.0);
            embedder.add_all(&tokens, &mut part);
            if normalize(&mut part) {
                for (place, x) in sum.iter_mut().zip(&part) {
                    *place += weight * x;
                }
            }
        }
        normalize(&mut sum).then(|| quantize(&sum))
    }
}

/// The sum of the vectors of `text`'s tokens at unit length, or nothing when no token is known.
pub(super) fn embed(embedder: &dyn Embed, text: &str) -> Option<Vec<f32>> {
    embed_known(embedder, text).map(|(vector, _)| vector)
}

/// Likewise, with the share of the text's letters that the embedder knows.
pub(super) fn embed_known(embedder: &dyn Embed, text: &str) -> Option<(Vec<f32>, f32)> {
    let mut tokens = Vec::new();
    let unknown = embedder.tokenize(text, &mut tokens);
    let letters = match text.is_ascii() {
        true => text.bytes().filter(u8::is_ascii_alphanumeric).count().max(1),
        false => text.chars().filter(|c| c.is_alphanumeric()).count().max(1),
    };
    let known = 1.0 - unknown.min(letters) as f32 / letters as f32;
    let mut sum = vec![0.0; embedder.dimensions()];
    embedder.add_all(&tokens, &mut sum);
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

/// The nearest whole number, halves away from zero, of a number that is far from the largest. As `f32::round`, which is a
/// call where machines have no instruction for it.
fn rounded(x: f32) -> i32 {
    let whole = x as i32;
    let part = x - whole as f32;
    whole.wrapping_add(i32::from(part >= 0.5)).wrapping_sub(i32::from(part <= -0.5))
}

/// A vector in 8 bits, stretched so that its largest place is 127.
pub(super) fn quantize(vector: &[f32]) -> Box<[i8]> {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    if largest == 0.0 {
        return vec![0; vector.len()].into();
    }
    vector.iter().map(|x| rounded(x / largest * ONE) as i8).collect()
}

/// 1 over the length of a vector in 8 bits; 0 for one of zeros.
pub(super) fn inverse_norm(vector: &[i8]) -> f32 {
    // It can't overflow: 2^14 at most for each of at most 4096 places.
    let square =
        vector.iter().fold(0_i32, |sum, &x| sum.wrapping_add(i32::from(x).wrapping_mul(i32::from(x))));
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
        let numbers: Vec<i16> = unit.iter().map(|x| rounded(x * QUERY_ONE) as i16).collect();
        let sum = numbers.iter().fold(0_i32, |sum, &x| sum.wrapping_add(i32::from(x)));
        Self { numbers, sum }
    }

    /// The cosine with one biased vector ([`biased`]). Whole numbers are summed, so the result does not depend on the
    /// machine.
    ///
    /// # Cost
    ///
    /// 11 ns for 256 dimensions with SSE2, about half of that with AVX2.
    #[inline(always)]
    pub fn cosine(&self, vector: &[u8], inverse_norm: f32) -> f32 {
        let product = dot(&self.numbers, vector).wrapping_sub(BIAS.wrapping_mul(self.sum));
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

/// Of two vectors as long as each other. In blocks, the longest that fit: 256 dimensions are one.
#[inline(always)]
fn dot(query: &[i16], vector: &[u8]) -> i32 {
    let (long_query, query) = query.as_chunks::<256>();
    let (long_vector, vector) = vector.as_chunks::<256>();
    let (short_query, query) = query.as_chunks::<32>();
    let (short_vector, vector) = vector.as_chunks::<32>();
    let mut sum = 0_i32;
    for (query, vector) in long_query.iter().zip(long_vector) {
        sum = sum.wrapping_add(dot_block(query, vector));
    }
    for (query, vector) in short_query.iter().zip(short_vector) {
        sum = sum.wrapping_add(dot_block(query, vector));
    }
    for (&a, &b) in query.iter().zip(vector) {
        sum = sum.wrapping_add(i32::from(a).wrapping_mul(i32::from(b)));
    }
    sum
}

/// Widened first, so that compilers see two plain loops over 16-bit numbers. Nothing can overflow, and checks for it would
/// keep them from using wide instructions.
#[inline(always)]
fn dot_block<const LEN: usize>(query: &[i16; LEN], vector: &[u8; LEN]) -> i32 {
    let wide: [i16; LEN] = std::array::from_fn(|i| i16::from(vector[i]));
    let mut sum = 0_i32;
    for i in 0..LEN {
        sum = sum.wrapping_add(i32::from(query[i]).wrapping_mul(i32::from(wide[i])));
    }
    sum
}

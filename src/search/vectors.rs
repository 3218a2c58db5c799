//! Vectors: a text's from its tokens, in 8 bits, and cosines of one against many.

use super::document::Embed;
use super::dot;
use super::options::VectorOptions;

/// What 1.0 is in 8 bits.
const ONE: f32 = 127.0;

/// The texts that a tool's vector is made of, names as words.
pub(super) struct Parts<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub title: &'a str,
    pub lead: &'a str,
    pub body: &'a str,
    pub parameters: &'a str,
}

impl Parts<'_> {
    /// The weighted sum of the parts' unit vectors, in 8 bits; `None` when no token is known.
    ///
    /// Each part has its say whatever its length: the mean over all words would drown a name in a long description.
    pub fn vector(&self, embedder: &dyn Embed, options: &VectorOptions) -> Option<Box<[i8]>> {
        /// How much of a long description is embedded.
        const BODY_BYTES_MAX: usize = 300;
        let body = &self.body[..self.body.floor_char_boundary(BODY_BYTES_MAX)];
        let parts = [
            (self.server, options.server),
            (self.name, options.name),
            (self.title, options.title),
            (self.lead, options.lead),
            (body, options.body),
            (self.parameters, options.parameters),
        ];
        let dimensions = embedder.dimensions();
        let mut vectors = vec![0.0; dimensions * PARTS];
        let mut tokens = Vec::with_capacity(128);
        for ((text, weight), vector) in parts.into_iter().zip(vectors.chunks_exact_mut(dimensions)) {
            if weight > 0.0 && !text.is_empty() {
                tokens.clear();
                embedder.tokenize(text, &mut tokens);
                embedder.add_all(&tokens, vector);
            }
        }
        let mut sum = vec![0.0; dimensions];
        pulp::Arch::new().dispatch(AddParts {
            vectors: &vectors,
            weights: parts.map(|(_, weight)| weight),
            sum: &mut sum,
        });
        normalize(&mut sum).then(|| quantize(&sum))
    }
}

/// How many texts a tool's vector is made of.
const PARTS: usize = 6;

/// Numbers that are worked on together.
const BLOCK: usize = 16;

/// Adds vectors that lie one behind the other, each at unit length and weighed. Compiled for each width of instructions, of
/// which this machine's widest runs; sums are the same in each.
struct AddParts<'a> {
    vectors: &'a [f32],
    weights: [f32; PARTS],
    sum: &'a mut [f32],
}

impl pulp::NullaryFnOnce for AddParts<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let dimensions = self.sum.len();
        let norms = norms(self.vectors, dimensions);
        let vectors = self.vectors.chunks_exact(dimensions);
        for ((vector, norm), weight) in vectors.zip(norms).zip(self.weights) {
            if !is_length(norm) {
                continue;
            }
            let (sums, sums_rest) = self.sum.as_chunks_mut::<BLOCK>();
            let (blocks, rest) = vector.as_chunks::<BLOCK>();
            for (sum, block) in sums.iter_mut().zip(blocks) {
                // A copy, which nothing else can change meanwhile, stays in registers.
                let mut lanes = *sum;
                for i in 0..BLOCK {
                    lanes[i] += weight * (block[i] / norm);
                }
                *sum = lanes;
            }
            for (sum, x) in sums_rest.iter_mut().zip(rest) {
                *sum += weight * (x / norm);
            }
        }
    }
}

/// The lengths of vectors that lie one behind the other. Each sum's numbers are added in their order, and the sums beside
/// one another: an addition waits for the one before.
#[inline(always)]
fn norms(vectors: &[f32], dimensions: usize) -> [f32; PARTS] {
    let mut squares = [0.0_f32; PARTS];
    for start in (0..dimensions).step_by(BLOCK) {
        let len = BLOCK.min(dimensions - start);
        for (part, square) in squares.iter_mut().enumerate() {
            let block = &vectors[part * dimensions + start..][..len];
            *square = match block.first_chunk::<BLOCK>() {
                Some(block) => block.iter().fold(*square, |sum, x| sum + x * x),
                None => block.iter().fold(*square, |sum, x| sum + x * x),
            };
        }
    }
    squares.map(f32::sqrt)
}

/// Whether a vector of this length has a direction.
fn is_length(norm: f32) -> bool {
    norm.is_finite() && norm > 1e-9
}

/// The sum of the vectors of `text`'s tokens at unit length, or nothing when no token is known.
pub(super) fn embed(embedder: &dyn Embed, text: &str) -> Option<Vec<f32>> {
    embed_known(embedder, text).map(|(vector, _)| vector)
}

/// How well an embedder knows a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Familiarity {
    /// The share of the text's letters that it knows.
    pub known: f32,
    /// Tokens per letter, beyond those of words; 0 in scripts that put few letters into a word.
    pub scattered: f32,
}

/// Likewise, with how well the embedder knows the text.
pub(super) fn embed_known(embedder: &dyn Embed, text: &str) -> Option<(Vec<f32>, Familiarity)> {
    /// Nineteen in twenty questions in Latin or Cyrillic letters have fewer tokens per letter, two thirds of made-up
    /// nonsense has more.
    const TOKENS_PER_LETTER: f32 = 0.46;
    /// Latin, Greek and Cyrillic end here. Words of Hebrew and Arabic have few letters, which leave out vowels.
    const LONG_WORDS_END: char = '\u{530}';
    let mut tokens = Vec::new();
    let unknown = embedder.tokenize(text, &mut tokens);
    let letters = match text.is_ascii() {
        true => text.bytes().filter(u8::is_ascii_alphanumeric).count().max(1),
        false => text.chars().filter(|c| c.is_alphanumeric()).count().max(1),
    };
    let known = 1.0 - unknown.min(letters) as f32 / letters as f32;
    let has_long_words = text.is_ascii() || !text.chars().any(|c| c >= LONG_WORDS_END && c.is_alphabetic());
    let scattered = match has_long_words {
        true => (tokens.len() as f32 / letters as f32 - TOKENS_PER_LETTER).max(0.0),
        false => 0.0,
    };
    let mut sum = vec![0.0; embedder.dimensions()];
    embedder.add_all(&tokens, &mut sum);
    normalize(&mut sum).then_some((sum, Familiarity { known, scattered }))
}

/// Scales to unit length; false when there is no direction.
pub(super) fn normalize(vector: &mut [f32]) -> bool {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !is_length(norm) {
        return false;
    }
    for x in vector.iter_mut() {
        *x /= norm;
    }
    true
}

/// The nearest whole number, halves away from zero, of a number that is far from the largest. As `f32::round`, which is a
/// call where machines have no instruction for it.
#[inline(always)]
fn rounded(x: f32) -> i32 {
    let whole = x as i32;
    let part = x - whole as f32;
    whole.wrapping_add(i32::from(part >= 0.5)).wrapping_sub(i32::from(part <= -0.5))
}

/// A vector in 8 bits, stretched so that its largest place is 127.
pub(super) fn quantize(vector: &[f32]) -> Box<[i8]> {
    let mut numbers: Box<[i8]> = vec![0; vector.len()].into();
    pulp::Arch::new().dispatch(Quantize { vector, numbers: &mut numbers });
    numbers
}

/// Compiled for each width of instructions, of which this machine's widest runs.
struct Quantize<'a> {
    vector: &'a [f32],
    numbers: &'a mut [i8],
}

impl pulp::NullaryFnOnce for Quantize<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (blocks, rest) = self.vector.as_chunks::<BLOCK>();
        let mut lanes = [0.0_f32; BLOCK];
        for block in blocks {
            for (lane, x) in lanes.iter_mut().zip(block) {
                *lane = lane.max(x.abs());
            }
        }
        let largest = lanes.iter().chain(rest).fold(0.0_f32, |largest, x| largest.max(x.abs()));
        if largest > 0.0 {
            for (number, x) in self.numbers.iter_mut().zip(self.vector) {
                *number = rounded(x / largest * ONE) as i8;
            }
        }
    }
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

    /// The cosines with vectors that are biased ([`biased`]), each beside its inverse norm. Whole numbers are summed, so
    /// they do not depend on the machine.
    ///
    /// # Cost
    ///
    /// 5 ns a vector of 224 or 256 dimensions with AVX2, 11 ns with SSE2.
    pub fn cosines<'v>(&self, vectors: impl ExactSizeIterator<Item = (&'v [u8], f32)>) -> Vec<f32> {
        let mut cosines = Vec::with_capacity(vectors.len());
        dot::for_each(&self.numbers, vectors, |product, inverse_norm| {
            let product = product.wrapping_sub(BIAS.wrapping_mul(self.sum));
            cosines.push(product as f32 / QUERY_ONE * inverse_norm);
        });
        cosines
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

//! Dot products of a query with many vectors: what most of a query's time goes into among thousands of tools.
//!
//! Compilers make of the plain loop half the width that a machine has, so for x86 with AVX2 the three instructions of its
//! step are named (`pulp` gives them without `unsafe`, after it has asked the processor). The sums are the same.

/// Gives `visit` the product of each vector with `query`, which is as long, and what stands beside the vector.
#[inline(always)]
pub(super) fn for_each<'v, B>(
    query: &[i16],
    vectors: impl Iterator<Item = (&'v [u8], B)>,
    visit: impl FnMut(i32, B),
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        simd.vectorize(avx2::Products { simd, query, vectors, visit });
        return;
    }
    pulp::Arch::new().dispatch(Products { query, vectors, visit });
}

/// The plain loop, compiled for each width of instructions, of which this machine's widest runs.
struct Products<'q, V, F> {
    query: &'q [i16],
    vectors: V,
    visit: F,
}

impl<'v, B, V: Iterator<Item = (&'v [u8], B)>, F: FnMut(i32, B)> pulp::NullaryFnOnce for Products<'_, V, F> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        for (vector, beside) in self.vectors {
            (self.visit)(product(self.query, vector), beside);
        }
    }
}

/// In blocks, the longest that fit.
#[inline(always)]
fn product(query: &[i16], vector: &[u8]) -> i32 {
    let (long_query, query) = query.as_chunks::<256>();
    let (long_vector, vector) = vector.as_chunks::<256>();
    let (short_query, query) = query.as_chunks::<32>();
    let (short_vector, vector) = vector.as_chunks::<32>();
    let long = long_query.iter().zip(long_vector).map(|(query, vector)| block(query, vector));
    let short = short_query.iter().zip(short_vector).map(|(query, vector)| block(query, vector));
    long.chain(short).fold(rest(query, vector), i32::wrapping_add)
}

/// Nothing can overflow, and checks for it would keep compilers from using wide instructions.
#[inline(always)]
fn rest(query: &[i16], vector: &[u8]) -> i32 {
    let products = query.iter().zip(vector).map(|(&a, &b)| i32::from(a).wrapping_mul(i32::from(b)));
    products.fold(0, i32::wrapping_add)
}

/// Widened first, so that compilers see two plain loops over 16-bit numbers.
#[inline(always)]
fn block<const LEN: usize>(query: &[i16; LEN], vector: &[u8; LEN]) -> i32 {
    let wide: [i16; LEN] = std::array::from_fn(|i| i16::from(vector[i]));
    let mut sum = 0_i32;
    for i in 0..LEN {
        sum = sum.wrapping_add(i32::from(query[i]).wrapping_mul(i32::from(wide[i])));
    }
    sum
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use pulp::x86::V3;

    pub struct Products<'q, V, F> {
        pub simd: V3,
        pub query: &'q [i16],
        pub vectors: V,
        pub visit: F,
    }

    impl<'v, B, V: Iterator<Item = (&'v [u8], B)>, F: FnMut(i32, B)> pulp::NullaryFnOnce for Products<'_, V, F> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            // With a length that is known no step of the loop asks whether it is the last. 224 is the built-in model's.
            match self.query.len() {
                224 => self.of_length::<224>(),
                256 => self.of_length::<256>(),
                _ => self.of_any_length(),
            }
        }
    }

    impl<'v, B, V: Iterator<Item = (&'v [u8], B)>, F: FnMut(i32, B)> Products<'_, V, F> {
        #[inline(always)]
        fn of_length<const LEN: usize>(mut self) {
            let Some(query) = self.query.first_chunk::<LEN>() else { return };
            for (vector, beside) in self.vectors {
                if let Some(vector) = vector.first_chunk::<LEN>() {
                    (self.visit)(product(self.simd, query, vector), beside);
                }
            }
        }

        #[inline(always)]
        fn of_any_length(mut self) {
            for (vector, beside) in self.vectors {
                (self.visit)(product(self.simd, self.query, vector), beside);
            }
        }
    }

    #[inline(always)]
    fn product(simd: V3, query: &[i16], vector: &[u8]) -> i32 {
        let (query_blocks, query) = query.as_chunks::<16>();
        let (vector_blocks, vector) = vector.as_chunks::<16>();
        let mut sums = simd.avx._mm256_setzero_si256();
        for (query, vector) in query_blocks.iter().zip(vector_blocks) {
            let vector = simd.avx2._mm256_cvtepu8_epi16(pulp::cast(*vector));
            // Products of 16 bits and the sums of each two of them, in 32.
            let products = simd.avx2._mm256_madd_epi16(vector, pulp::cast(*query));
            sums = simd.avx2._mm256_add_epi32(sums, products);
        }
        let sums: [i32; 8] = pulp::cast(sums);
        sums.into_iter().fold(super::rest(query, vector), i32::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_widest_instructions_give_the_sums_of_the_plainest_loop(
            len in prop::sample::select(vec![0_usize, 1, 15, 16, 33, 224, 255, 256, 257, 300, 4096]),
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 33
            };
            let query: Vec<i16> = (0..len).map(|_| (next() % 4095) as i16 - 2047).collect();
            let vectors: Vec<Vec<u8>> = (0..3).map(|_| (0..len).map(|_| next() as u8).collect()).collect();
            let expected: Vec<(i32, usize)> = vectors.iter().map(|vector| rest(&query, vector)).zip(0..).collect();
            let mut found = Vec::new();
            for_each(&query, vectors.iter().map(Vec::as_slice).zip(0..), |product, i| found.push((product, i)));
            prop_assert_eq!(&found, &expected);
            let plain: Vec<(i32, usize)> = vectors.iter().map(|vector| product(&query, vector)).zip(0..).collect();
            prop_assert_eq!(&plain, &expected);
        }
    }
}

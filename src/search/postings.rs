//! The postings of a listing: for each of its terms the documents that have it, and what it weighs there.
//!
//! Terms are SipHash values, and so as good as random numbers. They are kept in order and found by their upper bits; they
//! are put in order by counting, first by the top byte and then within each of those parts. Both go through memory in
//! steps that caches hold, where a map of a large listing's terms is one miss after the other.

/// That a document has a term.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Posting {
    pub term: u64,
    pub document: u32,
    pub impact: f32,
}

/// The postings of one term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Postings<'a> {
    pub idf: f32,
    pub documents: &'a [u32],
    pub impacts: &'a [f32],
}

/// All postings.
#[derive(Debug)]
pub(super) struct PostingLists {
    /// Sorted.
    terms: Box<[u64]>,
    /// Where the terms of each value of their upper bits start; one more than there are such values.
    firsts: Box<[u32]>,
    /// How far those bits are from the lowest.
    shift: u32,
    /// Where each term's postings start; one more than there are terms.
    starts: Box<[u32]>,
    idf: Box<[f32]>,
    /// Documents of the postings, in order within a term.
    documents: Box<[u32]>,
    impacts: Box<[f32]>,
}

impl PostingLists {
    /// From the postings of all documents in order, and the terms of those; `idf` is that of a term which so many documents
    /// have.
    ///
    /// # Cost
    ///
    /// Some 10 nanoseconds a posting, and for as long as it works 16 bytes.
    pub fn new(
        terms: impl Iterator<Item = u64>,
        postings: impl Iterator<Item = Posting>,
        idf: impl Fn(u32) -> f32,
    ) -> Self {
        let mut buckets = Buckets::default();
        let total = buckets.count(terms, u64::BITS - TOP_BITS, TOP_BITS);
        let mut parts = vec![Posting::default(); total];
        postings.for_each(|posting| parts[buckets.place(posting.term)] = posting);
        let (mut terms, mut starts) = (Vec::with_capacity(total / 4), Vec::with_capacity(total / 4 + 1));
        let (mut documents, mut impacts) = (Vec::with_capacity(total), Vec::with_capacity(total));
        let mut sorted = Vec::new();
        let mut last = None;
        for part in parts.chunk_by(|one, other| top(one.term) == top(other.term)) {
            sort(part, &mut sorted, &mut buckets);
            for posting in &sorted {
                if last.replace(posting.term) != Some(posting.term) {
                    terms.push(posting.term);
                    starts.push(documents.len() as u32);
                }
                documents.push(posting.document);
                impacts.push(posting.impact);
            }
        }
        starts.push(total as u32);
        let shift = u64::BITS - terms.len().checked_ilog2().unwrap_or(0).max(1);
        Self {
            firsts: firsts(&terms, shift),
            shift,
            idf: idfs(&starts, idf),
            terms: terms.into(),
            starts: starts.into(),
            documents: documents.into(),
            impacts: impacts.into(),
        }
    }

    pub fn of(&self, term: u64) -> Option<Postings<'_>> {
        let bits = (term >> self.shift) as usize;
        let alike = self.firsts[bits] as usize..self.firsts[bits + 1] as usize;
        let place = alike.start + self.terms[alike].iter().position(|&known| known == term)?;
        let range = self.starts[place] as usize..self.starts[place + 1] as usize;
        Some(Postings {
            idf: self.idf[place],
            documents: &self.documents[range.clone()],
            impacts: &self.impacts[range],
        })
    }

    /// The bytes it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.terms)
            + size_of_val(&*self.firsts)
            + size_of_val(&*self.starts)
            + size_of_val(&*self.idf)
            + size_of_val(&*self.documents)
            + size_of_val(&*self.impacts)
    }
}

/// The idf of each term. Most are in as few documents as others, and a logarithm is worked out once for each number.
fn idfs(starts: &[u32], idf: impl Fn(u32) -> f32) -> Box<[f32]> {
    let mut known: Vec<Option<f32>> = Vec::new();
    let idf_of = |df: u32| {
        let place = df as usize;
        if known.len() <= place {
            known.resize(place + 1, None);
        }
        *known[place].get_or_insert_with(|| idf(df))
    };
    starts.windows(2).map(|pair| pair[1] - pair[0]).map(idf_of).collect()
}

fn firsts(terms: &[u64], shift: u32) -> Box<[u32]> {
    let values = 1_usize << (u64::BITS - shift);
    let mut firsts = vec![0_u32; values + 1];
    for term in terms {
        firsts[(term >> shift) as usize + 1] += 1;
    }
    for value in 0..values {
        firsts[value + 1] += firsts[value];
    }
    firsts.into()
}

/// By so many upper bits the postings are parted first.
const TOP_BITS: u32 = 8;

fn top(term: u64) -> u64 {
    term >> (u64::BITS - TOP_BITS)
}

/// Sorts postings with the same upper bits by term; those of one term stay in order.
fn sort(part: &[Posting], sorted: &mut Vec<Posting>, buckets: &mut Buckets) {
    // Some four postings share a bucket.
    let bits = part.len().ilog2().saturating_sub(2).max(1);
    buckets.count(part.iter().map(|posting| posting.term), u64::BITS - TOP_BITS - bits, bits);
    sorted.clear();
    sorted.resize(part.len(), Posting::default());
    for posting in part {
        sorted[buckets.place(posting.term)] = *posting;
    }
    let mut start = 0;
    for &end in &buckets.next {
        let few = &mut sorted[start..end as usize];
        if !few.is_sorted_by_key(|posting| posting.term) {
            few.sort_by_key(|posting| posting.term);
        }
        start = end as usize;
    }
}

/// Where the next posting goes that has certain bits.
#[derive(Default)]
struct Buckets {
    shift: u32,
    mask: u64,
    /// For each value of the bits; at last where the next value's postings start.
    next: Vec<u32>,
}

impl Buckets {
    /// Makes room for each of the terms, and returns how many there are.
    fn count(&mut self, terms: impl Iterator<Item = u64>, shift: u32, bits: u32) -> usize {
        (self.shift, self.mask) = (shift, (1 << bits) - 1);
        self.next.clear();
        self.next.resize(1 << bits, 0);
        terms.for_each(|term| self.next[(term >> shift & self.mask) as usize] += 1);
        let mut start = 0;
        for next in &mut self.next {
            start += std::mem::replace(next, start);
        }
        start as usize
    }

    fn place(&mut self, term: u64) -> usize {
        let next = &mut self.next[(term >> self.shift & self.mask) as usize];
        *next += 1;
        *next as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_term_has_its_documents_in_order(
            pairs in prop::collection::vec((0_u64..40, 0_u32..50), 0..400),
            alike in any::<bool>(),
        ) {
            // Spread as hashes are, or with only a few upper bits, so that many terms share all of their buckets.
            let spread = |term: u64| match alike {
                true => ((term % 3) << 62) | (term.reverse_bits() >> 40),
                false => term.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            };
            let mut pairs = pairs;
            pairs.sort_by_key(|pair| pair.1);
            let postings = pairs.iter().map(|&(term, document)| Posting {
                term: spread(term),
                document,
                impact: document as f32,
            });
            let terms = pairs.iter().map(|pair| spread(pair.0));
            let lists = PostingLists::new(terms, postings, |df| df as f32);
            for term in 0..50 {
                let documents: Vec<u32> =
                    pairs.iter().filter(|pair| pair.0 == term).map(|pair| pair.1).collect();
                match lists.of(spread(term)) {
                    None => prop_assert!(documents.is_empty()),
                    Some(found) => {
                        prop_assert_eq!(found.documents, &documents);
                        prop_assert_eq!(found.idf, documents.len() as f32);
                        prop_assert!(found.impacts.iter().zip(documents).all(|(&impact, of)| impact == of as f32));
                    }
                }
            }
        }
    }
}

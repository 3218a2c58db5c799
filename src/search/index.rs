//! A listing, ready to be searched: postings of its terms, its vectors, its names.
//!
//! Everything that a listing decides (document frequencies, mean lengths) is worked out here once, so a query only adds
//! numbers. A posting holds a term's saturated weight in a document:
//!
//! ```text
//! tf     = sum over fields of  weight * tf_field / (1 - b + b * length / mean_length)
//! impact = tf / (k1 + tf)
//! idf    = ln(1 + (N - df + 0.5) / (df + 0.5))
//! ```
//!
//! Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3.6 (BM25F).

use std::mem::size_of;
use std::sync::Arc;

use super::document::{AnalyzedDocument, DocumentTerm, FIELDS, Field, TermMap};
use super::options::{FieldOptions, RankerOptions};
use super::postings::{Posting, PostingLists, Postings};
use super::vectors::{QueryVector, biased, inverse_norm};

/// The tools of one listing, searchable.
#[derive(Debug)]
pub struct Index {
    postings: PostingLists,
    /// Names, full and bare, with their documents; sorted.
    names: Vec<(u64, u32)>,
    /// Documents that point to another one, in order.
    pointers: Vec<(u32, u32)>,
    /// All vectors with a bias, one after the other; documents without one have zeros, and an inverse norm of 0.
    vectors: Vec<u8>,
    inverse_norms: Vec<f32>,
    /// Documents with the same bare name have the same number.
    families: Vec<u32>,
    lithuanian: bool,
    len: usize,
}

impl Index {
    /// # Cost
    ///
    /// One pass over the terms of all documents, and about 10 bytes for each.
    pub(super) fn new(
        options: &RankerOptions,
        documents: &[Arc<AnalyzedDocument>],
        dimensions: usize,
    ) -> Self {
        let means = mean_lengths(documents);
        let postings = documents.iter().zip(0..).flat_map(|(document, position)| {
            let scales = field_scales(options, document, &means);
            let plainness = plainness(document);
            document.terms.iter().map(move |term| Posting {
                term: term.term,
                document: position,
                impact: plainness * impact(options.k1, term, &scales),
            })
        });
        let terms = documents.iter().flat_map(|document| document.terms.iter().map(|term| term.term));
        let postings = PostingLists::new(terms, postings, |df| idf(documents.len(), df));
        let vectors = vectors(documents, dimensions);
        let inverse_norms = documents.iter().map(|document| inverse_norm(&document.vector)).collect();
        let names = names(documents);
        let servers = numbered(documents, |document| {
            document.name.server.or(document.name.prefix.map(|prefix| prefix.0))
        });
        let families = numbered(documents, |document| Some(document.name.bare));
        let pointers = pointers(documents, &names, &servers);
        let lithuanian = documents.iter().any(|document| document.lithuanian);
        Self { postings, names, pointers, families, vectors, inverse_norms, lithuanian, len: documents.len() }
    }

    /// The most that an index of these documents takes while it is made, in bytes, about. Different terms are counted by a
    /// sample: terms are hashes, so one in 64 of them is as good as any.
    pub(super) fn bytes_ahead(documents: &[Arc<AnalyzedDocument>], dimensions: usize) -> usize {
        const SAMPLE: u32 = 64;
        /// Of fewer, each may be another one.
        const FEW: usize = 4096;
        /// While it is sorted, and then its document and impact.
        const POSTING: usize = size_of::<Posting>() + 8;
        /// Itself and a start, both up to three times while they grow; its place by the upper bits, and an `idf`.
        const TERM: usize = 12 * 3 + 8;
        let mut postings = 0;
        let mut sample: Vec<u64> = Vec::new();
        for document in documents {
            postings += document.terms.len();
            // By the upper bits, since the lowest are those of a field.
            let terms = document.terms.iter().map(|term| term.term);
            sample.extend(terms.filter(|term| term.leading_zeros() >= SAMPLE.ilog2()));
        }
        sample.sort_unstable();
        sample.dedup();
        let terms = if postings <= FEW { postings } else { sample.len() * SAMPLE as usize };
        let document = dimensions + 3 * size_of::<(u64, u32)>() + 2 * size_of::<f32>();
        postings * POSTING + terms * TERM + documents.len() * document
    }

    /// How many documents it has.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.postings.heap_bytes()
            + (self.families.capacity() + self.inverse_norms.capacity()) * 4
            + self.names.capacity() * size_of::<(u64, u32)>()
            + self.pointers.capacity() * size_of::<(u32, u32)>()
            + self.vectors.capacity()
    }

    pub(super) fn postings(&self, term: u64) -> Option<Postings<'_>> {
        self.postings.of(term)
    }

    /// The idf of a word that no document has.
    pub(super) fn idf_unknown(&self) -> f32 {
        idf(self.len, 0)
    }

    /// The documents with this name, full or bare, in order.
    pub(super) fn named(&self, name: u64) -> impl Iterator<Item = u32> {
        named(&self.names, name)
    }

    /// The document that a document says to use instead.
    pub(super) fn pointers_of(&self, document: u32) -> impl Iterator<Item = u32> {
        let from = self.pointers.partition_point(|&(from, _)| from < document);
        self.pointers[from..].iter().take_while(move |&&(from, _)| from == document).map(|&(_, to)| to)
    }

    /// A number that documents of the same bare name share.
    pub(super) fn family(&self, document: u32) -> u32 {
        self.families[document as usize]
    }

    /// Whether any document has Lithuanian stems.
    pub(super) fn has_lithuanian(&self) -> bool {
        self.lithuanian
    }

    /// The cosine of every document with a query.
    pub(super) fn cosines(&self, query: &QueryVector) -> Vec<f32> {
        let vectors = self.vectors.chunks_exact(query.dimensions());
        query.cosines(vectors.zip(self.inverse_norms.iter().copied()))
    }

    /// The cosines of some documents with a query.
    pub(super) fn cosines_of(&self, query: &QueryVector, documents: &[u32]) -> Vec<f32> {
        let dimensions = query.dimensions();
        query.cosines(documents.iter().map(|&document| {
            let document = document as usize;
            (&self.vectors[document * dimensions..][..dimensions], self.inverse_norms[document])
        }))
    }
}

fn idf(documents: usize, df: u32) -> f32 {
    let (n, df) = (documents as f32, df as f32);
    // In double precision, so that the last digit of a machine's logarithm is rounded away.
    f64::from(1.0 + (n - df + 0.5) / (df + 0.5)).ln() as f32
}

/// A word that a field says more often than this is not more what the tool is about.
const TF_MAX: u8 = 3;

fn impact(k1: f32, term: &DocumentTerm, scales: &[f32; FIELDS]) -> f32 {
    // Most terms stand in one field; the others would add nothing.
    let mut present = u64::from_le_bytes(term.tf);
    let mut tf = 0.0;
    while present != 0 {
        let field = present.trailing_zeros() / u8::BITS;
        present &= !(0xff << (field * u8::BITS));
        let field = field as usize;
        tf += f32::from(term.tf[field].min(TF_MAX)) * scales[field];
    }
    tf / (k1 + tf)
}

/// A name and a description of more words than this are a list of words to be found by, or a manual; either way each
/// word says less of what the tool is for.
const PLAIN_WORDS_MAX: u16 = 120;

fn plainness(document: &AnalyzedDocument) -> f32 {
    let fields = [Field::Name, Field::Title, Field::Lead, Field::Body];
    let words: u16 = fields.iter().map(|&field| document.lengths[field as usize]).sum();
    f32::from(PLAIN_WORDS_MAX) / f32::from(words.max(PLAIN_WORDS_MAX))
}

/// What one occurrence in each field of a document counts.
fn field_scales(
    options: &RankerOptions,
    document: &AnalyzedDocument,
    means: &[f32; FIELDS],
) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let FieldOptions { weight, b } = options.fields[field];
        weight / (1.0 - b + b * f32::from(document.lengths[field]) / means[field])
    })
}

/// What a field's length usually is, and of how many documents that counts as: a mean over five tools says little, and
/// one stuffed tool among them must not set it.
const USUAL_LENGTHS: [f32; FIELDS] = [1.0, 3.0, 3.0, 12.0, 30.0, 5.0, 40.0, 5.0];
const USUAL_DOCUMENTS: f32 = 10.0;

/// A length beyond so many usual ones counts as that in a mean.
const LENGTH_RATIO_MAX: f32 = 4.0;

/// The mean length of each field among the documents that have it.
fn mean_lengths(documents: &[Arc<AnalyzedDocument>]) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let usual = USUAL_LENGTHS[field];
        let lengths =
            documents.iter().map(|document| f32::from(document.lengths[field]).min(usual * LENGTH_RATIO_MAX));
        let (sum, count) =
            lengths.filter(|&length| length > 0.0).fold((0.0, 0.0), |(sum, count), l| (sum + l, count + 1.0));
        (sum + usual * USUAL_DOCUMENTS) / (count + USUAL_DOCUMENTS)
    })
}

fn vectors(documents: &[Arc<AnalyzedDocument>], dimensions: usize) -> Vec<u8> {
    let mut vectors = Vec::with_capacity(documents.len() * dimensions);
    for document in documents {
        if document.vector.len() == dimensions {
            vectors.extend(biased(&document.vector));
        } else {
            vectors.resize(vectors.len() + dimensions, 0);
        }
    }
    vectors
}

/// A first word of names without `__` is a server's when so many names have it.
const PREFIX_SHARED_MIN: usize = 3;

fn names(documents: &[Arc<AnalyzedDocument>]) -> Vec<(u64, u32)> {
    let mut shared: TermMap<usize> = TermMap::default();
    for (prefix, _) in documents.iter().filter_map(|document| document.name.prefix) {
        *shared.entry(prefix).or_default() += 1;
    }
    let mut names: Vec<(u64, u32)> = Vec::with_capacity(documents.len() * 2);
    for (document, position) in documents.iter().zip(0..) {
        names.push((document.name.full, position));
        names.push((document.name.bare, position));
        let rest = document.name.prefix.filter(|(prefix, _)| shared[prefix] >= PREFIX_SHARED_MIN);
        names.extend(rest.map(|(_, rest)| (rest, position)));
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn named(names: &[(u64, u32)], name: u64) -> impl Iterator<Item = u32> {
    let from = names.partition_point(|&(key, _)| key < name);
    names[from..].iter().take_while(move |&&(key, _)| key == name).map(|&(_, document)| document)
}

/// Numbers the documents by a key, the position of the first that has it; one without a key has a number of its own.
fn numbered(documents: &[Arc<AnalyzedDocument>], key: impl Fn(&AnalyzedDocument) -> Option<u64>) -> Vec<u32> {
    let mut first: TermMap<u32> = TermMap::default();
    let numbered = documents.iter().zip(0..).map(|(document, position)| match key(document) {
        Some(key) => *first.entry(key).or_insert(position),
        None => position,
    });
    numbered.collect()
}

/// Pointers to a tool of the same server; a name that is none of its tools is a word.
fn pointers(documents: &[Arc<AnalyzedDocument>], names: &[(u64, u32)], servers: &[u32]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (document, from) in documents.iter().zip(0..) {
        for &name in &document.pointers {
            let to = named(names, name).find(|&to| {
                let both_bare =
                    document.name.server.is_none() && documents[to as usize].name.server.is_none();
                to != from && (both_bare || servers[to as usize] == servers[from as usize])
            });
            found.extend(to.map(|to| (from, to)));
        }
    }
    found
}

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

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::size_of;
use std::sync::Arc;

use super::document::{AnalyzedDocument, DocumentTerm, FIELDS};
use super::options::{FieldOptions, RankerOptions};
use super::vectors::{QueryVector, inverse_norm};

/// The tools of one listing, searchable.
#[derive(Debug)]
pub struct Index {
    /// Term to its place in `starts` and `idf`.
    terms: HashMap<u64, u32, BuildHasherDefault<TermHasher>>,
    /// Where each term's postings start; one more than there are terms.
    starts: Vec<u32>,
    idf: Vec<f32>,
    /// Documents of the postings, in order within a term.
    documents: Vec<u32>,
    impacts: Vec<f32>,
    /// Names, full and bare, with their documents; sorted.
    names: Vec<(u64, u32)>,
    /// Documents that point to another one, in order.
    pointers: Vec<(u32, u32)>,
    /// The server of each document as a small number.
    servers: Vec<u32>,
    /// All vectors, one after the other; documents without one have zeros.
    vectors: Vec<i8>,
    inverse_norms: Vec<f32>,
    len: usize,
}

/// The postings of one term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Postings<'a> {
    pub idf: f32,
    pub documents: &'a [u32],
    pub impacts: &'a [f32],
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
        let mut terms: HashMap<u64, u32, BuildHasherDefault<TermHasher>> = HashMap::default();
        let mut counts: Vec<u32> = Vec::new();
        for term in documents.iter().flat_map(|document| &document.terms) {
            let id = *terms.entry(term.term).or_insert(counts.len() as u32);
            match counts.get_mut(id as usize) {
                Some(count) => *count += 1,
                None => counts.push(1),
            }
        }
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut total = 0;
        starts.push(0);
        for count in &counts {
            total += count;
            starts.push(total);
        }
        let mut next: Vec<u32> = starts[..counts.len()].to_vec();
        let mut posting_documents = vec![0; total as usize];
        let mut impacts = vec![0.0; total as usize];
        for (position, document) in documents.iter().enumerate() {
            let scales = field_scales(options, document, &means);
            for term in &document.terms {
                let id = terms[&term.term] as usize;
                let place = next[id] as usize;
                next[id] += 1;
                posting_documents[place] = position as u32;
                impacts[place] = impact(options.k1, term, &scales);
            }
        }
        let idf = counts.iter().map(|&df| idf(documents.len(), df)).collect();
        let mut vectors = vec![0; documents.len() * dimensions];
        if dimensions > 0 {
            for (document, place) in documents.iter().zip(vectors.chunks_exact_mut(dimensions)) {
                if document.vector.len() == dimensions {
                    place.copy_from_slice(&document.vector);
                }
            }
        }
        let inverse_norms = vectors.chunks_exact(dimensions.max(1)).map(inverse_norm).collect();
        let names = names(documents);
        let servers = servers(documents);
        let pointers = pointers(documents, &names, &servers);
        Self {
            terms,
            starts,
            idf,
            documents: posting_documents,
            impacts,
            names,
            pointers,
            servers,
            vectors,
            inverse_norms,
            len: documents.len(),
        }
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
        self.terms.capacity() * (size_of::<(u64, u32)>() + 1)
            + (self.starts.capacity() + self.idf.capacity() + self.documents.capacity()) * 4
            + (self.impacts.capacity() + self.servers.capacity() + self.inverse_norms.capacity()) * 4
            + self.names.capacity() * size_of::<(u64, u32)>()
            + self.pointers.capacity() * size_of::<(u32, u32)>()
            + self.vectors.capacity()
    }

    pub(super) fn postings(&self, term: u64) -> Option<Postings<'_>> {
        let id = *self.terms.get(&term)? as usize;
        let range = self.starts[id] as usize..self.starts[id + 1] as usize;
        Some(Postings {
            idf: self.idf[id],
            documents: &self.documents[range.clone()],
            impacts: &self.impacts[range],
        })
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

    pub(super) fn server(&self, document: u32) -> u32 {
        self.servers[document as usize]
    }

    /// The cosine of every document with a query.
    pub(super) fn cosines(&self, query: &QueryVector) -> Vec<f32> {
        query.cosines(&self.vectors, &self.inverse_norms)
    }
}

/// Terms are SipHash values already.
#[derive(Debug, Default, Clone, Copy)]
struct TermHasher(u64);

impl Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, term: u64) {
        self.0 = term;
    }
}

fn idf(documents: usize, df: u32) -> f32 {
    let (n, df) = (documents as f32, df as f32);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

fn impact(k1: f32, term: &DocumentTerm, scales: &[f32; FIELDS]) -> f32 {
    let tf: f32 = term.tf.iter().zip(scales).map(|(&tf, scale)| f32::from(tf) * scale).sum();
    tf / (k1 + tf)
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

/// The mean length of each field among the documents that have it, at least 1.
fn mean_lengths(documents: &[Arc<AnalyzedDocument>]) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let lengths = documents.iter().map(|document| u64::from(document.lengths[field]));
        let (sum, count) =
            lengths.filter(|&length| length > 0).fold((0, 0u32), |(sum, count), l| (sum + l, count + 1));
        if count == 0 { 1.0 } else { sum as f32 / count as f32 }
    })
}

fn names(documents: &[Arc<AnalyzedDocument>]) -> Vec<(u64, u32)> {
    let mut names: Vec<(u64, u32)> = Vec::with_capacity(documents.len() * 2);
    for (position, document) in documents.iter().enumerate() {
        names.push((document.full_name, position as u32));
        names.push((document.bare_name, position as u32));
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn named(names: &[(u64, u32)], name: u64) -> impl Iterator<Item = u32> {
    let from = names.partition_point(|&(key, _)| key < name);
    names[from..].iter().take_while(move |&&(key, _)| key == name).map(|&(_, document)| document)
}

/// Servers as numbers in order of first mention; a document without one is a server of its own.
fn servers(documents: &[Arc<AnalyzedDocument>]) -> Vec<u32> {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let numbered = documents.iter().enumerate().map(|(position, document)| match document.server {
        Some(server) => *numbers.entry(server).or_insert(position as u32),
        None => position as u32,
    });
    numbered.collect()
}

fn pointers(documents: &[Arc<AnalyzedDocument>], names: &[(u64, u32)], servers: &[u32]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (position, document) in documents.iter().enumerate() {
        for &name in &document.pointers {
            let same_server = named(names, name).find(|&to| {
                to as usize != position
                    && (servers[to as usize] == servers[position]
                        || (document.server.is_none() && documents[to as usize].server.is_none()))
            });
            found.extend(same_server.map(|to| (position as u32, to)));
        }
    }
    found
}

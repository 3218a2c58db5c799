//! The [`Ranker`]: documents in, hits out.

use std::sync::Arc;

use super::analyzer::Analyzer;
use super::document::{AnalyzedDocument, Document, DocumentTerm, Embed, FIELDS, Field};
use super::index::Index;
use super::options::RankerOptions;
use super::{lexical, names, query, vectors};

/// Words of a field that are read; the rest of a long one only costs.
const FIELD_WORDS_MAX: u16 = 512;

/// A tool that fits, best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position in the documents that the index was made from.
    pub index: usize,
    pub score: f32,
    /// From 1; `None` when the arm has nothing to say for the document.
    pub lexical_rank: Option<u32>,
    pub semantic_rank: Option<u32>,
    pub cosine: Option<f32>,
}

/// Ranks tools. Cheap to share; holds no documents.
pub struct Ranker {
    pub(super) options: RankerOptions,
    pub(super) analyzer: Analyzer,
    pub(super) embedder: Option<Arc<dyn Embed>>,
}

impl Ranker {
    pub fn new(options: RankerOptions, embedder: Option<Arc<dyn Embed>>) -> Self {
        Self { options, analyzer: Analyzer::new(), embedder }
    }

    /// What is kept of a document. Depends on the document alone.
    pub fn analyze(&self, document: &Document<'_>) -> AnalyzedDocument {
        let (server, bare) = names::split_server(document.name);
        let (lead, body) = split_lead(document.description);
        let mut fields = FieldTerms::new(&self.analyzer);
        fields.read(Field::Server, server.unwrap_or_default());
        fields.read(Field::Name, bare);
        fields.read(Field::Title, document.title);
        fields.read(Field::Lead, lead);
        fields.read(Field::Body, body);
        for parameter in &document.parameters {
            fields.read(Field::ParameterName, parameter.name);
            fields.read(Field::ParameterText, parameter.description);
            for value in &parameter.enum_values {
                fields.read(Field::EnumValue, value);
            }
        }
        let (terms, lengths) = fields.finish();
        AnalyzedDocument {
            terms,
            lengths,
            full_name: self.analyzer.name(document.name.strip_prefix("mcp__").unwrap_or(document.name)),
            bare_name: self.analyzer.name(bare),
            server: server.map(|server| self.analyzer.name(server)),
            pointers: names::pointers(document.description).map(|name| self.analyzer.name(name)).collect(),
            vector: self
                .embedder
                .as_deref()
                .and_then(|embedder| {
                    document_vector(
                        embedder,
                        &self.options.fusion.vector,
                        document,
                        server.unwrap_or_default(),
                        bare,
                        lead,
                        body,
                    )
                })
                .unwrap_or_default(),
        }
    }

    /// A listing, ready to be searched.
    pub fn index(&self, documents: &[Arc<AnalyzedDocument>]) -> Index {
        let dimensions = self.embedder.as_ref().map_or(0, |embedder| embedder.dimensions());
        Index::new(&self.options, documents, dimensions)
    }

    /// The best `limit` documents for `query`, best first; empty when nothing fits.
    pub fn rank(&self, query: &str, index: &Index, limit: usize) -> Vec<Hit> {
        let words = query::words(&self.analyzer, query, &self.options);
        let lexical = lexical::score(index, &words);
        let mut cosines = self.cosines(query, index);
        if self.options.fusion.x[3] != 0.0
            && let Some(all) = cosines.as_mut()
        {
            let w = self.options.fusion.x[3];
            let mut best = vec![-1.0_f32; all.len()];
            let mut n = 0;
            for part in query.split_inclusive(['.', '?', '!', ';', '\n']) {
                if part.split_whitespace().count() < 3 {
                    continue;
                }
                if let Some(c) = self.cosines(part, index) {
                    n += 1;
                    for (b, c) in best.iter_mut().zip(c) {
                        *b = b.max(c);
                    }
                }
            }
            if n > 1 {
                for (a, b) in all.iter_mut().zip(best) {
                    *a = (1.0 - w) * *a + w * b;
                }
            }
        }
        let semantic = if cosines.is_some() { self.options.fusion.semantic } else { 0.0 };
        let cosines = cosines.unwrap_or_default();
        let x = self.options.fusion.x;
        let most = lexical.scores.iter().copied().fold(0.0, f32::max);
        // x0: exponent of the mix between bound and best; x1: words cap
        let denominator = if x[1] > 0.0 {
            lexical.bound.min(most + x[1] * (lexical.bound - most))
        } else {
            lexical.bound.powf(1.0 - x[0]) * most.powf(x[0])
        };
        let scores: Vec<f32> = (0..index.len())
            .map(|d| {
                let lex =
                    if lexical.bound > 0.0 && most > 0.0 { lexical.scores[d] / denominator } else { 0.0 };
                semantic * cosines.get(d).copied().unwrap_or(0.0) + (1.0 - semantic) * lex
            })
            .collect();
        let mut order: Vec<u32> = (0..index.len() as u32).filter(|&d| scores[d as usize] > 0.0).collect();
        order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
        let hits = order.iter().take(limit).map(|&document| Hit {
            index: document as usize,
            score: scores[document as usize],
            lexical_rank: None,
            semantic_rank: None,
            cosine: None,
        });
        hits.collect()
    }

    fn cosines(&self, query: &str, index: &Index) -> Option<Vec<f32>> {
        let embedder = self.embedder.as_deref()?;
        let mut vector = vectors::embed(embedder, query::capped(query))?;
        let x = self.options.fusion.x;
        if x[2] != 0.0 {
            let kept: Vec<&str> = query
                .split_whitespace()
                .filter(|w| {
                    let mut content = false;
                    super::text::for_each_word(w, |word| {
                        content |= !(self.analyzer.is_stop_word(word.folded)
                            || self.analyzer.is_weak_word(word.folded))
                    });
                    content
                })
                .collect();
            if let Some(v) = vectors::embed(embedder, &kept.join(" ")) {
                for (a, b) in vector.iter_mut().zip(v) {
                    *a += x[2] * b;
                }
                vectors::normalize(&mut vector);
            }
        }
        Some(index.cosines(&vectors::QueryVector::new(&vector)))
    }
}

/// The first sentence of a description, and the rest.
fn split_lead(description: &str) -> (&str, &str) {
    /// A first sentence that has not ended by here is cut.
    const LEAD_BYTES_MAX: usize = 300;
    let description = description.trim_start();
    let head = &description[..description.floor_char_boundary(LEAD_BYTES_MAX)];
    let end = ["\n", ". ", "。", "! ", "? "]
        .iter()
        .filter_map(|stop| head.find(stop).map(|at| at + stop.len()))
        .min();
    description.split_at(end.unwrap_or(head.len()))
}

fn document_vector(
    embedder: &dyn Embed,
    w: &[f32; 6],
    document: &Document<'_>,
    server: &str,
    bare: &str,
    lead: &str,
    body: &str,
) -> Option<Box<[i8]>> {
    let mut sum = vec![0.0; embedder.dimensions()];
    let params: Vec<&str> = document.parameters.iter().map(|p| p.name).collect();
    let spelled = |name: &str| {
        let mut out = String::new();
        super::text::for_each_word(name, |word| {
            if !word.joined {
                out.push_str(word.lower);
                out.push(' ');
            }
        });
        out
    };
    let name = spelled(bare);
    let params = spelled(&params.join(" "));
    let body = &body[..body.floor_char_boundary(300)];
    let server = spelled(server);
    for (text, weight) in [
        (name.as_str(), w[0]),
        (document.title, w[1]),
        (lead, w[2]),
        (body, w[3]),
        (&params, w[4]),
        (&server, w[5]),
    ] {
        if weight == 0.0 || text.is_empty() {
            continue;
        }
        if let Some(unit) = vectors::embed(embedder, text) {
            for (s, u) in sum.iter_mut().zip(unit) {
                *s += weight * u;
            }
        }
    }
    vectors::normalize(&mut sum).then(|| vectors::quantize(&sum))
}

/// Collects the terms of a document's fields.
struct FieldTerms<'a> {
    analyzer: &'a Analyzer,
    found: Vec<(u64, u8)>,
    lengths: [u16; FIELDS],
}

impl<'a> FieldTerms<'a> {
    fn new(analyzer: &'a Analyzer) -> Self {
        Self { analyzer, found: Vec::with_capacity(128), lengths: [0; FIELDS] }
    }

    fn read(&mut self, field: Field, text: &str) {
        let length = &mut self.lengths[field as usize];
        let found = &mut self.found;
        self.analyzer.document_terms(text, |term, counted| {
            if *length < FIELD_WORDS_MAX {
                *length += u16::from(counted);
                found.push((term, field as u8));
            }
        });
    }

    fn finish(mut self) -> (Box<[DocumentTerm]>, [u16; FIELDS]) {
        self.found.sort_unstable();
        let mut terms: Vec<DocumentTerm> = Vec::with_capacity(self.found.len());
        for (term, field) in self.found {
            if terms.last().is_none_or(|last| last.term != term) {
                terms.push(DocumentTerm { term, tf: [0; FIELDS] });
            }
            let last = terms.last_mut().expect("a term was pushed just above");
            let tf = &mut last.tf[usize::from(field)];
            *tf = tf.saturating_add(1);
        }
        (terms.into_boxed_slice(), self.lengths)
    }
}

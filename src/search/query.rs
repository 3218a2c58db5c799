//! A query, read once: its words with the terms that would do, its vectors, the names in it.

use super::analyzer::{Analyzer, Memory};
use super::document::Embed;
use super::options::RankerOptions;
use super::text::{self, Script, Word};
use super::values::Taken;
use super::vectors::{self, Familiarity, QueryVector};

/// Queries are cut here, at a character's edge; what follows is not read.
const QUERY_BYTES_MAX: usize = 2048;

/// Different words of a query that are looked at.
const QUERY_WORDS_MAX: usize = 96;

/// Sentences of a query that are embedded apart.
const SENTENCES_MAX: usize = 6;

/// A sentence of fewer words says nothing by itself.
const SENTENCE_WORDS_MIN: usize = 3;

/// A word of a query.
#[derive(Debug, Clone)]
pub(super) struct QueryWord {
    pub text: String,
    pub weight: f32,
    /// The word's own term first, then others that mean the same, with what each counts.
    pub alternatives: Vec<(u64, f32)>,
    /// Adds to a score, but is not held against documents without it.
    pub bonus: bool,
}

/// The words of a query, and whether they are English.
#[derive(Debug, Default)]
pub(super) struct QueryWords {
    /// Each once, in order of first mention; then pairs of neighbours.
    pub words: Vec<QueryWord>,
    pub english: bool,
}

/// `query` up to its limit.
pub(super) fn capped(query: &str) -> &str {
    &query[..query.floor_char_boundary(QUERY_BYTES_MAX)]
}

/// The words of `query` that say something.
pub(super) fn words(
    analyzer: &Analyzer,
    query: &Taken,
    lithuanian: bool,
    options: &RankerOptions,
) -> QueryWords {
    analyzer.with_memory(|memory| read_words(analyzer, memory, query, lithuanian, options))
}

fn read_words(
    analyzer: &Analyzer,
    memory: &mut Memory,
    query: &Taken,
    lithuanian: bool,
    options: &RankerOptions,
) -> QueryWords {
    let mut reader = WordReader {
        analyzer,
        memory,
        options,
        lithuanian,
        part: 1.0,
        words: Vec::new(),
        pairs: Vec::new(),
        previous: String::new(),
        first: true,
        all: 0,
        function: 0,
        foreign: false,
    };
    text::for_each_word(&query.plain, |word| reader.read(&word));
    reader.previous.clear();
    reader.part = options.kind;
    for kind in &query.kinds {
        text::for_each_word(kind, |word| reader.read(&word));
    }
    reader.part = options.weak;
    text::for_each_word(&query.values, |word| reader.read(&word));
    let english = !reader.foreign
        && reader.function >= FUNCTION_WEIGHT_MIN
        && reader.function * FUNCTION_WEIGHT_SHARE >= reader.all;
    reader.words.append(&mut reader.pairs);
    QueryWords { words: reader.words, english }
}

/// A query is English when its function words weigh at least this, and at least one for so many words.
const FUNCTION_WEIGHT_MIN: usize = 2;
const FUNCTION_WEIGHT_SHARE: usize = 4;

struct WordReader<'a> {
    analyzer: &'a Analyzer,
    memory: &'a mut Memory,
    options: &'a RankerOptions,
    lithuanian: bool,
    /// What the words being read count.
    part: f32,
    words: Vec<QueryWord>,
    pairs: Vec<QueryWord>,
    /// The stem of the word before, or nothing after a stop word.
    previous: String,
    first: bool,
    all: usize,
    function: usize,
    foreign: bool,
}

impl WordReader<'_> {
    fn read(&mut self, word: &Word<'_>) {
        let analyzer = self.analyzer;
        let known = analyzer.word(self.memory, word.folded, word.script);
        let (own, weak) = (known.term, known.is_weak);
        // Titles and names inside a question are no sign of its language.
        if self.first || !word.capital {
            self.all += 1;
            self.function += known.function_weight;
            self.foreign |= !word.lower.is_ascii();
            self.first = false;
        }
        if self.words.len() == QUERY_WORDS_MAX {
            return;
        }
        if known.is_stop {
            self.previous.clear();
            return;
        }
        if !word.joined {
            if !self.previous.is_empty() {
                let alternatives = vec![(analyzer.pair_term(&self.previous, &known.stem), 1.0)];
                let text = [self.previous.as_str(), " ", &known.stem].concat();
                self.pairs.push(QueryWord { text, weight: self.options.pair, alternatives, bonus: true });
            }
            self.previous.clear();
            self.previous.push_str(&known.stem);
        }
        let weight = if weak { self.part.min(self.options.weak) } else { self.part };
        if let Some(known) = self.words.iter_mut().find(|known| known.alternatives[0].0 == own) {
            known.weight += weight * self.options.repeat;
            return;
        }
        let synonyms = analyzer.synonyms(own);
        let mut alternatives = Vec::with_capacity(synonyms.len() + 3);
        alternatives.push((own, 1.0));
        if self.lithuanian && word.script == Script::Latin {
            analyzer.lithuanian_terms(self.memory, word, |term| alternatives.push((term, 1.0)));
        }
        alternatives.extend(synonyms.iter().map(|&term| (term, self.options.synonym)));
        self.words.push(QueryWord { text: word.lower.to_owned(), weight, alternatives, bonus: false });
    }
}

/// The vectors of a query: the whole, and its sentences when it has several.
#[derive(Debug)]
pub(super) struct QueryVectors {
    pub whole: QueryVector,
    pub sentences: Vec<QueryVector>,
    /// How far the cosines can be trusted.
    pub familiarity: Familiarity,
    /// Words between spaces.
    pub words: usize,
}

/// `None` when the embedder knows no token of the query.
pub(super) fn vectors(embedder: &dyn Embed, query: &str) -> Option<QueryVectors> {
    let (whole, familiarity) = vectors::embed_known(embedder, query)?;
    let whole = QueryVector::new(&whole);
    let words = query.split_whitespace().count();
    let sentences: Vec<&str> = sentences(query).take(SENTENCES_MAX).collect();
    if sentences.len() < 2 {
        return Some(QueryVectors { whole, sentences: Vec::new(), familiarity, words });
    }
    let sentences = sentences.iter().filter_map(|sentence| vectors::embed(embedder, sentence));
    Some(QueryVectors {
        whole,
        sentences: sentences.map(|vector| QueryVector::new(&vector)).collect(),
        familiarity,
        words,
    })
}

fn sentences(query: &str) -> impl Iterator<Item = &str> {
    query.split_inclusive(['.', '?', '!', ';', '\n', '。', '？', '！', '؟', '।']).filter(|sentence| {
        let words = sentence.split_whitespace().count();
        words >= SENTENCE_WORDS_MIN || (!sentence.is_ascii() && sentence.chars().count() > 8)
    })
}

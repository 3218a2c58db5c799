//! Words become terms: stemmed, hashed, and on the query's side widened by what they are also called.
//!
//! Terms are SipHash values under keys drawn for each ranker, so nobody who writes a tool's text can choose colliding
//! ones. The stemmer follows the word's script, because a script can be told for certain and a language cannot: Latin
//! words are stemmed as English. Lithuanian text, which its letters give away, is indexed by its own stems too.
//!
//! Source: Snowball stemmers (snowballstem.org).

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use snowball_stemmers_rs::{Algorithm, Stemmer};

use super::document::{DocumentTerm, FIELDS, Field};
use super::text::{self, Script, Word};
use super::variants;

/// Which stems a term belongs to; terms of different kinds never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// The stem of the word's script.
    Stem,
    Lithuanian,
    /// A whole name.
    Name,
}

/// Stems that a thread remembers; then it forgets them all. Tools repeat a few thousand words.
const STEMS_MAX: usize = 8192;

thread_local! {
    /// Stemming is a pure function of the word, and the dearest step of analysis.
    static STEMS: RefCell<HashMap<Box<str>, Box<str>>> = RefCell::default();
}

pub(super) struct Analyzer {
    hasher: RandomState,
    stemmers: Stemmers,
    /// For the term of a word, the terms of the words it shares a group with; sorted.
    synonyms: HashMap<u64, Box<[u64]>>,
    /// Sorted.
    stop_words: Vec<&'static str>,
    /// Sorted.
    weak_words: Vec<&'static str>,
    /// Sorted.
    function_words: Vec<&'static str>,
    /// Sorted.
    shared_function_words: Vec<&'static str>,
}

struct Stemmers {
    english: Stemmer,
    lithuanian: Stemmer,
    russian: Stemmer,
    greek: Stemmer,
    arabic: Stemmer,
    armenian: Stemmer,
    hindi: Stemmer,
    tamil: Stemmer,
}

impl Stemmers {
    fn of(&self, script: Script) -> Option<&Stemmer> {
        Some(match script {
            Script::Latin => &self.english,
            Script::Cyrillic => &self.russian,
            Script::Greek => &self.greek,
            Script::Arabic => &self.arabic,
            Script::Armenian => &self.armenian,
            Script::Devanagari => &self.hindi,
            Script::Tamil => &self.tamil,
            Script::Unspaced | Script::Other => return None,
        })
    }
}

impl Analyzer {
    pub fn new() -> Self {
        let mut analyzer = Self {
            hasher: RandomState::new(),
            stemmers: Stemmers {
                english: Stemmer::create(Algorithm::English),
                lithuanian: Stemmer::create(Algorithm::Lithuanian),
                russian: Stemmer::create(Algorithm::Russian),
                greek: Stemmer::create(Algorithm::Greek),
                arabic: Stemmer::create(Algorithm::Arabic),
                armenian: Stemmer::create(Algorithm::Armenian),
                hindi: Stemmer::create(Algorithm::Hindi),
                tamil: Stemmer::create(Algorithm::Tamil),
            },
            synonyms: HashMap::new(),
            stop_words: sorted_words(variants::STOP_WORDS),
            weak_words: sorted_words(variants::WEAK_WORDS),
            function_words: sorted_words(variants::FUNCTION_WORDS),
            shared_function_words: sorted_words(variants::SHARED_FUNCTION_WORDS),
        };
        analyzer.synonyms = analyzer.synonym_terms();
        analyzer
    }

    fn synonym_terms(&self) -> HashMap<u64, Box<[u64]>> {
        let mut found: HashMap<u64, Vec<u64>> = HashMap::new();
        for group in variants::GROUPS {
            let terms: Vec<u64> = group.iter().map(|word| self.term(word, Script::Latin)).collect();
            for &term in &terms {
                found.entry(term).or_default().extend(terms.iter().filter(|&&other| other != term));
            }
        }
        let sorted = |mut terms: Vec<u64>| {
            terms.sort_unstable();
            terms.dedup();
            terms.into_boxed_slice()
        };
        found.into_iter().map(|(term, others)| (term, sorted(others))).collect()
    }

    /// The term that a name is found by, whatever its spelling.
    pub fn name(&self, name: &str) -> u64 {
        self.hash(Kind::Name, &super::names::key(name))
    }

    /// The term of a folded word.
    fn term(&self, folded: &str, script: Script) -> u64 {
        self.with_stem(folded, script, |stem| self.stem_term(stem))
    }

    /// Calls `visit` with the stem of a folded word.
    pub fn with_stem<R>(&self, folded: &str, script: Script, visit: impl FnOnce(&str) -> R) -> R {
        let Some(stemmer) = self.stemmers.of(script) else { return visit(folded) };
        STEMS.with_borrow_mut(|stems| {
            if let Some(stem) = stems.get(folded) {
                return visit(stem);
            }
            if stems.len() >= STEMS_MAX {
                stems.clear();
            }
            visit(stems.entry(folded.into()).or_insert_with(|| stemmer.stem(folded).into()))
        })
    }

    pub fn stem_term(&self, stem: &str) -> u64 {
        self.hash(Kind::Stem, stem)
    }

    /// The term of two words written as one, so that "screen shot" and "screenshot" meet.
    pub fn pair_term(&self, first: &str, second: &str) -> u64 {
        self.hash(Kind::Stem, &[first, second].concat())
    }

    /// The terms under which Lithuanian text is indexed too: with its letters stemmed as written, and as typed without
    /// diacritics.
    pub fn lithuanian_terms(&self, word: &Word<'_>, mut visit: impl FnMut(u64)) {
        let written = text::fold(&self.stemmers.lithuanian.stem(word.lower));
        visit(self.hash(Kind::Lithuanian, &written));
        let typed = self.stemmers.lithuanian.stem(word.folded);
        if typed != written {
            visit(self.hash(Kind::Lithuanian, &typed));
        }
    }

    pub fn synonyms(&self, term: u64) -> &[u64] {
        self.synonyms.get(&term).map_or(&[], |terms| terms)
    }

    pub fn is_stop_word(&self, folded: &str) -> bool {
        self.stop_words.binary_search(&folded).is_ok()
    }

    pub fn is_weak_word(&self, folded: &str) -> bool {
        self.weak_words.binary_search(&folded).is_ok()
    }

    /// How much a word that holds sentences together says for English: 2 when few other languages have it, else 1; 0 for
    /// other words.
    pub fn function_weight(&self, folded: &str) -> usize {
        if self.function_words.binary_search(&folded).is_ok() {
            2
        } else {
            usize::from(self.shared_function_words.binary_search(&folded).is_ok())
        }
    }

    fn hash(&self, kind: Kind, text: &str) -> u64 {
        self.hasher.hash_one((kind, text))
    }
}

/// Collects the terms of a document's fields.
pub(super) struct FieldTerms<'a> {
    analyzer: &'a Analyzer,
    found: Vec<(u64, u8)>,
    lengths: [u16; FIELDS],
    pub lithuanian: bool,
}

/// Words of a field that are read; the rest of a long one only costs.
const FIELD_WORDS_MAX: u16 = 512;

impl<'a> FieldTerms<'a> {
    pub fn new(analyzer: &'a Analyzer) -> Self {
        Self { analyzer, found: Vec::with_capacity(128), lengths: [0; FIELDS], lithuanian: false }
    }

    /// Adds the terms of `text` to a field.
    pub fn read(&mut self, field: Field, text: &str) {
        let lithuanian = is_lithuanian(text);
        self.lithuanian |= lithuanian;
        let paired = matches!(field, Field::Name | Field::Title | Field::Lead);
        let Self { analyzer, found, lengths, .. } = self;
        let length = &mut lengths[field as usize];
        let mut add = |term| found.push((term, field as u8));
        let mut previous = String::new();
        text::for_each_word(text, |word| {
            if *length == FIELD_WORDS_MAX {
                return;
            }
            analyzer.with_stem(word.folded, word.script, |stem| {
                add(analyzer.stem_term(stem));
                if paired && !word.joined {
                    if !previous.is_empty() {
                        add(analyzer.pair_term(&previous, stem));
                    }
                    previous.clear();
                    previous.push_str(stem);
                }
            });
            if lithuanian && word.script == Script::Latin {
                analyzer.lithuanian_terms(&word, &mut add);
            }
            *length += u16::from(!word.joined);
        });
    }

    /// The terms, sorted, and the words in each field.
    pub fn finish(mut self) -> (Box<[DocumentTerm]>, [u16; FIELDS]) {
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

fn sorted_words(list: &'static str) -> Vec<&'static str> {
    let mut words: Vec<_> = list.split_whitespace().collect();
    words.sort_unstable();
    words
}

/// Whether text has letters that no other language writes.
fn is_lithuanian(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| matches!(c, 'ė' | 'į' | 'ų' | 'Ė' | 'Į' | 'Ų'))
}

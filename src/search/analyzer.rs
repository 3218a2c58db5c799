//! Words become terms: stemmed, hashed, and on the query's side widened by what they are also called.
//!
//! Terms are SipHash values under keys drawn for each ranker, so nobody who writes a tool's text can choose colliding
//! ones. The stemmer follows the word's script, because a script can be told for certain and a language cannot: Latin
//! words are stemmed as English. Lithuanian text, which its letters give away, is indexed by its own stems too.
//!
//! Source: Snowball stemmers (snowballstem.org).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use snowball_stemmers_rs::{Algorithm, Stemmer};

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

pub(super) struct Analyzer {
    hasher: RandomState,
    stemmers: Stemmers,
    /// For the term of a word, the terms of the words it shares a group with; sorted.
    synonyms: HashMap<u64, Box<[u64]>>,
    /// Sorted.
    stop_words: Vec<&'static str>,
    /// Sorted.
    weak_words: Vec<&'static str>,
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

    /// Calls `visit` for each term of a document's text; false marks a term beside a counted one at the same place.
    pub fn document_terms(&self, text: &str, mut visit: impl FnMut(u64, bool)) {
        let lithuanian = is_lithuanian(text);
        text::for_each_word(text, |word| {
            visit(self.term(word.folded, word.script), !word.joined);
            if lithuanian && word.script == Script::Latin {
                self.lithuanian_terms(&word, |term| visit(term, false));
            }
        });
    }

    /// The term of a folded word.
    pub fn term(&self, folded: &str, script: Script) -> u64 {
        match self.stemmers.of(script) {
            Some(stemmer) => self.hash(Kind::Stem, &stemmer.stem(folded)),
            None => self.hash(Kind::Stem, folded),
        }
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

    fn hash(&self, kind: Kind, text: &str) -> u64 {
        self.hasher.hash_one((kind, text))
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

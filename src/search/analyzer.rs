//! Words become terms: stemmed, hashed, and on the query's side widened by what they are also called.
//!
//! Terms are SipHash values under keys drawn for each ranker, so nobody who writes a tool's text can choose colliding
//! ones. The stemmer follows the word's script, because a script can be told for certain and a language cannot: Latin
//! words are stemmed as English. Lithuanian text, which its letters give away, is indexed by its own stems too.
//!
//! Source: Snowball stemmers (snowballstem.org).

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use snowball_stemmers_rs::{Algorithm, Stemmer};

use super::document::{DocumentTerm, FIELDS, Field, TermHasher};
use super::remembered::{Pool, Remembered};
use super::text::{self, Piece, Script, Word};
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

/// What an analyzer remembers of words.
#[derive(Default)]
pub(super) struct Memory {
    /// By a run of ASCII letters, digits and apostrophes, as it is written.
    runs: Remembered<Run>,
    /// By a folded word.
    words: Remembered<FoldedWord>,
    /// The Lithuanian terms by a word in lower case.
    lithuanian: Remembered<[u64; 2]>,
}

/// What is known of a folded word.
#[derive(Debug, Clone)]
pub(super) struct FoldedWord {
    pub stem: Box<str>,
    pub term: u64,
    /// It carries no meaning for search.
    pub is_stop: bool,
    /// Most questions could have it.
    pub is_weak: bool,
    /// How much it says for English: 2 for a word that holds sentences together and that few other languages have, 1 for
    /// one that others have too, 0 for all else.
    pub function_weight: usize,
}

/// What a run of ASCII letters, digits and apostrophes becomes.
#[derive(Debug, Clone)]
pub(super) struct Run {
    words: Box<[RunWord]>,
    /// Its words in lower case, a space behind each.
    spelled: Box<str>,
}

#[derive(Debug, Clone)]
struct RunWord {
    term: u64,
    stem: Box<str>,
    joined: bool,
}

pub(super) struct Analyzer {
    hasher: RandomState,
    stemmers: Stemmers,
    memories: Pool<Memory>,
    /// For the term of a word, the terms of the words it shares a group with; sorted.
    synonyms: HashMap<u64, Box<[u64]>, BuildHasherDefault<TermHasher>>,
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
            memories: Pool::default(),
            synonyms: HashMap::default(),
            stop_words: sorted_words(variants::STOP_WORDS),
            weak_words: sorted_words(variants::WEAK_WORDS),
            function_words: sorted_words(variants::FUNCTION_WORDS),
            shared_function_words: sorted_words(variants::SHARED_FUNCTION_WORDS),
        };
        analyzer.synonyms = analyzer.synonym_terms();
        analyzer
    }

    fn synonym_terms(&self) -> HashMap<u64, Box<[u64]>, BuildHasherDefault<TermHasher>> {
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

    /// Lends what is remembered of words.
    pub fn with_memory<R>(&self, work: impl FnOnce(&mut Memory) -> R) -> R {
        self.memories.with(work)
    }

    /// The term that a name is found by, whatever its spelling.
    pub fn name(&self, name: &str) -> u64 {
        self.hash(Kind::Name, &[&super::names::key(name)])
    }

    /// The term of a folded word.
    fn term(&self, folded: &str, script: Script) -> u64 {
        self.stem_term(&self.stemmed(folded, script))
    }

    fn stemmed<'w>(&self, folded: &'w str, script: Script) -> Cow<'w, str> {
        self.stemmers
            .of(script)
            .map_or(Cow::Borrowed(folded), |stemmer| stemmer.stem(folded).into_owned().into())
    }

    /// What is known of a folded word.
    pub fn word<'m>(&self, memory: &'m mut Memory, folded: &str, script: Script) -> &'m FoldedWord {
        self.folded_word(&mut memory.words, folded, script)
    }

    fn folded_word<'m>(
        &self,
        words: &'m mut Remembered<FoldedWord>,
        folded: &str,
        script: Script,
    ) -> &'m FoldedWord {
        words.get(folded, || {
            let stem = self.stemmed(folded, script);
            FoldedWord {
                term: self.stem_term(&stem),
                is_stop: has(&self.stop_words, folded),
                is_weak: has(&self.weak_words, folded) || folded.bytes().all(|byte| byte.is_ascii_digit()),
                function_weight: match has(&self.function_words, folded) {
                    true => 2,
                    false => usize::from(has(&self.shared_function_words, folded)),
                },
                stem: stem.into(),
            }
        })
    }

    /// What a run of ASCII letters, digits and apostrophes becomes.
    pub fn run<'m>(&self, memory: &'m mut Memory, run: &str) -> &'m Run {
        let Memory { runs, words: folded, .. } = memory;
        runs.get(run, || {
            let (mut words, mut spelled) = (Vec::new(), String::new());
            text::for_each_word(run, |word| {
                let FoldedWord { stem, term, .. } = self.folded_word(folded, word.folded, word.script);
                words.push(RunWord { term: *term, stem: stem.clone(), joined: word.joined });
                if !word.joined {
                    spelled.extend([word.lower, " "]);
                }
            });
            Run { words: words.into(), spelled: spelled.into() }
        })
    }

    /// Appends the words of a name, in lower case and a space behind each.
    pub fn spell(&self, memory: &mut Memory, name: &str, words: &mut String) {
        for piece in text::pieces(name) {
            match piece {
                Piece::Ascii(run) => words.push_str(&self.run(memory, run).spelled),
                Piece::Other(text) => text::for_each_word(text, |word| {
                    if !word.joined {
                        words.extend([word.lower, " "]);
                    }
                }),
            }
        }
    }

    pub fn stem_term(&self, stem: &str) -> u64 {
        self.hash(Kind::Stem, &[stem])
    }

    /// The term of two words written as one, so that "screen shot" and "screenshot" meet.
    pub fn pair_term(&self, first: &str, second: &str) -> u64 {
        self.hash(Kind::Stem, &[first, second])
    }

    /// The terms under which Lithuanian text is indexed too: with its letters stemmed as written, and as typed without
    /// diacritics.
    pub fn lithuanian_terms(&self, memory: &mut Memory, word: &Word<'_>, mut visit: impl FnMut(u64)) {
        let [written, typed] = *memory.lithuanian.get(word.lower, || {
            let written = text::fold(&self.stemmers.lithuanian.stem(word.lower));
            let typed = self.stemmers.lithuanian.stem(word.folded);
            [self.hash(Kind::Lithuanian, &[&written]), self.hash(Kind::Lithuanian, &[&typed])]
        });
        visit(written);
        if typed != written {
            visit(typed);
        }
    }

    pub fn synonyms(&self, term: u64) -> &[u64] {
        self.synonyms.get(&term).map_or(&[], |terms| terms)
    }

    /// The same for a text whole and in pieces.
    fn hash(&self, kind: Kind, pieces: &[&str]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        kind.hash(&mut hasher);
        pieces.iter().for_each(|piece| hasher.write(piece.as_bytes()));
        hasher.finish()
    }
}

/// Collects the terms of a document's fields.
pub(super) struct FieldTerms<'a> {
    analyzer: &'a Analyzer,
    memory: &'a mut Memory,
    found: Vec<(u64, u8)>,
    lengths: [u16; FIELDS],
    pub lithuanian: bool,
}

/// Words of a field that are read; the rest of a long one only costs.
const FIELD_WORDS_MAX: u16 = 512;

impl<'a> FieldTerms<'a> {
    pub fn new(analyzer: &'a Analyzer, memory: &'a mut Memory) -> Self {
        let found = Vec::with_capacity(256);
        Self { analyzer, memory, found, lengths: [0; FIELDS], lithuanian: false }
    }

    /// Adds the terms of `text` to a field.
    pub fn read(&mut self, field: Field, text: &str) {
        let mut previous = String::new();
        if is_lithuanian(text) {
            self.lithuanian = true;
            self.read_words(field, text, true, &mut previous);
            return;
        }
        for piece in text::pieces(text) {
            match piece {
                Piece::Ascii(run) => self.read_run(field, run, &mut previous),
                Piece::Other(text) => self.read_words(field, text, false, &mut previous),
            }
        }
    }

    fn read_words(&mut self, field: Field, text: &str, lithuanian: bool, previous: &mut String) {
        let Self { analyzer, memory, found, lengths, .. } = self;
        let length = &mut lengths[field as usize];
        let mut add = |term| found.push((term, field as u8));
        text::for_each_word(text, |word| {
            if *length == FIELD_WORDS_MAX {
                return;
            }
            let FoldedWord { stem, term, .. } = analyzer.word(memory, word.folded, word.script);
            add(*term);
            if is_paired(field) && !word.joined {
                add_pair(analyzer, previous, stem, &mut add);
            }
            if lithuanian && word.script == Script::Latin {
                analyzer.lithuanian_terms(memory, &word, &mut add);
            }
            *length += u16::from(!word.joined);
        });
    }

    fn read_run(&mut self, field: Field, run: &str, previous: &mut String) {
        let Self { analyzer, memory, found, lengths, .. } = self;
        let length = &mut lengths[field as usize];
        let mut add = |term| found.push((term, field as u8));
        for word in &analyzer.run(memory, run).words {
            if *length == FIELD_WORDS_MAX {
                return;
            }
            add(word.term);
            if is_paired(field) && !word.joined {
                add_pair(analyzer, previous, &word.stem, &mut add);
            }
            *length += u16::from(!word.joined);
        }
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

/// Adds the term of a word and the one before it, which it then is.
fn add_pair(analyzer: &Analyzer, previous: &mut String, stem: &str, add: &mut impl FnMut(u64)) {
    if !previous.is_empty() {
        add(analyzer.pair_term(previous, stem));
    }
    previous.clear();
    previous.push_str(stem);
}

/// Fields in which words that stand together are also looked for as one.
fn is_paired(field: Field) -> bool {
    matches!(field, Field::Name | Field::Title | Field::Lead)
}

fn sorted_words(list: &'static str) -> Vec<&'static str> {
    let mut words: Vec<_> = list.split_whitespace().collect();
    words.sort_unstable();
    words
}

fn has(sorted: &[&'static str], word: &str) -> bool {
    sorted.binary_search(&word).is_ok()
}

/// Whether text has letters that no other language writes.
fn is_lithuanian(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| matches!(c, 'ė' | 'į' | 'ų' | 'Ė' | 'Į' | 'Ų'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_x16_words_are_hashed_with_a_salt_of_the_process() {
        // Whoever knows no salt can't make words that meet.
        let (one, other) = (Analyzer::new(), Analyzer::new());
        let words: Vec<String> = (0..1_000).map(|i| format!("w{i}")).collect();
        assert!(words.iter().all(|word| one.stem_term(word) != other.stem_term(word)));
        let terms: std::collections::HashSet<u64> = words.iter().map(|word| one.stem_term(word)).collect();
        assert_eq!(terms.len(), words.len());
    }
}

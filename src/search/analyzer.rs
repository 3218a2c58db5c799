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
use std::hash::{BuildHasher, Hasher};

use snowball_stemmers_rs::{Algorithm, Stemmer};

use super::document::{DocumentTerm, FIELDS, Field, TermMap};
use super::remembered::{Pool, Remembered};
use super::text::{self, Piece, Script, Word};
use super::{english, names, variants};

/// Which stems a term belongs to; terms of different kinds never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A run's text, its stems, and one of them, being made; kept to save allocations.
    text: String,
    stems: String,
    stem: String,
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
    /// Its first word; most have no other.
    first: Option<RunWord>,
    more: Box<[RunWord]>,
    /// Its words in lower case, a space behind each; then the stems of its words.
    text: Box<str>,
    spelled_len: u32,
    /// Whether it has a word of advice.
    is_advice: bool,
}

#[derive(Debug, Clone)]
struct RunWord {
    term: u64,
    /// Where its stem ends in the run's text; it starts where the one before ends.
    stem_end: u32,
    joined: bool,
}

impl Run {
    fn spelled(&self) -> &str {
        &self.text[..self.spelled_len as usize]
    }

    /// Its words, each with its stem.
    fn words(&self) -> impl Iterator<Item = (&RunWord, &str)> {
        let mut start = self.spelled_len as usize;
        self.first.iter().chain(&self.more).map(move |word| {
            let end = word.stem_end as usize;
            (word, &self.text[std::mem::replace(&mut start, end)..end])
        })
    }
}

pub(super) struct Analyzer {
    hasher: RandomState,
    stemmers: Stemmers,
    memories: Pool<Memory>,
    /// For the term of a word, the terms of the words it shares a group with; sorted.
    synonyms: TermMap<Box<[u64]>>,
    /// What is known of words that mean little, by folded word.
    listed: HashMap<&'static str, Listed, foldhash::fast::RandomState>,
}

/// What the lists of words say of one.
#[derive(Debug, Clone, Copy, Default)]
struct Listed {
    is_stop: bool,
    is_weak: bool,
    function_weight: usize,
}

fn listed_words() -> HashMap<&'static str, Listed, foldhash::fast::RandomState> {
    let mut listed: HashMap<&'static str, Listed, _> = HashMap::default();
    let mut list = |words: &'static str, mark: fn(&mut Listed)| {
        words.split_whitespace().for_each(|word| mark(listed.entry(word).or_default()));
    };
    list(variants::STOP_WORDS, |word| word.is_stop = true);
    list(variants::WEAK_WORDS, |word| word.is_weak = true);
    list(variants::SHARED_FUNCTION_WORDS, |word| word.function_weight = 1);
    list(variants::FUNCTION_WORDS, |word| word.function_weight = 2);
    listed
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
            synonyms: TermMap::default(),
            listed: listed_words(),
        };
        analyzer.synonyms = analyzer.synonym_terms();
        analyzer
    }

    fn synonym_terms(&self) -> TermMap<Box<[u64]>> {
        let mut found: TermMap<Vec<u64>> = TermMap::default();
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
        self.hash(Kind::Name, &[&names::key(name)])
    }

    /// The term of a folded word.
    fn term(&self, folded: &str, script: Script) -> u64 {
        self.stem_term(&self.stemmed(folded, script))
    }

    fn stemmed<'w>(&self, folded: &'w str, script: Script) -> Cow<'w, str> {
        if script == Script::Latin {
            let mut word = folded.to_owned();
            if english::stem(&mut word) {
                return Cow::Owned(word);
            }
        }
        self.stemmers
            .of(script)
            .map_or(Cow::Borrowed(folded), |stemmer| stemmer.stem(folded).into_owned().into())
    }

    /// What is known of a folded word.
    pub fn word<'m>(&self, memory: &'m mut Memory, folded: &str, script: Script) -> &'m FoldedWord {
        memory.words.get(folded, || {
            let stem = self.stemmed(folded, script);
            let Listed { is_stop, is_weak, function_weight } =
                self.listed.get(folded).copied().unwrap_or_default();
            FoldedWord {
                term: self.stem_term(&stem),
                stem: stem.into(),
                is_stop,
                is_weak: is_weak || folded.bytes().all(|byte| byte.is_ascii_digit()),
                function_weight,
            }
        })
    }

    /// What a run of ASCII letters, digits and apostrophes becomes.
    pub fn run<'m>(&self, memory: &'m mut Memory, run: &str) -> &'m Run {
        let Memory { runs, text, stems, stem, .. } = memory;
        runs.get(run, || {
            let is_advice = names::is_advice(run);
            text.clear();
            if text::is_plain(run) {
                stem.clear();
                stem.push_str(run);
                stem.make_ascii_lowercase();
                text.extend([stem.as_str(), " "]);
                if english::stem(stem) {
                    let spelled_len = text.len() as u32;
                    text.push_str(stem);
                    let (term, stem_end) = (self.stem_term(stem), text.len() as u32);
                    let first = Some(RunWord { term, stem_end, joined: false });
                    return Run {
                        first,
                        more: [].into(),
                        text: text.as_str().into(),
                        spelled_len,
                        is_advice,
                    };
                }
                text.clear();
            }
            let mut words = Vec::new();
            stems.clear();
            text::for_each_word(run, |word| {
                stem.clear();
                stem.push_str(word.folded);
                if !english::stem(stem) {
                    *stem = self.stemmed(word.folded, word.script).into_owned();
                }
                stems.push_str(stem);
                let (term, stem_end) = (self.stem_term(stem), stems.len() as u32);
                words.push(RunWord { term, stem_end, joined: word.joined });
                if !word.joined {
                    text.extend([word.lower, " "]);
                }
            });
            let spelled_len = text.len() as u32;
            words.iter_mut().for_each(|word| word.stem_end += spelled_len);
            text.push_str(stems);
            let first = if words.is_empty() { None } else { Some(words.remove(0)) };
            Run { first, more: words.into(), text: text.as_str().into(), spelled_len, is_advice }
        })
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

    /// The same for a text whole and in pieces. Room is left for a field.
    fn hash(&self, kind: Kind, pieces: &[&str]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u8(kind as u8);
        pieces.iter().for_each(|piece| hasher.write(piece.as_bytes()));
        hasher.finish() & !FIELD_BITS
    }
}

/// The bits of a number that hold a field: a term has zeros there.
const FIELD_BITS: u64 = FIELDS as u64 - 1;
const _: () = assert!(FIELDS.is_power_of_two());

/// Collects the terms of a document's fields.
pub(super) struct FieldTerms<'a> {
    analyzer: &'a Analyzer,
    memory: &'a mut Memory,
    /// Terms with the field in the bits that they leave free.
    found: Vec<u64>,
    lengths: [u16; FIELDS],
    /// The stem of the word before in the field.
    previous: String,
    /// Names as words: in lower case, a space behind each.
    spelled: String,
    is_spelling: bool,
    pub lithuanian: bool,
    /// Whether a word of advice may have been read.
    pub may_advise: bool,
}

/// Words of a field that are read; the rest of a long one only costs.
const FIELD_WORDS_MAX: u16 = 512;

impl<'a> FieldTerms<'a> {
    pub fn new(analyzer: &'a Analyzer, memory: &'a mut Memory) -> Self {
        let found = Vec::with_capacity(256);
        let previous = String::with_capacity(32);
        let spelled = String::with_capacity(256);
        let lengths = [0; FIELDS];
        let (is_spelling, lithuanian, may_advise) = (false, false, false);
        Self { analyzer, memory, found, lengths, previous, spelled, is_spelling, lithuanian, may_advise }
    }

    /// Adds the terms of a name to a field, and spells it. Returns how long all that was spelled is by now.
    pub fn read_name(&mut self, field: Field, name: &str) -> usize {
        self.is_spelling = true;
        self.read(field, name);
        self.is_spelling = false;
        self.spelled.len()
    }

    /// Adds the terms of `text` to a field.
    pub fn read(&mut self, field: Field, text: &str) {
        self.previous.clear();
        if is_lithuanian(text) {
            self.lithuanian = true;
            self.may_advise = true;
            self.read_words(field, text, true);
            return;
        }
        for piece in text::pieces(text) {
            match piece {
                Piece::Ascii(run) => self.read_run(field, run),
                Piece::Other(text) => {
                    self.may_advise = true;
                    self.read_words(field, text, false);
                }
            }
        }
    }

    fn read_words(&mut self, field: Field, text: &str, lithuanian: bool) {
        let Self { analyzer, memory, found, lengths, previous, spelled, is_spelling, .. } = self;
        let length = &mut lengths[field as usize];
        let mut add = |term| found.push(term | field as u64);
        text::for_each_word(text, |word| {
            if *is_spelling && !word.joined {
                spelled.extend([word.lower, " "]);
            }
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

    fn read_run(&mut self, field: Field, run: &str) {
        let Self { analyzer, memory, found, lengths, previous, .. } = self;
        let length = &mut lengths[field as usize];
        let mut add = |term| found.push(term | field as u64);
        let run = analyzer.run(memory, run);
        self.may_advise |= run.is_advice;
        if self.is_spelling {
            self.spelled.push_str(run.spelled());
        }
        if !is_paired(field) {
            for word in run.first.iter().chain(&run.more) {
                if *length == FIELD_WORDS_MAX {
                    return;
                }
                add(word.term);
                *length += u16::from(!word.joined);
            }
            return;
        }
        for (word, stem) in run.words() {
            if *length == FIELD_WORDS_MAX {
                return;
            }
            add(word.term);
            if !word.joined {
                add_pair(analyzer, previous, stem, &mut add);
            }
            *length += u16::from(!word.joined);
        }
    }

    /// The terms, sorted, the words in each field, and what was spelled.
    pub fn finish(mut self) -> (Box<[DocumentTerm]>, [u16; FIELDS], String) {
        self.found.sort_unstable();
        let mut terms: Vec<DocumentTerm> = Vec::with_capacity(self.found.len());
        for found in self.found {
            let (term, field) = (found & !FIELD_BITS, found & FIELD_BITS);
            if terms.last().is_none_or(|last| last.term != term) {
                terms.push(DocumentTerm { term, tf: [0; FIELDS] });
            }
            let last = terms.last_mut().expect("a term was pushed just above");
            let tf = &mut last.tf[field as usize];
            *tf = tf.saturating_add(1);
        }
        (terms.into_boxed_slice(), self.lengths, self.spelled)
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

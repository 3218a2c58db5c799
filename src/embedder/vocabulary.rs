//! A tokenizer in the compact form that is used in place.
//!
//! ```text
//! "TSVOCAB1"
//! u32 pieces, u32 unknown piece, f64 score of an unknown character
//! u32 steps, then one byte for each step of normalisation
//! u32 bytes of the character table, and the table
//! u32 bytes of the trie of pieces, and the trie
//! scores, f32 for each piece
//! ```
//!
//! All numbers are little-endian.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::charsmap::Charsmap;
use super::trie::Trie;
use super::unigram::{Best, Unigram};
use crate::search::{Pool, Remembered};

const MAGIC: &[u8; 8] = b"TSVOCAB1";

/// What stands for a space inside pieces.
pub(super) const SPACE: char = '\u{2581}';

/// A step of normalisation, in the order of the model's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Charsmap = 1,
    /// Two spaces or more become one.
    Spaces = 2,
    Lowercase = 3,
    Nfkc = 4,
    /// Soft hyphens and what has no width are left out ([`INVISIBLE`]).
    Invisible = 5,
    /// Whitespace of any kind and length becomes one space.
    Whitespace = 6,
    /// Whitespace at both ends is left out.
    Strip = 7,
}

impl Step {
    fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [Step; 7] = [
            Step::Charsmap,
            Step::Spaces,
            Step::Lowercase,
            Step::Nfkc,
            Step::Invisible,
            Step::Whitespace,
            Step::Strip,
        ];
        ALL.into_iter().find(|&step| step as u8 == byte)
    }
}

/// The parts of a tokenizer, to be written in the compact form.
pub(super) struct Parts<'a> {
    pub steps: Vec<Step>,
    pub charsmap: &'a [u8],
    pub trie: &'a [u32],
    pub scores: &'a [f32],
    pub unknown: u32,
    pub unknown_score: f64,
}

impl Parts<'_> {
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = |len: usize| u32::try_from(len).expect("a part has fewer than 4 GiB").to_le_bytes();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(count(self.scores.len()));
        bytes.extend(self.unknown.to_le_bytes());
        bytes.extend(self.unknown_score.to_le_bytes());
        bytes.extend(count(self.steps.len()));
        bytes.extend(self.steps.iter().map(|&step| step as u8));
        bytes.extend(count(self.charsmap.len()));
        bytes.extend(self.charsmap);
        bytes.extend(count(self.trie.len() * 4));
        bytes.extend(self.trie.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(self.scores.iter().flat_map(|score| score.to_le_bytes()));
        bytes
    }
}

/// What is kept between texts.
#[derive(Debug, Default)]
struct Memory {
    /// The tokens of a word as it is written, and how many of its characters are in none.
    words: Remembered<(Box<[u32]>, usize)>,
    /// The search's table, the word being cut and its pieces; kept to save allocations.
    best: Vec<Best>,
    word: String,
    pieces: Vec<u32>,
}

/// Calls `visit` for every word of normalised text: each space starts one, and so does the beginning.
fn for_each_part(text: &str, visit: &mut impl FnMut(&str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let body = rest.strip_prefix([' ', SPACE]).unwrap_or(rest);
        let end = body.find([' ', SPACE]).unwrap_or(body.len());
        visit(&body[..end]);
        rest = &body[end..];
    }
}

/// The words of ASCII text between whitespace.
fn ascii_words(text: &str) -> impl Iterator<Item = &str> {
    // As characters have it, to which a vertical tab is whitespace too.
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while is_space(*bytes.get(at)?) {
            at += 1;
        }
        let start = at;
        while bytes.get(at).is_some_and(|&byte| !is_space(byte)) {
            at += 1;
        }
        Some(&text[start..at])
    })
}

/// A tokenizer over bytes in the compact form.
#[derive(Debug)]
pub(super) struct Vocabulary {
    bytes: Cow<'static, [u8]>,
    pieces: u32,
    unknown: u32,
    unknown_score: f64,
    steps: Vec<Step>,
    /// The steps come to lower case and single spaces for ASCII text, which is then read word by word.
    folds_words: bool,
    charsmap: Range<usize>,
    trie: Range<usize>,
    scores: Range<usize>,
    memories: Pool<Memory>,
}

impl Vocabulary {
    /// `None` when the bytes are not in the compact form.
    pub fn new(bytes: Cow<'static, [u8]>) -> Option<Self> {
        let mut reader = Reader { bytes: &bytes, at: 0 };
        if bytes[reader.take(8)?] != *MAGIC {
            return None;
        }
        let pieces = reader.u32()?;
        let unknown = reader.u32()?;
        let unknown_score = f64::from_le_bytes(bytes[reader.take(8)?].try_into().ok()?);
        let steps = reader.sized()?;
        let steps: Option<Vec<Step>> = bytes[steps].iter().map(|&byte| Step::from_byte(byte)).collect();
        let steps = steps?;
        let charsmap = reader.sized()?;
        let trie = reader.sized()?;
        let scores = reader.take((pieces as usize).checked_mul(4)?)?;
        if steps.contains(&Step::Charsmap) {
            Charsmap::new(&bytes[charsmap.clone()])?;
        }
        let folds_words =
            steps == [Step::Nfkc, Step::Invisible, Step::Lowercase, Step::Whitespace, Step::Strip];
        let memories = Pool::default();
        Some(Self {
            bytes,
            pieces,
            unknown,
            unknown_score,
            steps,
            folds_words,
            charsmap,
            trie,
            scores,
            memories,
        })
    }

    /// How many pieces it has; a token is less than this.
    pub fn len(&self) -> usize {
        self.pieces as usize
    }

    pub fn heap_bytes(&self) -> usize {
        match &self.bytes {
            Cow::Borrowed(_) => 0,
            Cow::Owned(bytes) => bytes.capacity(),
        }
    }

    /// Appends the tokens of `text`, and returns how many characters are in none.
    pub fn tokenize(&self, text: &str, tokens: &mut Vec<u32>) -> usize {
        let unigram = Unigram {
            pieces: Trie::new(&self.bytes[self.trie.clone()]),
            scores: self.bytes[self.scores.clone()].as_chunks().0,
            unknown: self.unknown,
            unknown_score: self.unknown_score,
        };
        self.memories.with(|Memory { words, best, word, pieces }| {
            let mut unknown = 0;
            let mut encode = |part: &str| {
                let (known, missed) = words.get(part, || {
                    word.clear();
                    word.push(SPACE);
                    word.push_str(part);
                    if self.folds_words {
                        word.make_ascii_lowercase();
                    }
                    pieces.clear();
                    let missed = unigram.encode(word, best, pieces);
                    (pieces.as_slice().into(), missed)
                });
                tokens.extend_from_slice(known);
                unknown += missed;
            };
            if self.folds_words && text.is_ascii() {
                ascii_words(text).for_each(&mut encode);
            } else {
                for_each_part(&self.normalize(text), &mut encode);
            }
            unknown
        })
    }

    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for step in &self.steps {
            text = match step {
                Step::Charsmap => self.mapped(text),
                Step::Spaces if text.contains("  ") => Cow::Owned(single_spaces(&text)),
                Step::Spaces => text,
                Step::Lowercase if text.is_ascii() => Cow::Owned(text.to_ascii_lowercase()),
                // Letter by letter, as the tokenizers crate does: no final sigma.
                Step::Lowercase => Cow::Owned(text.chars().flat_map(char::to_lowercase).collect()),
                Step::Nfkc | Step::Invisible if text.is_ascii() => text,
                Step::Nfkc => Cow::Owned(text.nfkc().collect()),
                Step::Invisible => Cow::Owned(text.chars().filter(|&c| !is_invisible(c)).collect()),
                Step::Whitespace => Cow::Owned(single_whitespace(&text)),
                Step::Strip => Cow::Owned(text.trim().to_owned()),
            };
        }
        text
    }

    fn mapped<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        // Visible ASCII and the space stay as they are in every table of this kind.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return text;
        }
        let Some(charsmap) = Charsmap::new(&self.bytes[self.charsmap.clone()]) else { return text };
        let mut mapped = String::with_capacity(text.len());
        charsmap.normalize(&text, &mut mapped);
        Cow::Owned(mapped)
    }
}

/// [`Step::Invisible`], as tokenizers write it.
pub(super) const INVISIBLE: &str = "[\u{ad}\u{200b}-\u{200f}\u{2060}\u{feff}]";

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

fn single_whitespace(text: &str) -> String {
    let mut previous = false;
    let kept = text.chars().filter_map(|c| {
        let space = c.is_whitespace();
        let repeated = std::mem::replace(&mut previous, space) && space;
        (!repeated).then_some(if space { ' ' } else { c })
    });
    kept.collect()
}

fn single_spaces(text: &str) -> String {
    let mut previous = '\0';
    text.chars().filter(|&c| std::mem::replace(&mut previous, c) != ' ' || c != ' ').collect()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len())?;
        let range = self.at..end;
        self.at = end;
        Some(range)
    }

    fn u32(&mut self) -> Option<u32> {
        let range = self.take(4)?;
        Some(u32::from_le_bytes(self.bytes[range].try_into().ok()?))
    }

    /// A part with its length before it.
    fn sized(&mut self) -> Option<Range<usize>> {
        let len = self.u32()? as usize;
        self.take(len)
    }
}

//! The English stemmer, for words of ASCII letters and digits.
//!
//! In a listing that was never seen every sixth word is new, and nearly all of them are stemmed as English. The stemmers
//! of the other scripts are generated ones, which build a string for each step; this one edits the word where it stands
//! and takes a quarter of their instructions. Both give the same stem for every word (a test below compares them).
//!
//! The algorithm looks at two ends of a word. From the front it finds the regions in which an ending may be cut: R1
//! begins behind the first consonant that follows a vowel, R2 likewise within R1. From the back it takes one ending in
//! each of its steps, always the longest that fits.
//!
//! Source: the English (Porter2) stemmer, <https://snowballstem.org/algorithms/english/stemmer.html>, version 3.0.

/// A longer word is none of English.
const WORD_BYTES_MAX: usize = 64;

/// Stems `word` where it stands; false when it is not all lower case letters and digits of ASCII, or too long.
pub(super) fn stem(word: &mut String) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if word.len() > WORD_BYTES_MAX || !word.bytes().all(is_plain) {
        return false;
    }
    if word.len() < 3 {
        return true;
    }
    if let Some(stem) = exception(word) {
        word.replace_range(.., stem);
        return true;
    }
    let mut word = Word::new(word);
    word.plural();
    word.past_and_participle();
    word.final_y();
    word.long_endings();
    word.middle_endings();
    word.short_endings();
    word.final_e_or_l();
    true
}

/// The stem of a word for which no rule gives it.
fn exception(word: &str) -> Option<&'static str> {
    Some(match word {
        "andes" => "andes",
        "atlas" => "atlas",
        "bias" => "bias",
        "cosmos" => "cosmos",
        "early" => "earli",
        "gently" => "gentl",
        "howe" => "howe",
        "idly" => "idl",
        "news" => "news",
        "only" => "onli",
        "singly" => "singl",
        "skies" | "sky" => "sky",
        "skis" => "ski",
        "ugly" => "ugli",
        _ => return None,
    })
}

/// The length of a beginning that R1 follows wherever its vowels are.
fn beginning(word: &str) -> Option<usize> {
    let beginning = match word.as_bytes().first()? {
        b'a' => "arsen",
        b'c' => "commun",
        b'e' => "emerg",
        b'g' => "gener",
        b'i' => "inter",
        b'l' => "later",
        b'o' => "organ",
        b'p' => "past",
        b'u' => "univers",
        _ => return None,
    };
    word.starts_with(beginning).then_some(beginning.len())
}

/// A word being stemmed.
struct Word<'a> {
    text: &'a mut String,
    /// A bit for each letter that is a vowel; `y` is one unless it is the first letter or follows one.
    vowels: u64,
    /// Where R1 begins.
    r1: usize,
    /// Where R2 begins.
    r2: usize,
}

impl<'a> Word<'a> {
    fn new(text: &'a mut String) -> Self {
        let mut vowels = 0_u64;
        for (at, byte) in text.bytes().enumerate() {
            let follows_vowel = at > 0 && vowels >> (at - 1) & 1 == 1;
            let is_vowel = is_plain_vowel(byte) || (byte == b'y' && at > 0 && !follows_vowel);
            vowels |= u64::from(is_vowel) << at;
        }
        let r1 = beginning(text).unwrap_or_else(|| region(vowels, 0, text.len()));
        let r2 = region(vowels, r1, text.len());
        Self { text, vowels, r1, r2 }
    }

    fn is_vowel(&self, at: usize) -> bool {
        self.vowels >> at & 1 == 1
    }

    fn has_vowel_before(&self, end: usize) -> bool {
        self.vowels & ((1 << end) - 1) != 0
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes()[at]
    }

    /// Puts `ending` in the place of everything from `start` on.
    fn replace(&mut self, start: usize, ending: &str) {
        self.text.truncate(start);
        self.vowels &= (1 << start) - 1;
        for (at, byte) in (start..).zip(ending.bytes()) {
            self.vowels |= u64::from(is_plain_vowel(byte)) << at;
        }
        self.text.push_str(ending);
    }

    fn last(&self) -> u8 {
        self.text.as_bytes().last().copied().unwrap_or_default()
    }

    /// Where the first of `endings` that the word has begins, and what stands beside it.
    fn ending<T: Copy>(&self, endings: &[(&str, T)]) -> Option<(usize, T)> {
        let &(ending, beside) = endings.iter().find(|(ending, _)| self.text.ends_with(ending))?;
        Some((self.text.len() - ending.len(), beside))
    }

    /// Whether a short syllable ends there: a consonant other than w, x and y after a vowel, and a consonant or nothing
    /// before that.
    fn is_short_before(&self, end: usize) -> bool {
        let is_open = |at: usize| self.is_vowel(at) || matches!(self.byte(at), b'w' | b'x' | b'y');
        match end {
            0 | 1 => false,
            2 => self.is_vowel(0) && !self.is_vowel(1),
            _ => {
                (!is_open(end - 1) && self.is_vowel(end - 2) && !self.is_vowel(end - 3))
                    || self.text[..end].ends_with("past")
            }
        }
    }

    /// Step 1a.
    fn plural(&mut self) {
        let endings: &[(&str, &str)] = match self.last() {
            b'd' => &[("ied", "i")],
            b's' => &[("sses", "ss"), ("ies", "i"), ("us", "us"), ("ss", "ss"), ("s", "")],
            _ => return,
        };
        let Some((start, ending)) = self.ending(endings) else { return };
        match ending {
            "i" if start < 2 => self.replace(start, "ie"),
            // The letter before the s need not be a vowel, and is not enough if it is one: gas, this.
            "" if start == 0 || !self.has_vowel_before(start - 1) => {}
            ending => self.replace(start, ending),
        }
    }

    /// Step 1b.
    fn past_and_participle(&mut self) {
        let endings: &[(&str, char)] = match self.last() {
            b'd' => &[("eed", 'e'), ("ed", '-')],
            b'g' => &[("ing", 'g')],
            b'y' => &[("eedly", 'e'), ("ingly", '-'), ("edly", '-')],
            _ => return,
        };
        let Some((start, kind)) = self.ending(endings) else { return };
        let before = &self.text[..start];
        match kind {
            'e' => {
                if self.r1 <= start && !matches!(before, "succ" | "proc" | "exc") {
                    self.replace(start, "ee");
                }
                return;
            }
            'g' if matches!(before, "even" | "cann" | "inn" | "earr" | "herr" | "out") => return,
            // Dying, lying, tying.
            'g' if start == 2 && self.byte(1) == b'y' && !self.is_vowel(0) => {
                self.replace(1, "ie");
                return;
            }
            _ => {}
        }
        if !self.has_vowel_before(start) {
            return;
        }
        self.replace(start, "");
        self.mend();
    }

    /// Gives back the e that an ending took, and takes the letter that it doubled.
    fn mend(&mut self) {
        let len = self.text.len();
        let end = match self.text.as_bytes() {
            [.., one, other] => [*one, *other],
            _ => [0, 0],
        };
        let is_doubled = end[0] == end[1] && b"bdfgmnprt".contains(&end[0]);
        match &end {
            b"at" | b"bl" | b"iz" => self.replace(len, "e"),
            // Add, egg, off.
            _ if is_doubled && len == 3 && matches!(self.byte(0), b'a' | b'e' | b'o') => {}
            _ if is_doubled => self.replace(len - 1, ""),
            _ if len == self.r1 && self.is_short_before(len) => self.replace(len, "e"),
            _ => {}
        }
    }

    /// Step 1c.
    fn final_y(&mut self) {
        let len = self.text.len();
        if len > 2 && self.byte(len - 1) == b'y' && !self.is_vowel(len - 2) {
            self.replace(len - 1, "i");
        }
    }

    /// Step 2.
    fn long_endings(&mut self) {
        let endings: &[(&str, &str)] = match self.last() {
            b'i' => LONG_ENDINGS_IN_I,
            b'l' => &[("ational", "ate"), ("tional", "tion")],
            b'm' => &[("alism", "al")],
            b'n' => &[("ization", "ize"), ("ation", "ate")],
            b'r' => &[("ator", "ate"), ("izer", "ize")],
            b's' => &[("fulness", "ful"), ("iveness", "ive"), ("ousness", "ous")],
            b't' => &[("ogist", "og")],
            _ => return,
        };
        let Some((start, ending)) = self.ending(endings).filter(|(start, _)| self.r1 <= *start) else {
            return;
        };
        let before = start.checked_sub(1).map(|at| self.byte(at));
        let fits = match (&self.text[start..], before) {
            ("ogi", before) => before == Some(b'l'),
            ("li", before) => before.is_some_and(|byte| b"cdeghkmnrt".contains(&byte)),
            _ => true,
        };
        if fits {
            self.replace(start, ending);
        }
    }

    /// Step 3.
    fn middle_endings(&mut self) {
        let endings: &[(&str, &str)] = match self.last() {
            b'e' => &[("alize", "al"), ("ative", ""), ("icate", "ic")],
            b'i' => &[("iciti", "ic")],
            b'l' => &[("ational", "ate"), ("tional", "tion"), ("ical", "ic"), ("ful", "")],
            b's' => &[("ness", "")],
            _ => return,
        };
        let Some((start, ending)) = self.ending(endings) else { return };
        let from = if &self.text[start..] == "ative" { self.r2 } else { self.r1 };
        if from <= start {
            self.replace(start, ending);
        }
    }

    /// Step 4.
    fn short_endings(&mut self) {
        let endings: &[(&str, ())] = match self.last() {
            b'c' => &[("ic", ())],
            b'e' => SHORT_ENDINGS_IN_E,
            b'i' => &[("iti", ())],
            b'l' => &[("al", ())],
            b'm' => &[("ism", ())],
            b'n' => &[("ion", ())],
            b'r' => &[("er", ())],
            b's' => &[("ous", ())],
            b't' => &[("ement", ()), ("ment", ()), ("ant", ()), ("ent", ())],
            _ => return,
        };
        let Some((start, ())) = self.ending(endings).filter(|(start, ())| self.r2 <= *start) else { return };
        let is_ion = &self.text[start..] == "ion";
        if !is_ion || (start > 0 && matches!(self.byte(start - 1), b's' | b't')) {
            self.replace(start, "");
        }
    }

    /// Step 5.
    fn final_e_or_l(&mut self) {
        let start = self.text.len() - 1;
        let is_cut = match self.byte(start) {
            b'e' => self.r2 <= start || (self.r1 <= start && !self.is_short_before(start)),
            b'l' => self.r2 <= start && start > 0 && self.byte(start - 1) == b'l',
            _ => false,
        };
        if is_cut {
            self.replace(start, "");
        }
    }
}

const LONG_ENDINGS_IN_I: &[(&str, &str)] = &[
    ("biliti", "ble"),
    ("lessli", "less"),
    ("aliti", "al"),
    ("entli", "ent"),
    ("fulli", "ful"),
    ("iviti", "ive"),
    ("ousli", "ous"),
    ("abli", "able"),
    ("alli", "al"),
    ("anci", "ance"),
    ("enci", "ence"),
    ("bli", "ble"),
    ("ogi", "og"),
    ("li", ""),
];

const SHORT_ENDINGS_IN_E: &[(&str, ())] =
    &[("able", ()), ("ance", ()), ("ence", ()), ("ible", ()), ("ate", ()), ("ive", ()), ("ize", ())];

fn is_plain_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u')
}

/// The place behind the first consonant that follows a vowel, from `from` on; `len` when there is none.
fn region(vowels: u64, from: usize, len: usize) -> usize {
    if from >= len || vowels >> from == 0 {
        return len;
    }
    let vowel = from + (vowels >> from).trailing_zeros() as usize;
    let consonant = vowel + (vowels >> vowel).trailing_ones() as usize;
    (consonant + 1).min(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use snowball_stemmers_rs::{Algorithm, Stemmer};

    fn assert_as_generated(word: &str) {
        let mut stemmed = word.to_owned();
        assert!(stem(&mut stemmed), "{word}");
        assert_eq!(stemmed, Stemmer::create(Algorithm::English).stem(word), "{word}");
    }

    #[test]
    fn words_of_tools_have_the_stems_of_the_generated_stemmer() {
        let catalogue = include_str!("../../model/eval/catalogue.json").to_ascii_lowercase();
        let mut words: Vec<&str> = catalogue.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        words.sort_unstable();
        words.dedup();
        words.retain(|word| !word.is_empty() && word.len() <= WORD_BYTES_MAX);
        assert!(words.len() > 3_000);
        words.into_iter().for_each(assert_as_generated);
        let exceptions =
            "andes atlas bias cosmos early gently howe idly news only singly skies skis sky ugly";
        exceptions.split(' ').for_each(assert_as_generated);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Words put together from what the rules look at.
        #[test]
        fn made_up_words_have_the_stems_of_the_generated_stemmer(
            word in "(arsen|commun|emerg|gener|inter|later|organ|past|univers|succ|proc|exc|even|cann|inn|earr|herr|out|y|yy|[a-z0-9]){0,3}\
                ([aeiouy]|[b-df-hj-np-tv-z]|bb|dd|tt|at|bl|iz|log|past|ay){0,5}\
                (sses|ied|ies|us|ss|s|eed|eedly|ed|edly|ing|ingly|y|tional|enci|anci|abli|entli|izer|ization|ational|ation|ator|alism|aliti|alli|fulness|ousli|ousness|iveness|iviti|biliti|bli|ogi|ogist|fulli|lessli|li|alize|icate|iciti|ical|ful|ness|ative|al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ism|ate|iti|ous|ive|ize|ion|e|l|ll){0,3}"
        ) {
            prop_assume!(word.len() <= WORD_BYTES_MAX);
            assert_as_generated(&word);
        }

        #[test]
        fn any_letters_have_the_stems_of_the_generated_stemmer(word in "[a-z]{0,8}|[a-z0-9]{0,64}") {
            assert_as_generated(&word);
        }
    }

    #[test]
    fn what_is_not_ascii_or_longer_is_left_to_the_generated_stemmer() {
        for word in ["Sending", "nai\u{308}ve", "it's", "a b", &"s".repeat(65)] {
            let mut same = word.to_owned();
            assert!(!stem(&mut same));
            assert_eq!(same, word);
        }
    }
}

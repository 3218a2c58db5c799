//! Cuts text into words and folds them, so that spellings of one word meet.
//!
//! A word is a run of letters and digits. It is cut again at camel case and between letters and digits, because tool
//! names are written that way. Scripts that put no spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer,
//! Burmese) become overlapping pairs of characters. Folding is NFKC, lower case, and no diacritics for alphabets in
//! which people leave them out when they type; the signs of Indic scripts are letters and stay.
//!
//! Characters that are not visible (tags, zero width, bidirectional controls) are dropped first: they must not hide a
//! word from search, nor smuggle one in.
//!
//! Source: Unicode Standard Annex 15 (normalisation forms).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Words longer than this many bytes (hashes, base64) are cut off: nobody searches by them.
const WORD_BYTES_MAX: usize = 64;

/// A joined spelling longer than this many bytes is not a word of its own (`listCoreV1NamespacedPod`).
const JOINED_BYTES_MAX: usize = 16;

/// How a script's text becomes words, and which stemmer may touch them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Armenian,
    Devanagari,
    Tamil,
    /// Written without spaces: indexed as pairs of characters.
    Unspaced,
    Other,
}

/// One word of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// Lower case, diacritics as written.
    pub lower: &'a str,
    /// Lower case, without diacritics.
    pub folded: &'a str,
    pub script: Script,
    /// Whether it was written with a capital.
    pub capital: bool,
    /// The whole spelling of a word that is also given in its parts (`github` beside `git`, `hub`).
    pub joined: bool,
}

/// Calls `visit` for every word of `text`, in order.
pub(super) fn for_each_word(text: &str, mut visit: impl FnMut(Word<'_>)) {
    let text = visible(text);
    let mut buffers = Buffers::default();
    for run in text.split(|c: char| !is_word_char(c)) {
        if run.is_empty() {
            continue;
        }
        if run.is_ascii() {
            visit_run(run, Script::Latin, &mut buffers, &mut visit);
            continue;
        }
        for (piece, script) in ScriptRuns::new(run) {
            if script == Script::Unspaced {
                visit_pairs(piece, &mut buffers, &mut visit);
            } else {
                visit_run(piece, script, &mut buffers, &mut visit);
            }
        }
    }
}

/// A part of a text that can be cut into words by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// ASCII letters, digits and apostrophes.
    Ascii(&'a str),
    /// With letters beyond ASCII, and the sign before them, to which a combining mark may belong.
    Other(&'a str),
}

/// Cuts a text at ASCII signs and spaces. [`for_each_word`] of the pieces gives the words of the text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let is_sign = |byte: u8| SIGNS[usize::from(byte)];
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while is_sign(*bytes.get(at)?) {
            at += 1;
        }
        let start = at;
        let mut seen = 0;
        while let Some(&byte) = bytes.get(at)
            && !is_sign(byte)
        {
            seen |= byte;
            at += 1;
        }
        // Signs are ASCII, so both ends are characters' edges.
        Some(if seen.is_ascii() {
            Piece::Ascii(&text[start..at])
        } else {
            Piece::Other(&text[start.saturating_sub(1)..at])
        })
    })
}

/// ASCII characters that are in no word.
const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        signs[byte as usize] = !byte.is_ascii_alphanumeric() && byte != b'\'';
        byte += 1;
    }
    signs
};

/// `text` in NFKC, with what cannot be seen and apostrophes inside words left out.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.contains('\'') {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().filter(|&c| !is_hidden(c) && !is_apostrophe(c));
    Cow::Owned(shown.nfkc().collect())
}

/// Lower case and no diacritics: `Žiūrėti` becomes `ziureti`.
pub(super) fn fold(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    fold_into(&word.to_lowercase(), &mut folded);
    folded
}

/// Whether a run is one word as it stands, ASCII letters of which at most the first is a capital: most are.
pub(super) fn is_plain(run: &str) -> bool {
    let (first, rest) = run.as_bytes().split_first().unwrap_or((&b'0', &[]));
    run.len() <= WORD_BYTES_MAX
        && first.is_ascii_alphabetic()
        && rest.iter().fold(true, |all, byte| all & byte.is_ascii_lowercase())
}

fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2bc}')
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Combining signs that belong to the letter before them.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && unicode_normalization::char::is_combining_mark(c)
}

/// Signs that people leave out: combining accents, Hebrew points, Arabic vowel signs and the Arabic stretch mark.
fn is_dropped_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}')
}

fn fold_into(lower: &str, folded: &mut String) {
    if lower.is_ascii() {
        folded.push_str(lower);
        return;
    }
    for c in lower.nfd().filter(|&c| !is_dropped_mark(c)) {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ħ' => folded.push('h'),
            'ı' => folded.push('i'),
            'ŧ' => folded.push('t'),
            'ŋ' => folded.push('n'),
            'ς' => folded.push('σ'),
            // Arabic letters with hamza or without, and the two forms of y and k that keyboards mix.
            'ٱ' => folded.push('ا'),
            'ى' | 'ی' => folded.push('ي'),
            'ک' => folded.push('ك'),
            'ة' => folded.push('ه'),
            _ => folded.push(c),
        }
    }
}

fn script_of(c: char) -> Option<Script> {
    Some(match c {
        'a'..='z' | 'A'..='Z' | '\u{aa}'..='\u{2af}' | '\u{1e00}'..='\u{1eff}' => Script::Latin,
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
        '\u{400}'..='\u{52f}' => Script::Cyrillic,
        '\u{531}'..='\u{587}' => Script::Armenian,
        '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' => Script::Arabic,
        '\u{900}'..='\u{97f}' => Script::Devanagari,
        '\u{b80}'..='\u{bff}' => Script::Tamil,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => Script::Unspaced,
        '\u{1100}'..='\u{11ff}'
        | '\u{3040}'..='\u{318f}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' => Script::Unspaced,
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' => Script::Unspaced,
        '\u{20000}'..='\u{3ffff}' => Script::Unspaced,
        // Digits and signs go with what stands before them.
        _ if c.is_numeric() || is_mark(c) => return None,
        _ => Script::Other,
    })
}

/// Splits a run of word characters where its script changes.
struct ScriptRuns<'a> {
    rest: &'a str,
}

impl<'a> ScriptRuns<'a> {
    fn new(run: &'a str) -> Self {
        Self { rest: run }
    }
}

impl<'a> Iterator for ScriptRuns<'a> {
    type Item = (&'a str, Script);

    fn next(&mut self) -> Option<Self::Item> {
        let mut found = None;
        let mut end = self.rest.len();
        for (at, c) in self.rest.char_indices() {
            let Some(script) = script_of(c) else { continue };
            match found {
                None if script == Script::Unspaced && at > 0 => {
                    // Digits before unspaced text are a word of their own.
                    (found, end) = (Some(Script::Latin), at);
                    break;
                }
                None => found = Some(script),
                Some(first) if first != script => {
                    end = at;
                    break;
                }
                Some(_) => {}
            }
        }
        if self.rest.is_empty() {
            return None;
        }
        let (piece, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some((piece, found.unwrap_or(Script::Latin)))
    }
}

#[derive(Default)]
struct Buffers {
    lower: String,
    folded: String,
}

impl Buffers {
    fn word<'b>(&'b mut self, text: &'b str, script: Script, joined: bool) -> Word<'b> {
        if text.is_ascii() {
            // Folding leaves it alone, so one text is both.
            if !text.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return Word { lower: text, folded: text, script, capital: false, joined };
            }
            self.lower.clear();
            self.lower.push_str(text);
            self.lower.make_ascii_lowercase();
            let capital = text.starts_with(|c: char| c.is_ascii_uppercase());
            return Word { lower: &self.lower, folded: &self.lower, script, capital, joined };
        }
        self.lower.clear();
        self.folded.clear();
        self.lower.extend(text.chars().flat_map(char::to_lowercase));
        fold_into(&self.lower, &mut self.folded);
        let capital = text.starts_with(char::is_uppercase);
        Word { lower: &self.lower, folded: &self.folded, script, capital, joined }
    }
}

/// Visits a run of spaced script: its parts, and its whole spelling when that may be a word too.
fn visit_run(run: &str, script: Script, buffers: &mut Buffers, visit: &mut impl FnMut(Word<'_>)) {
    let run = &run[..run.floor_char_boundary(WORD_BYTES_MAX)];
    if is_plain(run) {
        visit(buffers.word(run, script, false));
        return;
    }
    let mut start = 0;
    let mut cuts = 0;
    let mut previous = None;
    let mut chars = run.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let class = Class::of(c);
        let next = chars.peek().map(|&(_, next)| Class::of(next));
        if previous.is_some_and(|previous| is_cut(previous, class, next)) {
            visit_part(&run[start..at], script, buffers, visit);
            cuts += 1;
            start = at;
        }
        if class != Class::Mark {
            previous = Some(class);
        }
    }
    if cuts == 0 {
        visit(buffers.word(run, script, false));
        return;
    }
    visit_part(&run[start..], script, buffers, visit);
    if run.len() <= JOINED_BYTES_MAX {
        visit(buffers.word(run, script, true));
    }
}

/// A single letter that a cut left over (`k8s`) says nothing; a digit may.
fn visit_part(part: &str, script: Script, buffers: &mut Buffers, visit: &mut impl FnMut(Word<'_>)) {
    let mut chars = part.chars();
    let first = chars.next();
    if chars.next().is_some() || first.is_some_and(char::is_numeric) {
        visit(buffers.word(part, script, false));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Mark,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            _ if c.is_numeric() => Self::Digit,
            _ if c.is_uppercase() => Self::Upper,
            _ if is_mark(c) => Self::Mark,
            _ => Self::Lower,
        }
    }
}

/// Whether a word ends between two characters: `getUser`, `HTTPServer` (before the `S`), `level3`, `3d`.
fn is_cut(previous: Class, class: Class, next: Option<Class>) -> bool {
    match (previous, class) {
        (Class::Lower, Class::Upper) => true,
        (Class::Upper, Class::Upper) => next == Some(Class::Lower),
        (Class::Digit, Class::Lower | Class::Upper) | (Class::Lower | Class::Upper, Class::Digit) => true,
        _ => false,
    }
}

/// Visits text without spaces: each pair of neighbouring characters, or the one character there is.
fn visit_pairs(run: &str, buffers: &mut Buffers, visit: &mut impl FnMut(Word<'_>)) {
    let mut previous: Option<usize> = None;
    let mut visited = false;
    for (at, c) in run.char_indices() {
        if let Some(start) = previous {
            visit(buffers.word(&run[start..at + c.len_utf8()], Script::Unspaced, false));
            visited = true;
        }
        previous = Some(at);
    }
    if !visited {
        visit(buffers.word(run, Script::Unspaced, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for_each_word(text, |word| all.push(word.folded.to_owned()));
        all
    }

    proptest! {
        #[test]
        fn pieces_have_the_words_of_the_whole(text in "([a-zA-Z0-9' _.<=-]|é|\u{301}|\u{338}|ų|\u{200b}|中|ﬁ|ß|’|\\PC){0,24}") {
            let mut of_pieces = Vec::new();
            for piece in pieces(&text) {
                let (Piece::Ascii(piece) | Piece::Other(piece)) = piece;
                of_pieces.extend(words(piece));
            }
            prop_assert_eq!(of_pieces, words(&text));
        }
    }

    #[test]
    fn names_split_at_case_digits_and_separators() {
        assert_eq!(words("create_issue"), ["create", "issue"]);
        assert_eq!(words("listCoreV1NamespacedPod"), ["list", "core", "1", "namespaced", "pod"]);
        assert_eq!(words("HTTPServer"), ["http", "server", "httpserver"]);
        assert_eq!(words("web.search-v2"), ["web", "search", "2", "v2"]);
        assert_eq!(words("GitHub k8s"), ["git", "hub", "github", "8", "k8s"]);
    }

    #[test]
    fn diacritics_and_case_fold_away() {
        assert_eq!(words("Žiūrėti"), words("ziureti"));
        assert_eq!(words("ＷＩＤＥ Straße"), ["wide", "strasse"]);
        assert_eq!(words("İstanbul"), ["istanbul"]);
    }

    #[test]
    fn unspaced_scripts_become_pairs() {
        assert_eq!(words("天气预报"), ["天气", "气预", "预报"]);
        assert_eq!(words("PDF文件"), ["pdf", "文件"]);
        assert_eq!(words("3日"), ["3", "日"]);
    }

    #[test]
    fn indic_signs_stay_in_the_word() {
        assert_eq!(words("हिन्दी में").len(), 2);
    }

    #[test]
    fn hidden_characters_neither_split_nor_add_words() {
        assert_eq!(words("de\u{200b}lete\u{e0041} it"), ["delete", "it"]);
        assert_eq!(words("don't"), ["dont"]);
    }
}

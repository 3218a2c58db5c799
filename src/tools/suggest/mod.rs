//! Names that were probably meant.
//!
//! Two uses: the tools nearest to a name that no tool has, and the declared property or option that an unknown one was
//! meant to be. What is found here is told to the model and never acted on.
//!
//! Distance is Damerau and Levenshtein's in its restricted form (optimal string alignment), on names without case and
//! separators.

mod distance;
mod words;

use distance::{Letters, distance_at_least, distance_within, letters};
use words::{each_word_hash, same_word, weight, words};

/// Bytes of a name that is looked up; longer ones have no neighbours.
const NAME_BYTES_MAX: usize = 256;
/// Below this likeness two names are strangers, by letters or by words.
const LETTERS_LIKENESS_MIN: f32 = 0.7;
const WORDS_LIKENESS_MIN: f32 = 0.45;
/// The names most like `name`, nearest first, at most `limit`.
///
/// In this order: equal but for case and separators; `name` with a prefix around one (`mcp__x__…`); the same bare name
/// behind another prefix; then by edit distance and shared words, above a floor. Equals keep the order given.
///
/// # Cost
///
/// Linear in the names, with no allocation for most of them: some 10 ms for 20,000.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    let Some(wanted) = Wanted::new(name).filter(|_| limit > 0) else { return Vec::new() };
    let mut scratch = Scratch::default();
    let mut best: Vec<(f32, &'a str)> = Vec::with_capacity(limit + 1);
    for candidate in names {
        let floor = if best.len() == limit { best[limit - 1].0 } else { WORDS_LIKENESS_MIN };
        let Some(likeness) = wanted.likeness(candidate, floor, &mut scratch) else { continue };
        if best.len() == limit && likeness <= floor {
            continue;
        }
        let position = best.partition_point(|(better, _)| *better >= likeness);
        best.insert(position, (likeness, candidate));
        best.truncate(limit);
    }
    best.into_iter().map(|(_, name)| name).collect()
}

/// The one name that `name` clearly means: equal but for case and separators, or with a prefix around it, or without
/// its prefix, or one or two typing errors away, and no other that is as near.
pub fn typo_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = Wanted::new(name)?;
    let mut scratch = Scratch::default();
    let mut best: Option<(Nearness, &'a str)> = None;
    let mut alone = true;
    for candidate in names {
        let Some(nearness) = wanted.nearness(candidate, &mut scratch) else { continue };
        match &best {
            Some((known, _)) if *known < nearness => {}
            Some((known, _)) if *known == nearness => alone = false,
            _ => {
                best = Some((nearness, candidate));
                alone = true;
            }
        }
    }
    best.filter(|_| alone).map(|(_, name)| name)
}

/// The name among `declared` that `name` was probably meant to be, if one stands out.
///
/// Made for a few hundred short names: properties of an object, options of an enum.
pub fn property_like<'a>(name: &str, declared: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let folded = fold(name);
    let words = words(name);
    let mut best: Option<(f32, &'a str)> = None;
    let mut alone = true;
    for candidate in declared.filter(|candidate| candidate.len() <= NAME_BYTES_MAX) {
        let likeness = property_likeness(&folded, &words, candidate);
        match best {
            _ if likeness < 0.5 => {}
            Some((known, _)) if known > likeness => {}
            Some((known, _)) if (known - likeness).abs() < f32::EPSILON => alone = false,
            _ => {
                best = Some((likeness, candidate));
                alone = true;
            }
        }
    }
    best.filter(|_| alone).map(|(_, name)| name)
}

fn property_likeness(folded: &[char], own_words: &[String], candidate: &str) -> f32 {
    let other = fold(candidate);
    if folded == other {
        return if folded.is_empty() { 0.0 } else { 4.0 };
    }
    let allowed = typing_errors_allowed(folded.len().min(other.len()));
    if let Some(distance) = distance_within(folded, &other, allowed, &mut Vec::new()) {
        return 3.0 - small(distance) / 10.0;
    }
    let other_words = words(candidate);
    let shared: f32 = own_words
        .iter()
        .filter(|word| other_words.iter().any(|other| same_word(word, other)))
        .map(|word| weight(word))
        .sum();
    let total = |words: &[String]| words.iter().map(|word| weight(word)).sum::<f32>();
    let (own, others) = (total(own_words), total(&other_words));
    let shorter = own.min(others);
    if shorter == 0.0 { 0.0 } else { (shared / shorter).min(1.0) + shared / own.max(others) / 10.0 }
}

/// How clearly a candidate is meant; smaller is clearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Equal,
    /// The bytes of the prefix around it.
    Wrapped(usize),
    SameBare,
    Errors(usize),
}

/// The name that is looked for, prepared once.
struct Wanted {
    folded: Vec<char>,
    /// What follows each separator that ends a prefix, with the bytes before it; nearest to the whole first.
    suffixes: Vec<(usize, Vec<char>)>,
    /// Of the whole and of the bare name.
    letters: (Letters, Letters),
    /// Hashes of the words, without generic ones.
    words: Vec<u64>,
}

#[derive(Default)]
struct Scratch {
    folded: Vec<char>,
    rows: Vec<usize>,
}

impl Wanted {
    fn new(name: &str) -> Option<Self> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return None;
        }
        let folded = fold(name);
        if folded.is_empty() {
            return None;
        }
        let suffixes = prefix_ends(name).map(|end| (end, fold(&name[end..])));
        let suffixes: Vec<_> = suffixes.filter(|(_, suffix)| suffix.len() > 2).collect();
        let bare = suffixes.last().map_or(folded.as_slice(), |(_, suffix)| suffix);
        let letters = (letters(&folded), letters(bare));
        let mut hashes = Vec::new();
        each_word_hash(name, |hash| hashes.push(hash));
        Some(Self { letters, folded, suffixes, words: hashes })
    }

    fn bare(&self) -> &[char] {
        self.suffixes.last().map_or(self.folded.as_slice(), |(_, suffix)| suffix)
    }

    /// Above one for the kinds of equality, at most one for likeness; none below `floor`.
    fn likeness(&self, candidate: &str, floor: f32, scratch: &mut Scratch) -> Option<f32> {
        if candidate.len() > NAME_BYTES_MAX {
            return None;
        }
        match self.equality(candidate, &mut scratch.folded) {
            Some(Nearness::Equal) => return Some(4.0),
            Some(Nearness::Wrapped(_)) => return Some(3.0),
            Some(_) => return Some(2.0),
            None => {}
        }
        let mut best = by_letters((&self.folded, &self.letters.0), &scratch.folded, floor, &mut scratch.rows);
        if let Some(end) = prefix_ends(candidate).last() {
            // The bare name alone says a little less than the whole.
            let bare_start = candidate[..end].chars().filter(|character| character.is_alphanumeric()).count();
            let bare = scratch.folded.get(bare_start..).unwrap_or_default();
            let likeness = by_letters((self.bare(), &self.letters.1), bare, floor, &mut scratch.rows);
            best = best.max(likeness * 0.95);
        }
        best = best.max(self.word_likeness(candidate));
        (best >= floor).then_some(best)
    }

    /// Shared words by Dice's coefficient, a little below likeness by letters.
    fn word_likeness(&self, candidate: &str) -> f32 {
        if self.words.is_empty() {
            return 0.0;
        }
        let (mut shared, mut count) = (0_usize, 0_usize);
        each_word_hash(candidate, |hash| {
            count += 1;
            shared += usize::from(self.words.contains(&hash));
        });
        if shared == 0 { 0.0 } else { (2.0 * small(shared) / small(self.words.len() + count)).min(1.0) * 0.9 }
    }

    fn nearness(&self, candidate: &str, scratch: &mut Scratch) -> Option<Nearness> {
        if candidate.len() > NAME_BYTES_MAX {
            return None;
        }
        if let Some(equality) = self.equality(candidate, &mut scratch.folded) {
            return Some(equality);
        }
        let allowed = typing_errors_allowed(self.folded.len());
        distance_within(&self.folded, &scratch.folded, allowed, &mut scratch.rows).map(Nearness::Errors)
    }

    /// Folds the candidate into `folded` and tells whether it is equal in some way.
    fn equality(&self, candidate: &str, folded: &mut Vec<char>) -> Option<Nearness> {
        fold_into(candidate, folded);
        if folded.is_empty() {
            return None;
        }
        if *folded == self.folded {
            return Some(Nearness::Equal);
        }
        if let Some((end, _)) = self.suffixes.iter().find(|(_, suffix)| suffix == folded) {
            return Some(Nearness::Wrapped(*end));
        }
        let own_bare = self.bare();
        if !folded.ends_with(own_bare) {
            return None;
        }
        // Equal letters at the end: the bare name, if a prefix ends just there.
        let mut ends = prefix_ends(candidate);
        ends.any(|end| fold(&candidate[end..]) == own_bare).then_some(Nearness::SameBare)
    }
}

/// Likeness by letters is 1 - distance / length, so the floor bounds the distance that is worth finding.
fn by_letters(left: (&[char], &Letters), right: &[char], floor: f32, rows: &mut Vec<usize>) -> f32 {
    let longest = small(left.0.len().max(right.len()));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..=256")]
    let allowed = ((1.0 - floor.clamp(LETTERS_LIKENESS_MIN, 1.0)) * longest) as usize;
    // Nearly all names are told apart by their lengths and letters alone.
    if left.0.len().abs_diff(right.len()) > allowed || distance_at_least(left.1, &letters(right)) > allowed {
        return 0.0;
    }
    distance_within(left.0, right, allowed, rows).map_or(0.0, |distance| 1.0 - small(distance) / longest)
}

/// Where the prefixes of a name end: behind `__`, `/`, `.` and `:`.
fn prefix_ends(name: &str) -> impl Iterator<Item = usize> + '_ {
    let bytes = name.as_bytes();
    (1..bytes.len()).filter(move |&end| match bytes[end - 1] {
        b'/' | b'.' | b':' => true,
        b'_' => end >= 2 && bytes[end - 2] == b'_' && bytes[end] != b'_',
        _ => false,
    })
}

/// Letters and digits in lower case.
fn fold(name: &str) -> Vec<char> {
    let mut folded = Vec::with_capacity(name.len());
    fold_into(name, &mut folded);
    folded
}

fn fold_into(name: &str, folded: &mut Vec<char>) {
    folded.clear();
    if name.is_ascii() {
        let bytes = name.bytes().filter(u8::is_ascii_alphanumeric);
        folded.extend(bytes.map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        folded.extend(
            name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase),
        );
    }
}

fn typing_errors_allowed(length: usize) -> usize {
    match length {
        0..=3 => 0,
        4..=6 => 1,
        _ => 2,
    }
}

fn small(number: usize) -> f32 {
    f32::from(u16::try_from(number).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOOLS: [&str; 9] = [
        "github__search_issues",
        "github__create_issue",
        "jira__createIssue",
        "jira__search-issues",
        "slack__post_message",
        "slack__list_channels",
        "weather.get_forecast",
        "files/read_file",
        "files/read_files",
    ];

    fn near(name: &str) -> Vec<&'static str> {
        nearest(name, TOOLS.into_iter(), 2)
    }

    fn typo(name: &str) -> Option<&'static str> {
        typo_of(name, TOOLS.into_iter())
    }

    #[test]
    fn nearest_names_come_in_order_of_likeness() {
        for (name, expected) in [
            ("GitHub-Search-Issues", vec!["github__search_issues", "jira__search-issues"]),
            ("create_issue", vec!["github__create_issue", "jira__createIssue"]),
            ("mcp__gateway__slack__post_message", vec!["slack__post_message"]),
            ("slack__send_message", vec!["slack__post_message"]),
            ("get_forcast", vec!["weather.get_forecast"]),
            ("jira__serch_issue", vec!["jira__search-issues", "github__search_issues"]),
            ("zzzz", vec![]),
            ("", vec![]),
            ("__", vec![]),
        ] {
            assert_eq!(near(name), expected, "{name}");
        }
        assert!(nearest(&"a".repeat(257), ["a"].into_iter(), 3).is_empty());
        assert!(nearest("a", ["a"].into_iter(), 0).is_empty());
    }

    #[test]
    fn a_typing_error_is_told_only_when_one_name_is_meant() {
        for (name, expected) in [
            ("github__serach_issues", Some("github__search_issues")),
            ("Slack.Post.Message", Some("slack__post_message")),
            ("mcp__gateway__files/read_file", Some("files/read_file")),
            ("toolsearch__weather.get_forecast", Some("weather.get_forecast")),
            ("list_channels", Some("slack__list_channels")),
            ("files/read_fil", Some("files/read_file")),
            // Two names are as near.
            ("create_issue", None),
            ("files/read_filex", None),
            ("slack__remove_message", None),
            ("", None),
        ] {
            assert_eq!(typo(name), expected, "{name}");
        }
        assert_eq!(typo_of("lst", ["lists", "list"].into_iter()), None, "short names have no typing errors");
    }

    #[test]
    fn the_property_that_was_meant_is_found() {
        for (name, declared, expected) in [
            ("repo_name", vec!["owner", "repository"], Some("repository")),
            ("maxResults", vec!["max_results", "query"], Some("max_results")),
            ("qeury", vec!["query", "limit"], Some("query")),
            ("q", vec!["query", "limit"], Some("query")),
            ("msg", vec!["message", "channel"], Some("message")),
            ("id", vec!["issue_id", "title"], Some("issue_id")),
            ("id", vec!["issue_id", "project_id"], None),
            ("user_id", vec!["channel_id", "text"], None),
            ("start", vec!["start_date", "end_date"], Some("start_date")),
            ("colour", vec!["size"], None),
            ("", vec!["a", ""], None),
        ] {
            assert_eq!(property_like(name, declared.iter().copied()), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_panics_and_equal_names_are_found(name in "\\PC{0,40}", others in prop::collection::vec("\\PC{0,40}", 0..6)) {
            let names = || others.iter().map(String::as_str).chain([name.as_str()]);
            let found = nearest(&name, names(), 3);
            typo_of(&name, names());
            property_like(&name, names());
            let has_letters = name.chars().any(char::is_alphanumeric);
            prop_assert!(!has_letters || name.len() > NAME_BYTES_MAX || fold(found[0]) == fold(&name));
        }
    }
}

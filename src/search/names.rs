//! Names of tools in any spelling: `github__create_issue`, `mcp__github__create_issue`, `createIssue`, `create-issue`.

use super::text;

/// What gateways and clients put between a server's name and a tool's.
const SERVER_SEPARATOR: &str = "__";

/// What clients put before everything.
const CLIENT_PREFIX: &str = "mcp__";

/// A name without what a client put before it.
pub(super) fn without_client(name: &str) -> &str {
    name.strip_prefix(CLIENT_PREFIX).unwrap_or(name)
}

/// Splits a tool's name into its server and the rest: `mcp__github__create_issue` is `github` and `create_issue`.
pub(super) fn split_server(name: &str) -> (Option<&str>, &str) {
    let name = without_client(name);
    match name.split_once(SERVER_SEPARATOR) {
        Some((server, bare)) if !server.is_empty() && !bare.is_empty() => (Some(server), bare),
        _ => (None, name),
    }
}

/// Splits off the first word of a name without a server, when the rest still looks like a name: `github_create_issue` is
/// `github` and `create_issue`.
pub(super) fn split_prefix(name: &str) -> Option<(&str, &str)> {
    let at = name.find(is_separator).filter(|&at| at > 0)?;
    let rest = &name[at + 1..];
    looks_like_name(rest).then_some((&name[..at], rest))
}

/// A name without case, diacritics and separators: every spelling of it has the same key.
pub(super) fn key(name: &str) -> String {
    if name.is_ascii() {
        let mut key = String::with_capacity(name.len());
        let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
        key.extend(letters.map(|byte| char::from(byte.to_ascii_lowercase())));
        return key;
    }
    let mut key = text::fold(&text::visible(name));
    key.retain(char::is_alphanumeric);
    key
}

fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | ':')
}

/// Whether a word is written as names are: a separator or a capital inside.
pub(super) fn looks_like_name(word: &str) -> bool {
    let mut previous_lower = false;
    let mut inside = false;
    for (at, c) in word.char_indices() {
        let cut = is_separator(c) && word[at + 1..].chars().next().is_some_and(char::is_alphanumeric);
        if inside && (cut || (previous_lower && c.is_uppercase())) {
            return true;
        }
        previous_lower = c.is_lowercase();
        inside |= c.is_alphanumeric();
    }
    false
}

/// The words of a text, with what surrounds a name in prose taken off.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '`' | '"' | '\'' | '[' | ']')
    })
    .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
    .filter(|word| !word.is_empty())
}

/// The spellings under which a name in a query may be known: itself, and without the words before each `__` in turn.
pub(super) fn spellings(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(without_client(name)), |name| {
        name.split_once(SERVER_SEPARATOR).map(|(_, rest)| rest)
    })
    .filter(|name| !name.is_empty())
}

/// The tools that a description says to use instead of its own: words soon after "use" in a sentence that says
/// "instead", "prefer", "deprecated" or the like. They may be names or not; the index knows.
pub(super) fn pointers(description: &str) -> Vec<&str> {
    /// More are a list of tools, not advice.
    const POINTERS_MAX: usize = 8;
    if !is_advice(description) {
        return Vec::new();
    }
    let sentences = description.split_terminator(['\n', ';']).flat_map(|line| line.split(". "));
    let mut found: Vec<&str> = sentences.filter(|sentence| is_advice(sentence)).flat_map(advised).collect();
    found.truncate(POINTERS_MAX);
    found
}

/// Whether a text says one of the words of advice, whatever its case.
pub(super) fn is_advice(text: &str) -> bool {
    /// The shortest of them has so many.
    const LETTERS_MIN: usize = 6;
    let bytes = text.as_bytes();
    let starts = bytes.len().saturating_sub(LETTERS_MIN - 1);
    bytes.windows(2).take(starts).enumerate().any(|(at, start)| {
        let sign = match &[start[0].to_ascii_lowercase(), start[1].to_ascii_lowercase()] {
            b"in" => "instead",
            b"pr" => "prefer",
            b"de" => "deprecated",
            b"su" => "superseded",
            b"re" => "replaced",
            b"ra" => "rather",
            _ => return false,
        };
        bytes[at..].get(..sign.len()).is_some_and(|word| word.eq_ignore_ascii_case(sign.as_bytes()))
    })
}

/// How far after a verb of advice a name may stand: "use the `search_code` tool".
const REACH: usize = 3;

fn advised(sentence: &str) -> impl Iterator<Item = &str> {
    const VERBS: [&str; 8] = ["use", "using", "see", "call", "try", "prefer", "by", "with"];
    let mut reach = 0;
    candidates(sentence).filter(move |word| {
        if VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb)) {
            reach = REACH;
            return false;
        }
        // "Use this instead of that" speaks against that.
        if ["instead", "rather", "over"].iter().any(|turn| word.eq_ignore_ascii_case(turn)) {
            reach = 0;
        }
        let near = reach > 0;
        reach = reach.saturating_sub(1);
        near
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_one_key() {
        for name in ["create_issue", "createIssue", "create-issue", "Create.Issue", "CREATE ISSUE"] {
            assert_eq!(key(name), "createissue");
        }
    }

    #[test]
    fn server_is_what_stands_before_two_underscores() {
        assert_eq!(split_server("github__create_issue"), (Some("github"), "create_issue"));
        assert_eq!(split_server("mcp__github__create_issue"), (Some("github"), "create_issue"));
        assert_eq!(split_server("create_issue"), (None, "create_issue"));
        assert_eq!(split_server("__init"), (None, "__init"));
        assert_eq!(split_prefix("github_create_issue"), Some(("github", "create_issue")));
        assert_eq!(split_prefix("create_issue"), None);
    }

    #[test]
    fn a_name_is_looked_for_without_each_prefix() {
        let all: Vec<_> = spellings("mcp__gateway__github__create_issue").collect();
        assert_eq!(all, ["gateway__github__create_issue", "github__create_issue", "create_issue"]);
    }

    #[test]
    fn prose_is_not_a_name() {
        assert!(looks_like_name("create_issue") && looks_like_name("createIssue") && looks_like_name("a.b"));
        assert!(!looks_like_name("Create") && !looks_like_name("issue") && !looks_like_name("issue_"));
    }

    #[test]
    fn pointers_are_what_advice_says_to_use() {
        assert_eq!(pointers("Old. For code use `search_code` instead."), ["search_code"]);
        assert_eq!(pointers("Deprecated: call get_file. It lists files."), ["get_file"]);
        assert_eq!(pointers("Use this rather than old_tool."), ["this"]);
        assert!(pointers("Use get_file to read a file.").is_empty());
    }
}

//! Names of tools in any spelling: `github__create_issue`, `mcp__github__create_issue`, `createIssue`, `create-issue`.

use super::text;

/// What gateways and clients put between a server's name and a tool's.
const SERVER_SEPARATOR: &str = "__";

/// Splits a tool's name into its server and the rest: `mcp__github__create_issue` is `github` and `create_issue`.
pub(super) fn split_server(name: &str) -> (Option<&str>, &str) {
    let name = name.strip_prefix("mcp__").unwrap_or(name);
    match name.split_once(SERVER_SEPARATOR) {
        Some((server, bare)) if !server.is_empty() && !bare.is_empty() => (Some(server), bare),
        _ => (None, name),
    }
}

/// A name without case, diacritics and separators: every spelling of it has the same key.
pub(super) fn key(name: &str) -> String {
    let mut key = text::fold(&text::visible(name));
    key.retain(char::is_alphanumeric);
    key
}

/// Whether a word of a query is written as names are, so that it may be one: a separator or a capital inside.
pub(super) fn looks_like_name(word: &str) -> bool {
    let mut previous_lower = false;
    let mut inside = false;
    for c in word.chars() {
        if inside && (matches!(c, '_' | '-' | '.' | '/' | ':') || (previous_lower && c.is_uppercase())) {
            return true;
        }
        previous_lower = c.is_lowercase();
        inside |= c.is_alphanumeric();
    }
    false
}

/// The words of a text that may be names, with what surrounds them in prose taken off.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '`' | '"' | '\'' | '[' | ']')
    })
    .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
    .filter(|word| !word.is_empty())
}

/// The names that a description tells its reader to use: the name-like words soon after "use", "see", "call" or "try".
pub(super) fn pointers(description: &str) -> impl Iterator<Item = &str> {
    /// How many words after the verb a name may stand ("use the `search_code` tool").
    const REACH: usize = 3;
    let mut reach = 0;
    candidates(description).filter(move |word| {
        if ["use", "using", "see", "call", "try", "prefer"].iter().any(|verb| word.eq_ignore_ascii_case(verb))
        {
            reach = REACH;
            return false;
        }
        let found = reach > 0 && looks_like_name(word);
        reach = if found { 0 } else { reach.saturating_sub(1) };
        found
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
    }

    #[test]
    fn prose_is_not_a_name() {
        assert!(looks_like_name("create_issue") && looks_like_name("createIssue") && looks_like_name("a.b"));
        assert!(!looks_like_name("Create") && !looks_like_name("issue"));
    }

    #[test]
    fn pointers_are_names_after_use() {
        let found: Vec<_> =
            pointers("Old. Use `search_code` instead, or see get_file. Unlike list_files it is slow.")
                .collect();
        assert_eq!(found, ["search_code", "get_file"]);
    }
}

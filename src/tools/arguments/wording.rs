//! The small pieces that messages are made of.

use jsonschema::JsonType;
use serde_json::Value;

/// Characters of a name in a message.
const NAME_CHARS_MAX: usize = 100;
/// Bytes of a pointer.
const POINTER_BYTES_MAX: usize = 512;

/// A name between quotes: at most 100 characters, and none that a reader could not see.
pub(super) fn quote(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len().min(NAME_CHARS_MAX) + 2);
    quoted.push('"');
    let mut characters = name.chars();
    for character in characters.by_ref().take(NAME_CHARS_MAX) {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if is_unseen(character) => quoted.extend(character.escape_unicode()),
            _ => quoted.push(character),
        }
    }
    if characters.next().is_some() {
        quoted.push('…');
    }
    quoted.push('"');
    quoted
}

/// Control characters, and the marks that join, split or turn text without showing.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text, shortened to `bytes` with an ellipsis where it is longer.
pub(super) fn cap(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// The pointer, or the pointer to a place above when it is very long.
pub(super) fn cut_pointer(pointer: &str) -> &str {
    if pointer.len() <= POINTER_BYTES_MAX {
        return pointer;
    }
    let start = &pointer[..pointer.floor_char_boundary(POINTER_BYTES_MAX)];
    &start[..start.rfind('/').unwrap_or(0)]
}

/// The first `limit` of the items, and how many there are in all.
pub(super) fn list(items: impl Iterator<Item = String>, limit: usize) -> String {
    let mut count = 0;
    let mut listed = String::new();
    for item in items {
        if count < limit {
            if count > 0 {
                listed.push_str(", ");
            }
            listed.push_str(&item);
        }
        count += 1;
    }
    if count > limit { format!("{listed}, … ({count} in all)") } else { listed }
}

/// A type as it stands in a sentence.
pub(super) fn named_type(name: JsonType) -> &'static str {
    match name {
        JsonType::Array => "an array",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

/// The type of a value, and nothing else of it.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_capped_and_show_what_is_hidden() {
        assert_eq!(quote("plain"), r#""plain""#);
        assert_eq!(quote("a\"b\\c\nd\u{202e}e"), r#""a\"b\\c\u{a}d\u{202e}e""#);
        let long = quote(&"ą".repeat(150));
        assert_eq!(long.chars().count(), 103);
        assert!(long.ends_with("…\""));
    }

    #[test]
    fn text_and_pointers_are_cut_at_whole_characters_and_segments() {
        assert_eq!(cap("short", 10), "short");
        assert_eq!(cap("ąąąąą", 8), "ąą…");
        let pointer = format!("/a/{}/b", "ž".repeat(300));
        assert_eq!(cut_pointer(&pointer), "/a");
        assert_eq!(cut_pointer("/a/b"), "/a/b");
    }

    #[test]
    fn lists_say_how_much_they_leave_out() {
        let items = |count: usize| (0..count).map(|item| item.to_string());
        assert_eq!(list(items(2), 3), "0, 1");
        assert_eq!(list(items(5), 3), "0, 1, 2, … (5 in all)");
    }
}

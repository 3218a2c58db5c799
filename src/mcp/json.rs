//! A strict look at JSON text before anything reads it.
//!
//! `serde_json` keeps the last of two equal keys and lets a raw value nest without end. A proxy that checks one
//! reading while the upstream acts on another is a hole, so a caller's message is refused when an object names a
//! key twice, at any depth, or when it nests deeper than the limit.
//!
//! The scan is iterative: depth costs heap, never stack.

use memchr::memchr2;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;

/// What a JSON text may not exceed.
#[derive(Clone, Copy, Debug)]
pub struct JsonLimits {
    /// Deepest nesting of arrays and objects; a scalar has depth 0.
    pub depth_max: usize,
    /// Most keys in one object.
    pub keys_max: usize,
}

/// Why a JSON text is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum JsonFault {
    /// Not one JSON value.
    #[error("the body is not valid JSON: {0}")]
    Syntax(String),
    /// The same key twice in one object.
    #[error("an object in the body has the same key twice; send each key once")]
    DuplicateKey,
    /// Nested too deep.
    #[error("the body nests deeper than {0} levels")]
    TooDeep(usize),
    /// Too many keys in one object.
    #[error("an object in the body has more than {0} keys")]
    TooManyKeys(usize),
}

/// Checks that `text` is one JSON value within the limits and without duplicate keys.
///
/// # Errors
/// The first fault found.
///
/// # Cost
/// Two passes over the bytes; keys without escapes are borrowed.
pub fn check(text: &[u8], limits: JsonLimits) -> Result<&RawValue, JsonFault> {
    // The message of serde_json tells the kind and the place, never the text itself.
    let value: &RawValue =
        serde_json::from_slice(text).map_err(|error| JsonFault::Syntax(error.to_string()))?;
    Scan { limits, open: Vec::new() }.run(value.get())?;
    Ok(value)
}

/// What a JSON string holds as JSON, and any other value as it is. Models write lists and objects as strings.
///
/// # Errors
/// When a string holds no JSON, or such as is refused.
pub fn json_in_string(value: &RawValue, limits: JsonLimits) -> Result<Cow<'_, RawValue>, JsonFault> {
    if !value.get().starts_with('"') {
        return Ok(Cow::Borrowed(value));
    }
    let text: String =
        serde_json::from_str(value.get()).map_err(|error| JsonFault::Syntax(error.to_string()))?;
    check(text.trim().as_bytes(), limits).map(|held| Cow::Owned(held.to_owned()))
}

/// An object with its keys, or an array.
enum Container<'a> {
    Object { keys: Keys<'a>, key_next: bool },
    Array,
}

/// The keys of one object. Most have a few, which are compared faster than they are hashed.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    /// All of them, once they are more than a few.
    many: HashSet<Cow<'a, str>>,
}

/// Most keys that are compared one by one.
const FEW: usize = 12;

impl<'a> Keys<'a> {
    /// Whether the key is a new one.
    fn insert(&mut self, key: Cow<'a, str>) -> bool {
        if self.many.is_empty() && self.few.len() < FEW {
            let is_new = !self.few.contains(&key);
            self.few.push(key);
            return is_new;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(key)
    }

    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }
}

/// The scanner over text whose grammar is already known to be right.
struct Scan<'a> {
    limits: JsonLimits,
    open: Vec<Container<'a>>,
}

impl<'a> Scan<'a> {
    fn run(&mut self, text: &'a str) -> Result<(), JsonFault> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'{' => self.enter(Container::Object { keys: Keys::default(), key_next: true })?,
                b'[' => self.enter(Container::Array)?,
                b'}' | b']' => {
                    self.open.pop();
                }
                b',' => {
                    if let Some(Container::Object { key_next, .. }) = self.open.last_mut() {
                        *key_next = true;
                    }
                }
                b'"' => {
                    let end = string_end(bytes, at);
                    self.string(&text[at..end])?;
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }

    fn enter(&mut self, container: Container<'a>) -> Result<(), JsonFault> {
        if self.open.len() == self.limits.depth_max {
            return Err(JsonFault::TooDeep(self.limits.depth_max));
        }
        self.open.push(container);
        Ok(())
    }

    /// Takes a whole string token, quotes included: a key, or a value that is passed over.
    fn string(&mut self, token: &'a str) -> Result<(), JsonFault> {
        let Some(Container::Object { keys, key_next }) = self.open.last_mut() else { return Ok(()) };
        if !*key_next {
            return Ok(());
        }
        *key_next = false;
        let key = if token.contains('\\') {
            let unescaped: String =
                serde_json::from_str(token).map_err(|error| JsonFault::Syntax(error.to_string()))?;
            Cow::Owned(unescaped)
        } else {
            Cow::Borrowed(&token[1..token.len() - 1])
        };
        if !keys.insert(key) {
            return Err(JsonFault::DuplicateKey);
        }
        if keys.len() > self.limits.keys_max {
            return Err(JsonFault::TooManyKeys(self.limits.keys_max));
        }
        Ok(())
    }
}

/// The index behind the closing quote of the string that opens at `start`. JSON and HTTP quote and escape alike.
pub(super) fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(further) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        match bytes[at + further] {
            b'"' => return at + further + 1,
            _ => at += further + 2,
        }
    }
    bytes.len()
}

/// The same JSON without white space between its tokens; borrowed when there is none.
pub fn minified(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut out: Option<String> = None;
    let (mut at, mut kept_from) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\n' | b'\r' | b'\t' => {
                let out = out.get_or_insert_with(|| String::with_capacity(json.len()));
                out.push_str(&json[kept_from..at]);
                at += 1;
                kept_from = at;
            }
            _ => at += 1,
        }
    }
    match out {
        None => Cow::Borrowed(json),
        Some(mut out) => {
            out.push_str(&json[kept_from..]);
            Cow::Owned(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: JsonLimits = JsonLimits { depth_max: 4, keys_max: 3 };

    fn fault(text: &str) -> Option<JsonFault> {
        check(text.as_bytes(), LIMITS).err()
    }

    #[test]
    fn duplicate_keys_are_found_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"x":{"b":[],"b":[]}}]"#,
            r#"{"a":{"k":1},"b":{"k":1,"k":2}}"#,
        ] {
            assert_eq!(fault(text), Some(JsonFault::DuplicateKey), "{text}");
        }
        for count in [FEW - 1, FEW, FEW + 1, 2 * FEW] {
            let limits = JsonLimits { keys_max: 100, ..LIMITS };
            let keys: Vec<String> = (0..count).map(|i| format!("\"{i}\":0")).collect();
            assert!(check(format!("{{{}}}", keys.join(",")).as_bytes(), limits).is_ok(), "{count}");
            for again in [0, count - 1] {
                let text = format!("{{{},\"{again}\":0}}", keys.join(","));
                assert_eq!(
                    check(text.as_bytes(), limits).err(),
                    Some(JsonFault::DuplicateKey),
                    "{count} {again}"
                );
            }
        }
        for text in
            [r#"{"a":"a","b":"a"}"#, r#"[{"a":1},{"a":2}]"#, r#"{"a":{"a":{"a":1}}}"#, r#"{"a":["a","a"]}"#]
        {
            assert_eq!(fault(text), None, "{text}");
        }
    }

    #[test]
    fn limits_hold_at_them_and_one_past_them() {
        assert_eq!(fault("[[[[1]]]]"), None);
        assert_eq!(fault("[[[[[1]]]]]"), Some(JsonFault::TooDeep(4)));
        assert_eq!(fault(r#"{"a":1,"b":2,"c":3}"#), None);
        assert_eq!(fault(r#"{"a":1,"b":2,"c":3,"d":4}"#), Some(JsonFault::TooManyKeys(3)));
    }

    #[test]
    fn text_that_is_not_one_json_value_is_refused_without_quoting_it() {
        for text in ["", "{", "secret", "{} {}", "{\"a\":1,}", "\u{feff}{}", "{\"a\":\"se\u{1}cret\"}"] {
            let Some(JsonFault::Syntax(message)) = fault(text) else { panic!("{text} was accepted") };
            assert!(!message.contains("cret"), "{message}");
        }
        assert!(matches!(check(b"\"\xff\"", LIMITS), Err(JsonFault::Syntax(_))));
    }

    #[test]
    fn t_x5_depth_costs_no_stack() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(fault(&deep), Some(JsonFault::TooDeep(4)));
    }

    #[test]
    fn minified_drops_white_space_outside_strings_only() {
        assert_eq!(
            minified("{ \"a b\" : [1,\n\t2] , \"c\":\"\\\" x\" }"),
            "{\"a b\":[1,2],\"c\":\"\\\" x\"}"
        );
        assert!(matches!(minified("{\"a\":1}"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn anything_serde_wrote_is_accepted_and_minifies_to_the_same_value(words in proptest::collection::vec(".*", 0..8)) {
            let value = serde_json::json!({ "words": words, "n": [1, {"x": null}] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert!(check(pretty.as_bytes(), LIMITS).is_ok());
            prop_assert_eq!(minified(&pretty), serde_json::to_string(&value).unwrap());
        }
    }
}

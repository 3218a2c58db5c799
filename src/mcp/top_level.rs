//! [`TopLevel`]: the members of a JSON object, found without reading what is inside of them.
//!
//! A call's result was read as JSON when it arrived. To look for one member of it afterwards, only strings and brackets need
//! to be told apart, and strings are passed over many bytes at a time. **The text must be right JSON**: of any other text
//! something is said that means nothing, but nothing breaks.

use super::json::string_end;
use std::ops::Range;

/// The members in their order: each name as it is spelled, quotes included, and where its value stands.
pub(super) struct TopLevel<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> TopLevel<'a> {
    /// `None` for JSON that is no object.
    pub(super) fn of(text: &'a [u8]) -> Option<Self> {
        let start = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
        (text[start] == b'{').then_some(Self { text, at: start + 1 })
    }
}

impl<'a> Iterator for TopLevel<'a> {
    type Item = (&'a [u8], Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let ahead = |at: usize, is_there: fn(&u8) -> bool| {
            self.text.get(at..)?.iter().position(is_there).map(|further| at + further)
        };
        let name = ahead(self.at, |byte| matches!(byte, b'"' | b'}'))?;
        if self.text[name] == b'}' {
            return None;
        }
        let name_end = string_end(self.text, name);
        let value = ahead(name_end, |byte| !matches!(byte, b':' | b' ' | b'\n' | b'\r' | b'\t'))?;
        self.at = value_end(self.text, value);
        Some((&self.text[name..name_end], value..self.at))
    }
}

/// The index behind the value that begins at `start`.
fn value_end(text: &[u8], start: usize) -> usize {
    match text[start] {
        b'"' => string_end(text, start),
        b'{' | b'[' => {
            let (mut at, mut open) = (start, 0_usize);
            while at < text.len() {
                match text[at] {
                    b'"' => {
                        at = string_end(text, at);
                        continue;
                    }
                    b'{' | b'[' => open += 1,
                    b'}' | b']' => open -= 1,
                    _ => {}
                }
                at += 1;
                if open == 0 {
                    return at;
                }
            }
            text.len()
        }
        _ => {
            let is_behind = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
            text[start..].iter().position(is_behind).map_or(text.len(), |length| start + length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    fn members(text: &str) -> Option<Vec<(&str, &str)>> {
        let found = TopLevel::of(text.as_bytes())?
            .map(|(name, value)| (std::str::from_utf8(name).unwrap(), text.get(value).unwrap()));
        Some(found.collect())
    }

    #[test]
    fn members_are_found_whatever_they_hold_and_however_they_are_spaced() {
        let text = " {\"a\" :1e400,\n\"b\\\"\" : {\"a\":\"}]\\\\\"} , \"c\":[[{}],\"\"],\"a\":null ,\"d\": \"x\\\"y\" }\n";
        let found = [
            ("\"a\"", "1e400"),
            ("\"b\\\"\"", "{\"a\":\"}]\\\\\"}"),
            ("\"c\"", "[[{}],\"\"]"),
            ("\"a\"", "null"),
            ("\"d\"", "\"x\\\"y\""),
        ];
        assert_eq!(members(text).unwrap(), found);
        assert_eq!(members("{ }").unwrap(), []);
        for other in ["", " ", "[]", "\"{}\"", "7", "null"] {
            assert_eq!(members(other), None, "{other}");
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[\"\\\\{}\\[\\]:, a\u{1}ž]*".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                proptest::collection::btree_map("[\"\\\\{}:a]{0,3}", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_a_json_reader_finds(value in json(), is_pretty: bool) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let found: Option<BTreeMap<String, &str>> = members(&text)
                .map(|found| found.into_iter().map(|(name, value)| (serde_json::from_str(name).unwrap(), value)).collect());
            let read: Option<BTreeMap<String, &RawValue>> =
                value.is_object().then(|| serde_json::from_str(&text).unwrap());
            let read = read.map(|read| read.into_iter().map(|(name, value)| (name, value.get())).collect());
            prop_assert_eq!(found, read);
        }

        #[test]
        fn text_that_is_no_json_breaks_nothing(text in "[\"\\\\{}\\[\\]:, a1]*") {
            let _said = TopLevel::of(text.as_bytes()).map(Iterator::count);
        }
    }
}

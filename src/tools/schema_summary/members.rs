//! JSON text taken apart one level at a time, in the order of the text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The keywords or properties of a JSON object in their order.
pub(super) type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// The text without whitespace between tokens.
pub(super) fn minify(json: &str) -> Cow<'_, str> {
    let (mut in_string, mut escaped) = (false, false);
    let mut is_kept = |byte: u8| {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            return true;
        }
        in_string = byte == b'"';
        !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
    };
    let mut minified = String::new();
    let mut copied = 0;
    for (at, byte) in json.bytes().enumerate() {
        if !is_kept(byte) {
            // Whitespace is one byte, so both sides are whole characters.
            minified.push_str(&json[copied..at]);
            copied = at + 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    minified.push_str(&json[copied..]);
    Cow::Owned(minified)
}

pub(super) fn members(json: &str) -> Option<Members<'_>> {
    serde_json::from_str::<Ordered<'_>>(json).ok().map(|ordered| ordered.0)
}

pub(super) fn find<'a>(members: &Members<'a>, name: &str) -> Option<&'a RawValue> {
    members.iter().find(|(member, _)| member == name).map(|(_, value)| *value)
}

/// An object's members in the order of the text.
struct Ordered<'a>(Members<'a>);

impl<'de> Deserialize<'de> for Ordered<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Ordered<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Ordered(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// A member's name, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

//! Reads JSON objects as structs, and nothing but objects.
//!
//! A derived struct also reads from an array, member by member. On a wire where an array means something else, or is
//! an error, that must not happen.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A `T` that was a JSON object.
#[derive(Clone, Copy, Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Reads a whole JSON text that must be one object.
///
/// # Errors
/// Those of the deserializer; anything but an object is one.
pub fn from_object<'a, T: Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_slice::<Object<T>>(text).map(|object| object.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_are_read() {
        #[derive(serde::Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            name: Option<&'a str>,
        }
        assert_eq!(from_object::<Named<'_>>(br#"{"name":"a"}"#).unwrap().name, Some("a"));
        for other in [r#"["a"]"#, "[]", "null", "7", "\"a\"", "{", ""] {
            assert!(from_object::<Named<'_>>(other.as_bytes()).is_err(), "{other}");
        }
    }
}

//! Reads JSON objects as structs, and nothing but objects.
//!
//! A derived struct also reads from an array, member by member. On a wire where an array means something else, or is
//! an error, that must not happen.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
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
                T::deserialize(MapAccessDeserializer::new(ByteKeys(map))).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Members whose names are compared as bytes: a lone surrogate (`"\\ud800"`) is legal in JSON and no text, and an unknown
/// member of that name must not make the whole object unreadable.
struct ByteKeys<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for ByteKeys<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(ByteKey(seed))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// A seed for a member's name, and the deserializer that it is given.
struct ByteKey<T>(T);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for ByteKey<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        self.0.deserialize(ByteKey(deserializer))
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ByteKey<D> {
    type Error = D::Error;

    /// The names of a struct's members.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_bytes(visitor)
    }

    /// Keys of a map, which are text.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_str(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum ignored_any
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
        let odd = r#"{"\ud800":{"\udfff":1},"n\u0061me":"a"}"#;
        assert_eq!(from_object::<Named<'_>>(odd.as_bytes()).unwrap().name, Some("a"));
        for other in [r#"["a"]"#, "[]", "null", "7", "\"a\"", "{", ""] {
            assert!(from_object::<Named<'_>>(other.as_bytes()).is_err(), "{other}");
        }
    }
}

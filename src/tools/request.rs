//! Reads the arguments of our own tools, and the arguments inside them that go to the upstream.

use super::refusal::Refusal;
use crate::mcp::{JsonLimits, check_json, from_object};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Limits for JSON that a model sent inside a string; the same as for a whole message.
const NESTED_LIMITS: JsonLimits = JsonLimits { depth_max: 64, keys_max: 10_000 };

/// Reads our tool's arguments into `T`.
///
/// # Errors
/// A refusal that says what is expected.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    arguments: Option<&'a RawValue>,
    expected: &str,
) -> Result<T, Refusal> {
    from_object(arguments.map_or("{}", RawValue::get).as_bytes()).map_err(|error| {
        let error = error.to_string();
        // The place in a line of JSON that nobody sees as lines helps nobody.
        let what = error.split(" at line ").next().unwrap_or(&error);
        Refusal::new(format!("The arguments are wrong: {what}. Send {expected}."))
    })
}

/// One call of an upstream's tool, as the model asks for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallArguments<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl CallArguments<'_> {
    /// The inner arguments as a raw JSON object. Models leave them out when there are none, and some send them as a
    /// string of JSON.
    ///
    /// # Errors
    /// When they are neither an object nor a string that holds one.
    pub(super) fn object(&self) -> Result<Cow<'_, RawValue>, Refusal> {
        let Some(raw) = self.arguments else { return Ok(Cow::Owned(empty_object())) };
        match raw.get().as_bytes().first() {
            Some(b'{') => Ok(Cow::Borrowed(raw)),
            Some(b'"') => {
                let text: String = serde_json::from_str(raw.get())
                    .map_err(|_| Refusal::new("arguments must be a JSON object."))?;
                if text.trim().is_empty() {
                    return Ok(Cow::Owned(empty_object()));
                }
                let object = check_json(text.as_bytes(), NESTED_LIMITS)
                    .ok()
                    .filter(|value| value.get().starts_with('{'))
                    .ok_or_else(|| {
                        Refusal::new("arguments is a string that holds no JSON object. Send an object.")
                    })?;
                Ok(Cow::Owned(object.to_owned()))
            }
            _ => Err(Refusal::new("arguments must be a JSON object.")),
        }
    }
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(call: &str) -> Result<String, String> {
        let call: CallArguments<'_> = serde_json::from_str(call).unwrap();
        call.object().map(|object| object.get().to_owned()).map_err(|refusal| refusal.to_json())
    }

    #[test]
    fn arguments_may_be_absent_an_object_or_a_string_that_holds_one() {
        for (call, expected) in [
            (r#"{"name":"a"}"#, "{}"),
            (r#"{"name":"a","arguments":null}"#, "{}"),
            (r#"{"name":"a","arguments":""}"#, "{}"),
            (r#"{"name":"a","arguments":{ "n": 1e400 }}"#, "{ \"n\": 1e400 }"),
            (r#"{"name":"a","arguments":"{\"n\":1}"}"#, "{\"n\":1}"),
        ] {
            assert_eq!(object(call).unwrap(), expected, "{call}");
        }
        for call in [
            r#"{"name":"a","arguments":[1]}"#,
            r#"{"name":"a","arguments":"[1]"}"#,
            r#"{"name":"a","arguments":"hello"}"#,
            r#"{"name":"a","arguments":"{\"n\":1,\"n\":2}"}"#,
            r#"{"name":"a","arguments":7}"#,
        ] {
            assert!(object(call).unwrap_err().contains("object"), "{call}");
        }
    }
}

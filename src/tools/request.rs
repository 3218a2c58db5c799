//! Reads the arguments of our own tools, and the arguments inside them that go to the upstream.
//!
//! Models send lists, numbers and objects as strings of JSON; what such a string holds is taken. What is wrong is told
//! in our own words by the member's name; no value is ever repeated.

use super::refusal::Refusal;
use super::text::shown;
use crate::mcp::{JsonFault, JsonLimits, json_in_string};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Limits for JSON that a model sent inside a string; the same as for a whole message.
pub(super) const NESTED_LIMITS: JsonLimits = JsonLimits { depth_max: 64, keys_max: 10_000 };

/// The members of an object that a model sent, taken one by one.
pub(super) struct Members<'a> {
    members: Vec<(String, &'a RawValue)>,
    expected: &'a str,
}

impl<'a> Members<'a> {
    /// Reads an object. Its members must be among `known`.
    ///
    /// # Errors
    /// A refusal that says what is expected.
    pub(super) fn read(
        object: Option<&'a RawValue>,
        known: &[&str],
        expected: &'a str,
    ) -> Result<Self, Refusal> {
        let mut members = Vec::new();
        if let Some(object) = object {
            // Duplicate keys were refused with the whole message, or with the string that the object came in.
            members = pairs(object)
                .ok_or_else(|| Refusal::new(format!("The arguments must be one object. Send {expected}.")))?;
        }
        let unknown = members.iter().find(|(name, _)| !known.contains(&name.as_str()));
        if let Some((name, _)) = unknown {
            let known: Vec<String> = known.iter().map(|name| format!("'{name}'")).collect();
            return Err(Refusal::new(format!(
                "There is no member '{}': take {}. Send {expected}.",
                shown(name),
                known.join(" or ")
            )));
        }
        Ok(Self { members, expected })
    }

    /// A member's value; `null` counts as absent.
    pub(super) fn value(&self, name: &str) -> Option<&'a RawValue> {
        self.members
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| *value)
            .filter(|v| v.get() != "null")
    }

    /// A member that is a string.
    ///
    /// # Errors
    /// When it is absent or something else.
    pub(super) fn text(&self, name: &str) -> Result<String, Refusal> {
        let value = self.value(name).ok_or_else(|| self.wrong(name, "is missing"))?;
        text(value).ok_or_else(|| self.wrong(name, &format!("must be a string, not {}", kind(value))))
    }

    /// A member that is a list of strings, or one string. A string that holds a JSON list is that list. The flag tells
    /// whether it was a list.
    ///
    /// # Errors
    /// When it holds anything else.
    pub(super) fn texts(&self, name: &str) -> Result<Option<(Vec<String>, bool)>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = |item: &RawValue| {
            self.wrong(name, &format!("must be a string or a list of strings, not {}", kind(item)))
        };
        let Some(items) = list(value) else {
            return text(value).map(|text| Some((vec![text], false))).ok_or_else(|| wrong(value));
        };
        let texts = items.iter().map(|item| {
            text(item)
                .ok_or_else(|| self.wrong(name, &format!("holds {} where a string belongs", kind(item))))
        });
        texts.collect::<Result<_, _>>().map(|texts| Some((texts, true)))
    }

    /// A member that is a number, or a string that holds one.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let digits = text(value).unwrap_or_else(|| value.get().to_owned());
        let number = digits.trim().parse().ok().filter(|number: &f64| !number.is_nan());
        number.map(Some).ok_or_else(|| self.wrong(name, &format!("must be a number, not {}", kind(value))))
    }

    /// A member that is a list, or a string that holds one.
    ///
    /// # Errors
    /// When it is absent or something else.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Box<RawValue>>, Refusal> {
        let value = self.value(name).ok_or_else(|| self.wrong(name, "is missing"))?;
        list(value).ok_or_else(|| self.wrong(name, &format!("must be a list, not {}", kind(value))))
    }

    fn wrong(&self, name: &str, what: &str) -> Refusal {
        Refusal::new(format!("'{name}' {what}. Send {}.", self.expected))
    }
}

fn pairs(object: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).ok()?;
    Some(members.into_iter().collect())
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// The items of a list, or of a string that holds one.
fn list(value: &RawValue) -> Option<Vec<Box<RawValue>>> {
    let list = json_in_string(value, NESTED_LIMITS).ok()?;
    // `null` in a list and the like are for whoever reads the items.
    serde_json::from_str(list.get()).ok()
}

/// What a value is, without saying it.
fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// One call of an upstream's tool, as the model asks for it.
#[derive(Debug)]
pub(super) struct CallArguments {
    pub(super) name: String,
    arguments: Option<Box<RawValue>>,
}

impl CallArguments {
    /// Reads a call; a string that holds one is read too.
    ///
    /// # Errors
    /// A refusal that says what is expected.
    pub(super) fn read(call: Option<&RawValue>, expected: &str) -> Result<Self, Refusal> {
        let call = call
            .map(|call| json_in_string(call, NESTED_LIMITS))
            .transpose()
            .map_err(|_| Refusal::new(format!("A call must be an object. Send {expected}.")))?;
        let members = Members::read(call.as_deref(), &["name", "arguments"], expected)?;
        let arguments = members.value("arguments").map(ToOwned::to_owned);
        Ok(Self { name: members.text("name")?, arguments })
    }

    /// The inner arguments as a raw JSON object. Models leave them out when there are none, and some send them as a
    /// string of JSON.
    ///
    /// # Errors
    /// When they are neither an object nor a string that holds one.
    pub(super) fn object(&self) -> Result<Box<RawValue>, Refusal> {
        let Some(raw) = &self.arguments else { return Ok(empty_object()) };
        let is_string = raw.get().starts_with('"');
        if is_string && text(raw).is_some_and(|text| text.trim().is_empty()) {
            return Ok(empty_object());
        }
        match json_in_string(raw, NESTED_LIMITS) {
            Ok(object) if object.get().starts_with('{') => Ok(object.into_owned()),
            Err(JsonFault::DuplicateKey) => Err(Refusal::new(
                "arguments is a string of JSON in which an object has the same key twice. Send an object, each key once.",
            )),
            Ok(_) if !is_string => Err(Refusal::new("arguments must be a JSON object.")),
            Ok(_) | Err(_) => {
                Err(Refusal::new("arguments is a string that holds no JSON object. Send an object."))
            }
        }
    }
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}

/// A string up to so many bytes, cut at a character; and whether it was cut.
pub(super) fn cut(text: &mut String, bytes_max: usize) -> bool {
    let is_longer = text.len() > bytes_max;
    if is_longer {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
    is_longer
}

/// The arguments of a tool as an object: what a string holds where the model sent one.
///
/// # Errors
/// When they are no object and no string that holds one.
pub(crate) fn outer_object(arguments: &RawValue) -> Result<Cow<'_, RawValue>, JsonFault> {
    json_in_string(arguments, NESTED_LIMITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(call: &str) -> Result<String, String> {
        let raw: &RawValue = serde_json::from_str(call).unwrap();
        let call = CallArguments::read(Some(raw), "…").unwrap();
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
            (r#""{\"name\":\"a\",\"arguments\":\"{\\\"n\\\":1}\"}""#, "{\"n\":1}"),
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

    #[test]
    fn a_repeated_key_inside_a_string_is_told_as_what_it_is() {
        let told = object(r#"{"name":"a","arguments":"{\"n\":1,\"n\":2}"}"#).unwrap_err();
        assert!(told.contains("same key twice"), "{told}");
    }

    #[test]
    fn lists_and_numbers_are_taken_out_of_strings() {
        let raw: &RawValue =
            serde_json::from_str(r#"{"t":"[\"a\",\"b\"]","one":"[a]","n":" 5 ","l":"[{},\"{}\"]"}"#).unwrap();
        let members = Members::read(Some(raw), &["t", "one", "n", "l"], "…").unwrap();
        assert_eq!(members.texts("t").unwrap(), Some((vec!["a".to_owned(), "b".to_owned()], true)));
        assert_eq!(members.texts("one").unwrap(), Some((vec!["[a]".to_owned()], false)));
        assert_eq!(members.number("n").unwrap(), Some(5.0));
        assert_eq!(members.list("l").unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_told_by_its_member_and_never_by_its_value() {
        let long = "x".repeat(500_000);
        let told = |arguments: String, ask: fn(&Members<'_>) -> Option<Refusal>| {
            let raw = RawValue::from_string(arguments).unwrap();
            match Members::read(Some(&raw), &["a"], "…") {
                Ok(members) => ask(&members).unwrap().to_json(),
                Err(refusal) => refusal.to_json(),
            }
        };
        for (arguments, expected) in [
            (format!(r#"{{"a":"{long}"}}"#), "'a' must be a number, not a string"),
            (r#"{"a":[1]}"#.to_owned(), "'a' must be a number, not a list"),
            (format!(r#"{{"\u202e{long}":1}}"#), "There is no member '\\\\u{202e}xxx"),
        ] {
            let told = told(arguments, |members| members.number("a").err());
            assert!(told.len() < 400 && told.contains(expected), "{told}");
        }
    }
}

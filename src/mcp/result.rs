//! The one member of a result that decides what may be done with it.

use super::object::from_object;
use super::top_level::TopLevel;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// A result's `resultType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    /// Not there, as in the legacy era: the same as complete.
    Absent,
    /// The work is done.
    Complete,
    /// The server asks the client for something and wants the request again.
    InputRequired,
    /// An extension's, or nonsense.
    Unknown,
}

impl ResultType {
    /// Finds it in a raw result, which was read as JSON when it came.
    ///
    /// # Cost
    /// One look at each byte, and less at those of long strings.
    pub fn of(result: &[u8]) -> Self {
        let place = match type_member(result) {
            TypeMember::Absent => return Self::Absent,
            TypeMember::Unclear => return Self::Unknown,
            TypeMember::At(place) => place,
        };
        match &result[place] {
            b"null" => Self::Absent,
            b"\"complete\"" => Self::Complete,
            b"\"input_required\"" => Self::InputRequired,
            other => match unescaped(other).as_deref() {
                Some("complete") => Self::Complete,
                Some("input_required") => Self::InputRequired,
                _ => Self::Unknown,
            },
        }
    }
}

/// Where a result that says nothing of its type says so with `null`: the place of that word in the result.
pub fn null_type(result: &[u8]) -> Option<Range<usize>> {
    match type_member(result) {
        TypeMember::At(place) if &result[place.clone()] == b"null" => Some(place),
        _ => None,
    }
}

/// A result's own word for its type.
enum TypeMember {
    Absent,
    /// The place of its value.
    At(Range<usize>),
    /// There are several, or the result is no object.
    Unclear,
}

fn type_member(result: &[u8]) -> TypeMember {
    let Some(members) = TopLevel::of(result) else { return TypeMember::Unclear };
    let is_type =
        |name: &[u8]| name == b"\"resultType\"" || unescaped(name).is_some_and(|name| name == "resultType");
    let mut places = members.filter(|(name, _)| is_type(name)).map(|(_, place)| place);
    match (places.next(), places.next()) {
        (None, _) => TypeMember::Absent,
        (Some(place), None) => TypeMember::At(place),
        (Some(_), Some(_)) => TypeMember::Unclear,
    }
}

/// The text of a string that is spelled with escapes.
fn unescaped(token: &[u8]) -> Option<String> {
    if !token.contains(&b'\\') {
        return None;
    }
    serde_json::from_slice(token).ok()
}

/// Whether a client can be asked for a result's `inputRequests`.
#[derive(Debug, PartialEq)]
pub enum InputRequests {
    /// It declared all that they need.
    Declared,
    /// It did not declare these capabilities.
    Undeclared(Value),
    /// One of them is nothing that MCP knows.
    Unknown,
}

impl InputRequests {
    /// Holds a result's requests against what the client declared. A client that declared extensions may be asked for
    /// what is not known here.
    pub fn of(result: &[u8], declared: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Asking<'a> {
            #[serde(borrow, default, rename = "inputRequests")]
            requests: BTreeMap<Cow<'a, str>, &'a RawValue>,
        }
        let declared: Value = serde_json::from_str(declared.get()).unwrap_or_default();
        let Ok(asking) = from_object::<Asking<'_>>(result) else { return Self::Unknown };
        let mut missing = serde_json::Map::new();
        for request in asking.requests.values() {
            match needs(request) {
                Some(needs) => {
                    for (capability, part) in needs {
                        if !is_declared(&declared, capability, part) {
                            let parts = missing.entry(capability).or_insert_with(|| json!({}));
                            if let Some(part) = part {
                                parts[part] = json!({});
                            }
                        }
                    }
                }
                None if declared["extensions"].as_object().is_some_and(|all| !all.is_empty()) => {}
                None => return Self::Unknown,
            }
        }
        if missing.is_empty() { Self::Declared } else { Self::Undeclared(missing.into()) }
    }
}

/// The capabilities that a request needs, and which part of them; `None` for a request that MCP does not know.
fn needs(request: &RawValue) -> Option<Vec<(&'static str, Option<&'static str>)>> {
    #[derive(Deserialize)]
    struct InputRequest<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(default)]
        params: Value,
    }
    let request: InputRequest<'_> = serde_json::from_str(request.get()).ok()?;
    let params = &request.params;
    Some(match &*request.method {
        "elicitation/create" if params["mode"] == "url" => vec![("elicitation", Some("url"))],
        "elicitation/create" => vec![("elicitation", None)],
        "sampling/createMessage" => {
            let tools = !params["tools"].is_null() || !params["toolChoice"].is_null();
            let context = matches!(params["includeContext"].as_str(), Some("thisServer" | "allServers"));
            let mut needs = vec![("sampling", None)];
            needs.extend(tools.then_some(("sampling", Some("tools"))));
            needs.extend(context.then_some(("sampling", Some("context"))));
            needs
        }
        "roots/list" => vec![("roots", None)],
        _ => return None,
    })
}

fn is_declared(declared: &Value, capability: &str, part: Option<&str>) -> bool {
    let capability = &declared[capability];
    capability.is_object() && part.is_none_or(|part| capability[part].is_object())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn m35_what_the_client_did_not_declare_is_named() {
        let asking = br#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"roots/list"}}}"#;
        let of = |result: &[u8], declared: &str| {
            InputRequests::of(result, serde_json::from_str(declared).unwrap())
        };
        let undeclared = InputRequests::Undeclared;
        assert_eq!(of(asking, "{}"), undeclared(json!({"elicitation": {}, "roots": {}})));
        assert_eq!(
            of(asking, r#"{"elicitation":{"form":{}},"roots":null}"#),
            undeclared(json!({"roots": {}}))
        );
        assert_eq!(of(asking, r#"{"elicitation":{},"roots":{}}"#), InputRequests::Declared);
        let state_only = br#"{"resultType":"input_required","requestState":"s"}"#;
        assert_eq!(of(state_only, "{}"), InputRequests::Declared);
    }

    #[test]
    fn m35_parts_of_a_capability_are_declared_by_themselves() {
        let of = |request: &str, declared: &str| {
            let asking = format!(r#"{{"resultType":"input_required","inputRequests":{{"a":{request}}}}}"#);
            InputRequests::of(asking.as_bytes(), serde_json::from_str(declared).unwrap())
        };
        let url = r#"{"method":"elicitation/create","params":{"mode":"url"}}"#;
        let tools =
            r#"{"method":"sampling/createMessage","params":{"tools":[],"includeContext":"allServers"}}"#;
        for (request, declared, missing) in [
            (url, r#"{"elicitation":{}}"#, json!({"elicitation": {"url": {}}})),
            (url, r#"{"elicitation":{"form":{}}}"#, json!({"elicitation": {"url": {}}})),
            (tools, r#"{"sampling":{"context":{}}}"#, json!({"sampling": {"tools": {}}})),
            (tools, "{}", json!({"sampling": {"tools": {}, "context": {}}})),
        ] {
            assert_eq!(of(request, declared), InputRequests::Undeclared(missing), "{request} {declared}");
        }
        assert_eq!(of(url, r#"{"elicitation":{"url":{}}}"#), InputRequests::Declared);
        assert_eq!(of(tools, r#"{"sampling":{"tools":{},"context":{}}}"#), InputRequests::Declared);
        for unknown in [r#"{"method":5}"#, r#"{"method":"x"}"#, "{}", "7", "[]"] {
            assert_eq!(of(unknown, r#"{"elicitation":{}}"#), InputRequests::Unknown, "{unknown}");
            assert_eq!(of(unknown, r#"{"extensions":{"x":{}}}"#), InputRequests::Declared, "{unknown}");
        }
    }

    #[test]
    fn m17_a_null_type_is_found_where_it_stands() {
        assert_eq!(null_type(br#"{"a":1,"resultType": null,"b":2}"#), Some(21..25));
        for other in [r#"{"resultType":"complete"}"#, "{}", r#"{"a":{"resultType":null}}"#] {
            assert_eq!(null_type(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn c8_absent_is_told_from_complete_and_both_from_what_is_unknown() {
        for (result, expected) in [
            ("{}", ResultType::Absent),
            (r#"{"content":[{"resultType":"task"}]}"#, ResultType::Absent),
            (r#"{"resultType":"complete"}"#, ResultType::Complete),
            (r#"{"resultType":"input_required"}"#, ResultType::InputRequired),
            (r#"{"resultType":"task"}"#, ResultType::Unknown),
            (r#"{"resultType":7}"#, ResultType::Unknown),
            ("[]", ResultType::Unknown),
            ("", ResultType::Unknown),
        ] {
            assert_eq!(ResultType::of(result.as_bytes()), expected, "{result}");
        }
    }

    /// The same by a JSON reader, which looks at every byte.
    fn read(result: &str) -> ResultType {
        #[derive(Deserialize)]
        struct Typed<'a> {
            #[serde(borrow, default, rename = "resultType")]
            result_type: Option<Cow<'a, str>>,
        }
        match from_object::<Typed<'_>>(result.as_bytes()).map(|typed| typed.result_type) {
            Ok(None) => ResultType::Absent,
            Ok(Some(text)) if text == "complete" => ResultType::Complete,
            Ok(Some(text)) if text == "input_required" => ResultType::InputRequired,
            Ok(Some(_)) | Err(_) => ResultType::Unknown,
        }
    }

    proptest! {
        #[test]
        fn c8_a_type_is_found_as_a_json_reader_finds_it(members in proptest::collection::vec(
            (
                prop_oneof![Just(r"resultType"), Just(r"result\u0054ype"), Just("result"), Just(r"\ud800"), Just("")],
                prop_oneof![
                    Just("null"), Just(r#""complete""#), Just(r#""c\u006fmplete""#), Just(r#""input_required""#), Just("7"),
                    Just(r#""\ud800""#), Just(r#"{"resultType":"complete"}"#), Just("[\"}\"]"), Just(r#""task""#), Just("true"),
                ],
            ),
            0..4,
        ), space in prop_oneof![Just(""), Just(" "), Just("\n\t")]) {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{space}\"{name}\"{space}:{space}{value}{space}")).collect();
            let result = format!("{space}{{{space}{}}}", members.join(","));
            prop_assert_eq!(ResultType::of(result.as_bytes()), read(&result), "{}", result);
        }
    }
}

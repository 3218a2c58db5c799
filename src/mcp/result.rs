//! The one member of a result that decides what may be done with it.

use super::object::from_object;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

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
    /// Reads it from a raw result.
    pub fn of(result: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Typed<'a> {
            #[serde(borrow, default, rename = "resultType")]
            result_type: Option<Cow<'a, str>>,
        }
        match from_object::<Typed<'_>>(result).as_ref().map(|typed| typed.result_type.as_deref()) {
            Ok(None) => Self::Absent,
            Ok(Some("complete")) => Self::Complete,
            Ok(Some("input_required")) => Self::InputRequired,
            Ok(Some(_)) | Err(_) => Self::Unknown,
        }
    }
}

/// The capabilities that a result's `inputRequests` need and the client did not declare, as an object; `None` when all
/// of them are declared.
pub fn undeclared_capabilities(result: &[u8], declared: &RawValue) -> Option<serde_json::Value> {
    #[derive(Deserialize)]
    struct Asking {
        #[serde(default, rename = "inputRequests")]
        requests: BTreeMap<String, InputRequest>,
    }
    #[derive(Deserialize)]
    struct InputRequest {
        #[serde(default)]
        method: String,
    }
    let asking: Asking = from_object(result).ok()?;
    let declared: BTreeMap<String, serde::de::IgnoredAny> = serde_json::from_str(declared.get()).ok()?;
    let needed = asking.requests.values().filter_map(|request| match request.method.as_str() {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    });
    let missing: serde_json::Map<String, serde_json::Value> = needed
        .filter(|capability| !declared.contains_key(*capability))
        .map(|capability| (capability.to_owned(), serde_json::json!({})))
        .collect();
    (!missing.is_empty()).then(|| missing.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m35_what_the_client_did_not_declare_is_named() {
        let asking = br#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"roots/list"},"c":{"method":"x"}}}"#;
        let missing =
            |declared: &str| undeclared_capabilities(asking, serde_json::from_str(declared).unwrap());
        assert_eq!(missing("{}").unwrap(), serde_json::json!({"elicitation": {}, "roots": {}}));
        assert_eq!(missing(r#"{"elicitation":{"form":{}}}"#).unwrap(), serde_json::json!({"roots": {}}));
        assert_eq!(missing(r#"{"elicitation":{},"roots":{}}"#), None);
        let state_only = br#"{"resultType":"input_required","requestState":"s"}"#;
        assert_eq!(undeclared_capabilities(state_only, serde_json::from_str("{}").unwrap()), None);
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
}

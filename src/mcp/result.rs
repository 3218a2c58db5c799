//! The one member of a result that decides what may be done with it.

use super::object::from_object;
use serde::Deserialize;
use std::borrow::Cow;

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

#[cfg(test)]
mod tests {
    use super::*;

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

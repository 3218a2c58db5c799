//! Reads numbers of arguments leniently.
//!
//! A model, and the libraries between it and us, write `1.0` for `1`, which draft 4 does not call an integer; and a
//! number beyond 64 bits arrives as the nearest float, which equals its neighbours. Neither is worth a refusal.

use serde_json::{Number, Value};

/// Above this a float no longer holds every integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes whole floats as integers, as far as 64 bits reach; `clamp` forces those beyond into range. Tells whether
/// every number is exactly the one that was written. The recursion is as deep as the value, which was limited before.
pub(super) fn settle(value: &mut Value, clamp: bool) -> bool {
    match value {
        Value::Number(number) => settle_number(number, clamp),
        Value::Array(items) => items.iter_mut().fold(true, |exact, item| settle(item, clamp) & exact),
        Value::Object(properties) => {
            properties.values_mut().fold(true, |exact, item| settle(item, clamp) & exact)
        }
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

fn settle_number(number: &mut Number, clamp: bool) -> bool {
    if !number.is_f64() {
        return true;
    }
    let float = number.as_f64().unwrap_or(0.0);
    if float.fract() != 0.0 {
        return true;
    }
    if float.abs() <= EXACT_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 53 bits, as just checked")]
        let whole = float as i64;
        *number = Number::from(whole);
        return true;
    }
    if clamp {
        *number = if float > 0.0 { Number::from(u64::MAX) } else { Number::from(i64::MIN) };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_floats_become_integers_and_huge_numbers_are_noticed() {
        for (text, expected, exact) in [
            ("1.0", "1", true),
            ("-0.0", "0", true),
            ("1e2", "100", true),
            ("1.5", "1.5", true),
            ("18446744073709551615", "18446744073709551615", true),
            ("18446744073709551616", "1.8446744073709552e+19", false),
            (r#"{"a":[1.0,{"b":2.0}]}"#, r#"{"a":[1,{"b":2}]}"#, true),
        ] {
            let mut value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(settle(&mut value, false), exact, "{text}");
            assert_eq!(value.to_string(), expected);
        }
    }
}

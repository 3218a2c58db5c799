//! Secrets that must not turn up, in every form in which they could.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::fmt::Write as _;

/// A secret with the forms it is looked for in.
#[derive(Clone, Debug)]
pub struct Canary {
    name: &'static str,
    forms: Vec<(&'static str, String)>,
}

impl Canary {
    /// The forms of a secret of at least a dozen characters.
    pub fn new(name: &'static str, secret: &str) -> Self {
        let bytes = secret.as_bytes();
        let hex = bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        });
        let percent = bytes.iter().fold(String::new(), |mut text, byte| {
            if byte.is_ascii_alphanumeric() {
                text.push(char::from(*byte));
            } else {
                write!(text, "%{byte:02X}").expect("a string takes any text");
            }
            text
        });
        let escaped = serde_json::Value::from(secret).to_string();
        let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
        let start: String = secret.chars().take(12).collect();
        let mut forms = vec![
            ("plain", secret.to_owned()),
            ("first twelve characters", start),
            ("hex", hex.clone()),
            ("hex in capitals", hex.to_uppercase()),
            ("percent", percent),
            ("JSON", escaped.trim_matches('"').to_owned()),
            ("list of bytes", numbers.join(", ")),
        ];
        for shift in 0..3 {
            forms.push(("base64", inside(&STANDARD_NO_PAD, bytes, shift)));
            forms.push(("base64 for URLs", inside(&URL_SAFE_NO_PAD, bytes, shift)));
        }
        forms.dedup_by(|one, other| one.1 == other.1);
        Self { name, forms }
    }

    /// Which secret it is.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where the secret stands in a text: the form, and some of what is around it.
    pub fn found_in(&self, text: &str) -> Option<String> {
        self.forms.iter().find_map(|(form, secret)| {
            let at = text.find(secret.as_str())?;
            let start = text.floor_char_boundary(at.saturating_sub(60));
            let end = text.ceil_char_boundary(at + secret.len() + 20);
            Some(format!("{} as {form}: …{}…", self.name, &text[start..end]))
        })
    }
}

/// The characters of a secret's base64 that do not depend on what stands around it, at one of three offsets.
fn inside(engine: &impl base64::Engine, secret: &[u8], shift: usize) -> String {
    let mut whole = vec![0; shift];
    whole.extend_from_slice(secret);
    let text = engine.encode(&whole);
    let from = [0, 2, 3][shift];
    let complete = whole.len() / 3 * 4;
    text[from..complete].to_owned()
}

/// Everything of several canaries that stands in a text.
pub fn leaks(canaries: &[Canary], text: &str) -> Vec<String> {
    canaries.iter().filter_map(|canary| canary.found_in(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;

    const SECRET: &str = "Kq7~vX2+pL9/zR4=é\"w";

    #[test]
    fn every_form_is_found_wherever_it_stands() {
        let canary = Canary::new("token", SECRET);
        let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
        for text in [SECRET.to_owned(), hex.to_uppercase(), hex, format!("{:?}", SECRET.as_bytes())] {
            assert!(canary.found_in(&format!("before {text} after")).is_some(), "{text}");
        }
        assert!(canary.found_in(&serde_json::Value::from(SECRET).to_string()).is_some());
        assert!(canary.found_in("Kq7%7EvX2%2BpL9%2FzR4%3D%C3%A9%22w").is_some());
        for before in ["", "B", "Be", "Bearer ", "Bearer  x"] {
            for after in ["", "1", "12"] {
                let text = STANDARD_NO_PAD.encode(format!("{before}{SECRET}{after}"));
                assert!(canary.found_in(&text).is_some(), "{before:?} {after:?}");
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_not_found() {
        assert_eq!(Canary::new("token", SECRET).found_in("Kq7 vX2 pL9 zR4 and much else"), None);
    }
}

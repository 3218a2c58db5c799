//! The wire: a stream split anywhere, JSON that two readers would read differently, and text in headers.

use crate::two_parts;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::value::RawValue;
use std::collections::HashSet;
use toolsearch_proxy::mcp::{
    JsonFault, JsonLimits, SseDecoder, check_json, decode_header_text, encode_header_text,
    param_header_values, param_headers as headers,
};

const EVENT_BYTES_MAX: usize = 256;

/// A stream gives the same events whatever pieces it comes in. The first byte says how it is cut.
pub fn sse(data: &[u8]) {
    let Some((&cut, stream)) = data.split_first() else { return };
    let whole = decode(stream.chunks(stream.len().max(1)));
    assert_eq!(decode(stream.chunks(1)), whole);
    let (front, back) = stream.split_at(usize::from(cut).min(stream.len()));
    assert_eq!(decode([front, back].into_iter()), whole);
    for event in whole.iter().flatten() {
        assert!(event.len() <= EVENT_BYTES_MAX && !event.contains(&b'\r'));
    }
}

/// The events up to the end, or none where the limit ended it: how many came before that depends on the pieces.
fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Option<Vec<Bytes>> {
    let mut decoder = SseDecoder::new(EVENT_BYTES_MAX);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk, &mut events).ok()?;
    }
    Some(events)
}

const LIMITS: JsonLimits = JsonLimits { depth_max: 6, keys_max: 5 };

/// The scanner finds what a slow reader finds.
pub fn json(data: &[u8]) {
    let verdict = check_json(data, LIMITS);
    let Ok(value) = serde_json::from_slice::<&RawValue>(data) else {
        assert!(matches!(verdict, Err(JsonFault::Syntax(_))));
        return;
    };
    let slow = Slow { bytes: value.get().as_bytes(), at: 0 }.value(0);
    match (&verdict, &slow) {
        (Ok(_), Ok(())) => {}
        // A key with half a character in it has no text, so there is nothing to compare.
        (Err(JsonFault::Syntax(_)), _) => assert!(value.get().contains("\\u")),
        (Err(found), Err(expected)) => assert_eq!(found, expected),
        _ => panic!("{verdict:?} but {slow:?}"),
    }
}

/// A reader of JSON whose grammar is known to be right, one function call for each level.
struct Slow<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Slow<'_> {
    fn space(&mut self) -> u8 {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn value(&mut self, depth: usize) -> Result<(), JsonFault> {
        match self.space() {
            b'"' => drop(self.string()),
            open @ (b'{' | b'[') => {
                if depth == LIMITS.depth_max {
                    return Err(JsonFault::TooDeep(depth));
                }
                self.at += 1;
                return self.members(open == b'{', depth);
            }
            _ => {
                while self.bytes.get(self.at).is_some_and(|byte| !b",]} \t\r\n".contains(byte)) {
                    self.at += 1;
                }
            }
        }
        Ok(())
    }

    fn members(&mut self, named: bool, depth: usize) -> Result<(), JsonFault> {
        let mut keys = HashSet::new();
        loop {
            if matches!(self.space(), b'}' | b']') {
                self.at += 1;
                return Ok(());
            }
            if named {
                let key = self.string();
                // Half a character: the scanner has said so, or says so now.
                let key: String = serde_json::from_str(&key).unwrap_or(key);
                if !keys.insert(key) {
                    return Err(JsonFault::DuplicateKey);
                }
                if keys.len() > LIMITS.keys_max {
                    return Err(JsonFault::TooManyKeys(LIMITS.keys_max));
                }
                self.space();
                self.at += 1;
            }
            self.value(depth + 1)?;
            if self.space() == b',' {
                self.at += 1;
            }
        }
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while self.bytes[self.at] != b'"' {
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        String::from_utf8(self.bytes[start..self.at].to_vec()).unwrap()
    }
}

/// Any text survives a header and never breaks it; a schema's header parameters are few, different and valid. The first
/// line is the schema, the rest the arguments.
pub fn param_headers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let encoded = encode_header_text(&text);
    assert!(HeaderValue::from_str(&encoded).is_ok());
    assert_eq!(decode_header_text(encoded.as_bytes()).unwrap(), text);
    let _any_bytes = decode_header_text(data);
    let (schema, arguments) = two_parts(data);
    let (Ok(schema), Ok(arguments)) =
        (serde_json::from_slice::<&RawValue>(schema), serde_json::from_slice(arguments))
    else {
        return;
    };
    let Ok(found) = headers(schema) else { return };
    let mut seen = HashSet::new();
    for header in &found {
        assert!(seen.insert(header.name.to_ascii_lowercase()));
        assert!(http::HeaderName::from_bytes(format!("mcp-param-{}", header.name).as_bytes()).is_ok());
    }
    let Ok(values) = param_header_values(&found, arguments) else { return };
    assert!(values.len() <= 64);
    for (_, value) in values {
        assert!(value.len() <= 8 * 1024 && HeaderValue::from_str(&value).is_ok());
    }
}

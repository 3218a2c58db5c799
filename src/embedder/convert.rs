//! `tokenizer.json` to the compact form.
//!
//! Only what static models of the Unigram kind use is understood; anything else is refused by name, never guessed.

use serde::Deserialize;

use super::model::ModelError;
use super::trie;
use super::vocabulary::{INVISIBLE, Parts, SPACE, Step};

/// What an unknown character costs beside the least likely piece (the `tokenizers` crate's constant).
const UNKNOWN_PENALTY: f64 = 10.0;

#[derive(Deserialize)]
struct Tokenizer {
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
    model: Model,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Normalizer {
    Sequence {
        normalizers: Vec<Normalizer>,
    },
    Precompiled {
        precompiled_charsmap: Option<String>,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    Lowercase,
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
enum Pattern {
    Regex(String),
    String(String),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum PreTokenizer {
    Metaspace {
        replacement: char,
        #[serde(default = "always")]
        prepend_scheme: String,
        #[serde(default = "yes")]
        add_prefix_space: bool,
        #[serde(default = "yes")]
        split: bool,
    },
    #[serde(other)]
    Other,
}

fn always() -> String {
    "always".to_owned()
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Model {
    r#type: Option<String>,
    unk_id: Option<u32>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    vocab: serde_json::Value,
}

/// The compact form of a `tokenizer.json`.
///
/// # Errors
///
/// [`ModelError::Tokenizer`] when it is not JSON, or not a Unigram tokenizer of the kind that is supported.
///
/// # Cost
///
/// About a second and ten times the file's size in memory for 64,000 pieces: done once, not at every start.
pub fn convert_tokenizer(json: &[u8]) -> Result<Vec<u8>, ModelError> {
    let tokenizer: Tokenizer =
        serde_json::from_slice(json).map_err(|error| ModelError::Tokenizer(error.to_string()))?;
    let mut steps = Vec::new();
    let mut charsmap = Vec::new();
    if let Some(normalizer) = &tokenizer.normalizer {
        read_normalizer(normalizer, &mut steps, &mut charsmap)?;
    }
    check_pre_tokenizer(tokenizer.pre_tokenizer.as_ref())?;
    if tokenizer.model.r#type.as_deref() != Some("Unigram") || tokenizer.model.byte_fallback {
        return unsupported("a model that is not Unigram, or falls back to bytes");
    }
    let vocabulary: Vec<(String, f64)> = serde_json::from_value(tokenizer.model.vocab)
        .map_err(|error| ModelError::Tokenizer(error.to_string()))?;
    let Some(unknown) = tokenizer.model.unk_id.filter(|&id| (id as usize) < vocabulary.len()) else {
        return unsupported("a vocabulary without an unknown piece");
    };
    let lowest = vocabulary.iter().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
    let scores: Vec<f32> = vocabulary.iter().map(|(_, score)| *score as f32).collect();
    let trie = lay_out(&vocabulary)?;
    let parts = Parts {
        steps,
        charsmap: &charsmap,
        trie: &trie,
        scores: &scores,
        unknown,
        unknown_score: lowest - UNKNOWN_PENALTY,
    };
    Ok(parts.to_bytes())
}

fn unsupported<T>(what: &str) -> Result<T, ModelError> {
    Err(ModelError::Tokenizer(format!("{what} is not supported")))
}

fn read_normalizer(
    normalizer: &Normalizer,
    steps: &mut Vec<Step>,
    charsmap: &mut Vec<u8>,
) -> Result<(), ModelError> {
    match normalizer {
        Normalizer::Sequence { normalizers } => {
            return normalizers
                .iter()
                .try_for_each(|normalizer| read_normalizer(normalizer, steps, charsmap));
        }
        Normalizer::Precompiled { precompiled_charsmap } => {
            let Some(table) = precompiled_charsmap.as_deref().filter(|table| !table.is_empty()) else {
                return Ok(());
            };
            *charsmap = from_base64(table)
                .ok_or_else(|| ModelError::Tokenizer("its character table is not base64".to_owned()))?;
            steps.push(Step::Charsmap);
        }
        Normalizer::Replace { pattern: Pattern::Regex(regex), content }
            if regex == " {2,}" && content == " " =>
        {
            steps.push(Step::Spaces);
        }
        Normalizer::Replace { pattern: Pattern::Regex(regex), content }
            if regex == "\\s+" && content == " " =>
        {
            steps.push(Step::Whitespace);
        }
        Normalizer::Replace { pattern: Pattern::Regex(regex), content }
            if regex == INVISIBLE && content.is_empty() =>
        {
            steps.push(Step::Invisible);
        }
        Normalizer::Strip { strip_left: true, strip_right: true } => steps.push(Step::Strip),
        Normalizer::Replace { pattern: Pattern::String(from) | Pattern::Regex(from), content } => {
            return unsupported(&format!("replacing {from:?} by {content:?}"));
        }
        Normalizer::Lowercase => steps.push(Step::Lowercase),
        Normalizer::Nfkc => steps.push(Step::Nfkc),
        Normalizer::Strip { .. } | Normalizer::Other => return unsupported("one of its normalizers"),
    }
    Ok(())
}

fn check_pre_tokenizer(pre_tokenizer: Option<&PreTokenizer>) -> Result<(), ModelError> {
    match pre_tokenizer {
        Some(PreTokenizer::Metaspace {
            replacement,
            prepend_scheme,
            add_prefix_space: true,
            split: true,
        }) if *replacement == SPACE && prepend_scheme == "always" => Ok(()),
        _ => unsupported("a pre-tokenizer other than Metaspace"),
    }
}

/// A piece that is listed twice is its last self.
fn lay_out(vocabulary: &[(String, f64)]) -> Result<Vec<u32>, ModelError> {
    let mut strings: Vec<(&[u8], u32)> =
        (0..).zip(vocabulary).map(|(id, (piece, _))| (piece.as_bytes(), id)).collect();
    strings.retain(|(piece, _)| !piece.is_empty() && !piece.contains(&0));
    strings.sort_unstable();
    let last_of_each: Vec<_> = strings.chunk_by(|a, b| a.0 == b.0).map(|same| same[same.len() - 1]).collect();
    trie::build(&last_of_each).ok_or_else(|| ModelError::Tokenizer("it has too many pieces".to_owned()))
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut buffer, mut bits) = (0_u32, 0);
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        buffer = buffer << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits) as u8);
            buffer &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(from_base64("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(from_base64("").unwrap(), b"");
        assert!(from_base64("a b").is_none());
    }

    #[test]
    fn t_s5_what_is_not_understood_is_refused_by_name() {
        let error = convert_tokenizer(
            br#"{"normalizer":{"type":"Nmt"},"pre_tokenizer":null,"model":{"type":"Unigram"}}"#,
        );
        assert!(error.unwrap_err().to_string().contains("normalizers"));
        let error = convert_tokenizer(
            br#"{"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"BPE"}}"#,
        );
        assert!(error.unwrap_err().to_string().contains("Metaspace"));
    }
}

//! The words that names are made of.

/// Words that many names share and that say little by themselves.
const GENERIC_WORDS: [&str; 9] = ["id", "ids", "name", "names", "type", "value", "key", "mcp", "tool"];

/// The words of a name in lower case: split at separators and where a capital follows a small letter or a digit.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for character in name.chars() {
        let starts = character.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if (!character.is_alphanumeric() || starts) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Calls `found` with a hash (FNV-1a) of each word of [`words`] that is not generic, without making strings.
pub(super) fn each_word_hash(name: &str, mut found: impl FnMut(u64)) {
    let (mut hash, mut before) = (HASH_START, '_');
    let mut end_word = |hash: &mut u64| {
        if *hash != HASH_START && !GENERIC_HASHES.contains(hash) {
            found(*hash);
        }
        *hash = HASH_START;
    };
    if name.is_ascii() {
        // Nearly every tool's name, and there may be thousands.
        for byte in name.bytes() {
            let starts =
                byte.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
            if starts || !byte.is_ascii_alphanumeric() {
                end_word(&mut hash);
            }
            if byte.is_ascii_alphanumeric() {
                hash = hash_on(hash, &[byte.to_ascii_lowercase()]);
            }
            before = char::from(byte);
        }
        end_word(&mut hash);
        return;
    }
    for character in name.chars() {
        let starts = character.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if !character.is_alphanumeric() || starts {
            end_word(&mut hash);
        }
        if character.is_alphanumeric() {
            for lower in character.to_lowercase() {
                let mut buffer = [0; 4];
                hash = hash_on(hash, lower.encode_utf8(&mut buffer).as_bytes());
            }
        }
        before = character;
    }
    end_word(&mut hash);
}

const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

const GENERIC_HASHES: [u64; GENERIC_WORDS.len()] = {
    let mut hashes = [0; GENERIC_WORDS.len()];
    let mut word = 0;
    while word < hashes.len() {
        hashes[word] = hash_on(HASH_START, GENERIC_WORDS[word].as_bytes());
        word += 1;
    }
    hashes
};

/// FNV-1a, continued.
const fn hash_on(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Equal, or one shortens the other: `repo` and `repository`, `msg` and `message`, `q` and `query`.
pub(super) fn same_word(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if long.starts_with(short) {
        return short.len() >= 3 || short.len() == long.len() || short.chars().count() == 1;
    }
    let mut rest = long.chars();
    let skips = short.chars().count() >= 3 && short.chars().next() == long.chars().next();
    skips && short.chars().all(|wanted| rest.any(|character| character == wanted))
}

pub(super) fn weight(word: &str) -> f32 {
    if GENERIC_WORDS.contains(&word) { 0.3 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_their_hashes_agree() {
        assert_eq!(
            words("github__searchIssues-v2.HTML5Page"),
            ["github", "search", "issues", "v2", "html5", "page"]
        );
        let mut hashes = Vec::new();
        each_word_hash("github__searchIssues", |hash| hashes.push(hash));
        let expected: Vec<u64> =
            ["github", "search", "issues"].map(|word| hash_on(HASH_START, word.as_bytes())).into();
        assert_eq!(hashes, expected);
        hashes.clear();
        each_word_hash("Žodis_antrasŽodis", |hash| hashes.push(hash));
        assert_eq!(hashes, ["žodis", "antras", "žodis"].map(|word| hash_on(HASH_START, word.as_bytes())));
    }
}

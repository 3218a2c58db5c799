//! Catalogues of any size, from the tools of the project's own evaluation set.
//!
//! The first tools are that set as it is. Each further one is a relative of one of them under a service of its own: the
//! name has another verb or a suffix, sentences are left out or come from another tool, parameters come and go. So
//! lengths, schemas and vocabulary stay those of real definitions, no two are the same, and a larger catalogue has more
//! services rather than larger ones. The same number gives the same tools on every machine.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The questions of the evaluation set, in an order without runs of one topic.
///
/// # Errors
/// When the file can't be read.
pub fn queries() -> Result<Vec<String>, String> {
    let text = read("model/eval/queries.jsonl")?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut queries: Vec<String> = lines
        .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["query"].as_str()?.to_owned()))
        .collect();
    let mut random = Random(7);
    for i in (1..queries.len()).rev() {
        queries.swap(i, random.below(i + 1));
    }
    Ok(queries)
}

/// `count` tool definitions as JSON texts.
///
/// # Errors
/// When the evaluation set can't be read.
pub fn tools(count: usize) -> Result<Vec<Bytes>, String> {
    let text = read("model/eval/catalogue.json")?;
    let catalogue: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let originals = catalogue["tools"].as_array().filter(|tools| !tools.is_empty());
    let originals = originals.ok_or("the catalogue has no tools")?;
    let tools = (0..count).map(|i| {
        let tool = match i / originals.len() {
            0 => originals[i].clone(),
            generation => relative(originals, i % originals.len(), generation),
        };
        Bytes::from(tool.to_string())
    });
    Ok(tools.collect())
}

/// Part of a service's name, so that each has a word of its own.
const SYLLABLES: [&str; 24] = [
    "ba", "cor", "del", "fen", "gru", "hol", "jin", "kel", "lor", "mun", "nar", "pel", "qui", "ros", "sat",
    "tam", "ul", "vor", "wex", "yar", "zin", "bri", "clo", "dra",
];

const SUFFIXES: [&str; 8] = ["", "_by_id", "_v2", "_for_team", "_batch", "_details", "_history", "_async"];

fn relative(originals: &[Value], base: usize, generation: usize) -> Value {
    let mut random = Random((base as u64) << 32 | generation as u64);
    let tool = &originals[base];
    let other = &originals[random.below(originals.len())];
    let name = tool["name"].as_str().unwrap_or_default();
    let (service, bare) = name.split_once("__").unwrap_or(("tools", name));
    // All tools of a service move together.
    let seed = service
        .bytes()
        .fold(generation as u64, |seed, byte| seed.wrapping_mul(131).wrapping_add(byte.into()));
    let mut syllables = Random(seed);
    let service = made_up(&mut syllables, 3);
    let suffix = SUFFIXES[random.below(SUFFIXES.len())];
    let mut made = Map::new();
    made.insert("name".to_owned(), json!(format!("{service}__{bare}{suffix}")));
    let description = description(&mut random, originals, tool, other);
    if !description.is_empty() {
        made.insert("description".to_owned(), json!(description));
    }
    made.insert("inputSchema".to_owned(), schema(&mut random, &tool["inputSchema"], &other["inputSchema"]));
    if let Some(annotations) = tool.get("annotations") {
        made.insert("annotations".to_owned(), annotations.clone());
    }
    Value::Object(made)
}

/// From nothing at all to a page of text; mostly a sentence or three.
fn description(random: &mut Random, originals: &[Value], tool: &Value, other: &Value) -> String {
    let sentences = |tool: &Value| -> Vec<String> {
        let text = tool["description"].as_str().unwrap_or_default();
        text.split_inclusive(". ").map(|sentence| sentence.trim().to_owned()).collect()
    };
    let mut kept = sentences(tool);
    match random.below(20) {
        0 => kept.clear(),
        1..=4 => kept.truncate(1),
        5..=10 => kept.extend(sentences(other).pop()),
        11 => {
            for _ in 0..12 {
                kept.extend(sentences(&originals[random.below(originals.len())]));
            }
        }
        _ => {}
    }
    let text = kept.join(" ");
    let words = text.split(' ').map(|word| match random.below(30) {
        // What services call their own things; without it a larger catalogue would have no more words.
        0 if word.len() > 4 => made_up(random, 3),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn made_up(random: &mut Random, syllables: usize) -> String {
    (0..syllables).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect()
}

fn schema(random: &mut Random, own: &Value, other: &Value) -> Value {
    let mut schema = own.clone();
    let required: Vec<&str> =
        own["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| required.contains(&name.as_str()) || random.below(4) > 0);
        for (name, property) in other["properties"].as_object().into_iter().flatten() {
            if random.below(3) == 0 {
                properties.entry(name.clone()).or_insert_with(|| property.clone());
            }
        }
    }
    schema
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `bound`, not included.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Which `take` of `pool` tools a listing has: a start and a stride that differ with its number. Ascending, so that a
/// listing looks like a filter over the upstream's order.
pub fn subset(listing: usize, take: usize, pool: usize) -> Vec<usize> {
    let mut random = Random(listing as u64 ^ 0x5eed);
    let mut all: Vec<usize> = (0..pool).collect();
    for i in 0..take.min(pool) {
        all.swap(i, i + random.below(pool - i));
    }
    all.truncate(take);
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tools_are_distinct_the_same_each_time_and_of_many_lengths() {
        let tools = tools(5000).unwrap();
        let names: HashSet<String> = tools
            .iter()
            .map(|tool| serde_json::from_slice::<Value>(tool).unwrap()["name"].as_str().unwrap().to_owned())
            .collect();
        assert!(names.len() > 4900, "{}", names.len());
        assert_eq!(tools.iter().collect::<HashSet<_>>().len(), tools.len());
        assert_eq!(tools[4999], super::tools(5000).unwrap()[4999]);
        let mut lengths: Vec<usize> = tools.iter().map(Bytes::len).collect();
        lengths.sort_unstable();
        assert!(lengths[0] < 200 && lengths[2500] > 300 && lengths[4999] > 2500, "{lengths:?}");
    }

    #[test]
    fn listings_differ_and_have_each_tool_once() {
        let (one, other) = (subset(1, 100, 500), subset(2, 100, 500));
        assert_ne!(one, other);
        assert_eq!(one.iter().collect::<HashSet<_>>().len(), 100);
        assert_eq!(subset(1, 100, 500), one);
    }
}

//! Turns a surveyed schema into one that the validator takes and that never refuses more than the original.
//!
//! A regular expression that the linear engine does not know, or that would be too big, is taken out. Leaving a rule
//! out makes most schemas more lenient, but not `not`, `if` and `oneOf`, where it can make them stricter: those are
//! loosened too when such an expression, or a reference that might lead to one, stands below them.

use std::collections::HashSet;

use jsonschema::{Draft, PatternCache, PatternOptions, ValidationOptions};
use serde_json::{Map, Value, json};

use super::budget;
use super::keywords::{self, Holds};
use super::survey::Pattern;

/// Bytes of a compiled expression. A larger one is slow to build and, on texts its automaton is too big for, to run.
const PATTERN_PROGRAM_BYTES_MAX: usize = 128 * 1024;
const PATTERN_DFA_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of an expression as written.
const PATTERN_TEXT_BYTES_MAX: usize = 2_000;
/// Expressions that are compiled for one schema.
const PATTERNS_MAX: usize = 32;

/// The options every validator here is built with: nothing is fetched, expressions run in linear time, and formats and
/// encodings describe without refusing, in all drafts alike.
pub(super) fn options(draft: Draft, cache: &PatternCache) -> ValidationOptions<'static> {
    let patterns =
        PatternOptions::regex().size_limit(PATTERN_PROGRAM_BYTES_MAX).dfa_size_limit(PATTERN_DFA_BYTES_MAX);
    let options = jsonschema::options()
        .with_draft(draft)
        .with_retriever(NoRetriever)
        .with_pattern_options(patterns)
        .with_pattern_cache(cache.clone())
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64");
    budget::with_steps(options)
}

/// Refuses to fetch anything.
struct NoRetriever;

impl jsonschema::Retrieve for NoRetriever {
    fn retrieve(
        &self,
        _: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("references outside the schema are not followed".into())
    }
}

/// The expressions that are left out.
pub(super) fn unsupported(patterns: &[Pattern], options: &ValidationOptions<'_>) -> HashSet<Pattern> {
    let distinct: HashSet<&Pattern> = patterns.iter().collect();
    let mut ordered: Vec<&Pattern> = distinct.into_iter().collect();
    // Which ones fall over the limit must not depend on chance.
    ordered.sort_by_key(|pattern| (&pattern.text, pattern.names_properties));
    let compiles = |pattern: &Pattern| {
        let schema = if pattern.names_properties {
            json!({"patternProperties": {&pattern.text: true}})
        } else {
            json!({"pattern": pattern.text})
        };
        pattern.text.len() <= PATTERN_TEXT_BYTES_MAX && options.build(&schema).is_ok()
    };
    let kept = |(position, pattern): &(usize, &Pattern)| *position < PATTERNS_MAX && compiles(pattern);
    ordered.into_iter().enumerate().filter(|entry| !kept(entry)).map(|(_, pattern)| pattern.clone()).collect()
}

/// Takes out what is unsupported and plants the step counters.
pub(super) fn prepare(schema: &mut Value, unsupported: &HashSet<Pattern>) {
    let work = Work { unsupported, names_lost: unsupported.iter().any(|pattern| pattern.names_properties) };
    work.visit(schema);
}

struct Work<'a> {
    unsupported: &'a HashSet<Pattern>,
    names_lost: bool,
}

impl Work<'_> {
    /// Prepares one schema; true if a rule was taken out in it or might be where it refers to. The recursion is at most
    /// as deep as the survey lets schemas nest.
    fn visit(&self, schema: &mut Value) -> bool {
        let Value::Object(keywords) = schema else { return false };
        // The dialect is settled for the whole, and no schema inside is a resource of its own.
        keywords.remove("$schema");
        let mut loosened = HashSet::new();
        for (keyword, value) in keywords.iter_mut() {
            if self.visit_children(keyword, value) {
                loosened.insert(keyword.clone());
            }
        }
        let lost = self.take_out_patterns(keywords);
        self.loosen(keywords, &loosened);
        budget::plant(keywords);
        let refers = || keywords::REFERENCES.iter().any(|&keyword| keywords.contains_key(keyword));
        lost || !loosened.is_empty() || (!self.unsupported.is_empty() && refers())
    }

    fn visit_children(&self, keyword: &str, value: &mut Value) -> bool {
        match (keywords::place(keyword).0, value) {
            (Holds::Values, _) => false,
            (Holds::Map, Value::Object(by_name)) => {
                by_name.values_mut().fold(false, |lost, schema| self.visit(schema) | lost)
            }
            (Holds::SchemaOrList, Value::Array(schemas)) => {
                schemas.iter_mut().fold(false, |lost, schema| self.visit(schema) | lost)
            }
            (Holds::Schema | Holds::SchemaOrList, schema) => self.visit(schema),
            (Holds::Map, _) => false,
        }
    }

    fn take_out_patterns(&self, keywords: &mut Map<String, Value>) -> bool {
        if self.unsupported.is_empty() {
            return false;
        }
        let is_lost = |text: &str, names_properties: bool| {
            self.unsupported.contains(&Pattern { text: text.to_owned(), names_properties })
        };
        let mut lost = false;
        if keywords.get("pattern").and_then(Value::as_str).is_some_and(|text| is_lost(text, false)) {
            keywords.remove("pattern");
            lost = true;
        }
        if let Some(Value::Object(by_pattern)) = keywords.get_mut("patternProperties") {
            let before = by_pattern.len();
            by_pattern.retain(|text, _| !is_lost(text, true));
            if by_pattern.len() < before {
                // The properties it named would now count as additional ones.
                keywords.remove("additionalProperties");
                lost = true;
            }
        }
        if self.names_lost {
            keywords.remove("unevaluatedProperties");
        }
        lost
    }

    fn loosen(&self, keywords: &mut Map<String, Value>, loosened: &HashSet<String>) {
        if self.unsupported.is_empty() {
            return;
        }
        if loosened.contains("not") {
            keywords.remove("not");
        }
        if loosened.contains("if") {
            for keyword in ["if", "then", "else"] {
                keywords.remove(keyword);
            }
        }
        if loosened.contains("contains") {
            keywords.remove("maxContains");
        }
        if loosened.contains("oneOf")
            && let Some(branches) = keywords.remove("oneOf")
            && !keywords.contains_key("anyOf")
        {
            keywords.insert("anyOf".to_owned(), branches);
        }
    }
}

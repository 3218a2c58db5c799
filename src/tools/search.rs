//! `search_tools`: finds tools by what they do.
//!
//! The answer says nothing twice: a tool that several queries find is described once.

use super::refusal::Refusal;
use super::request::{Members, cut};
use super::schema_summary;
use super::text::{ObjectText, shortened, shown, visible};
use super::{Stop, ToolOptions, ToolReply, Toolbox};
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::search::{Hit, Ranker};
use crate::telemetry::search_span;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

/// Hits of a query that does not say how many.
const LIMIT_DEFAULT: usize = 8;
/// Most hits of one query.
const LIMIT_MAX: usize = 25;
/// Most queries of one search.
const QUERIES_MAX: usize = 5;
/// A longer description is cut behind a sentence; in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;

const EXPECTED: &str = r#"{"query": "what the tool should do"}, or {"queries": ["…", "…"]} with up to 5 queries, and an optional whole number "limit" up to 25"#;
const NO_HIT: &str = "No tool fits. Try other words for what the tool should do, or a broader query.";
const NO_TOOLS: &str = "The server behind this one lists no tools for this caller.";

/// Most bytes of a query that are searched for.
const QUERY_BYTES_MAX: usize = 2 * 1024;
/// Tools times queries from which a search takes some 300 microseconds or more. Below, handing it to another thread and back
/// would be a good part of its cost.
const HEAVY: usize = 10_000;

const CUT: &str = "Only the first 2 KiB of the query were searched for. Say shortly what the tool should do.";

/// A query, and whether its end was left out.
struct Query {
    text: String,
    is_cut: bool,
}

/// What to search for.
struct Search {
    queries: Vec<Query>,
    /// Whether they came as a list, so that the answer is one.
    is_list: bool,
    limit: usize,
}

impl Toolbox {
    pub(super) async fn search(
        &self,
        caller: &Caller,
        arguments: Option<&RawValue>,
    ) -> Result<ToolReply, Stop> {
        let search = Search::read(arguments)?;
        let catalog = self.catalog(caller).await?;
        let (ranker, options) = (Arc::clone(&self.ranker), self.options);
        let is_heavy = catalog.tools().len() * search.queries.len() >= HEAVY;
        let (started, queries) = (Instant::now(), search.queries.len());
        let work = move || search.run(&ranker, options, &catalog);
        let span = search_span(queries);
        let find = async { if is_heavy { self.heavy.run(work).await } else { Some(work()) } };
        let found = find.instrument(span.clone()).await;
        match found {
            Some((text, without_hits)) => {
                span.record("toolsearch.queries_without_hits", without_hits);
                self.metrics.count_search(queries, without_hits, started.elapsed());
                self.followed.searched(caller);
                Ok(ToolReply::Own { text, is_error: false })
            }
            None => Err(Refusal::new("This search failed. Search in other words.").into()),
        }
    }
}

impl Search {
    fn read(arguments: Option<&RawValue>) -> Result<Self, Refusal> {
        let members = Members::read(arguments, &["query", "queries", "limit"], EXPECTED)?;
        let limit = members.number("limit")?.map_or(LIMIT_DEFAULT, clamped_limit);
        let (several, one) = (members.texts("queries")?, members.texts("query")?);
        let is_list = several.is_some() || one.as_ref().is_some_and(|(_, is_list)| *is_list);
        let texts = several.into_iter().chain(one).flat_map(|(texts, _)| texts);
        let mut queries = Vec::new();
        for mut text in texts.filter(|text| !text.trim().is_empty()) {
            let is_cut = cut(&mut text, QUERY_BYTES_MAX);
            queries.push(Query { text, is_cut });
        }
        match queries.len() {
            0 => Err(Refusal::new(format!("There is no query. Send {EXPECTED}."))),
            1..=QUERIES_MAX => Ok(Self { queries, is_list, limit }),
            more => Err(Refusal::new(format!("{more} queries are too many. Send at most {QUERIES_MAX}."))),
        }
    }

    /// The answer's text, and how many queries found nothing.
    fn run(&self, ranker: &Ranker, options: ToolOptions, catalog: &Catalog) -> (String, usize) {
        let mut answer = Answer { ranker, options, catalog, shown: HashMap::new(), without_hits: 0 };
        let mut out = ObjectText::new();
        if self.is_list {
            let results = self.queries.iter().map(|query| {
                let mut result = ObjectText::new();
                result.text("query", &shown(&query.text));
                answer.add(&mut result, query, self.limit);
                result.finish()
            });
            out.list("results", results.collect::<Vec<_>>());
        } else {
            answer.add(&mut out, &self.queries[0], self.limit);
        }
        (out.finish(), answer.without_hits)
    }
}

/// Out-of-range limits have an obvious meaning, so they are not worth a refusal.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=25 before")]
fn clamped_limit(limit: f64) -> usize {
    if limit.is_nan() { LIMIT_DEFAULT } else { limit.clamp(1.0, LIMIT_MAX as f64) as usize }
}

/// A search answer under construction.
struct Answer<'a> {
    ranker: &'a Ranker,
    options: ToolOptions,
    catalog: &'a Catalog,
    /// Names that were described already, and whether with their schema.
    shown: HashMap<&'a str, bool>,
    without_hits: usize,
}

impl Answer<'_> {
    /// Adds one query's hits, or a hint when there are none.
    fn add(&mut self, out: &mut ObjectText, query: &Query, limit: usize) {
        let hits = self.ranker.rank(&query.text, self.catalog.index(), limit);
        let mut names = HashSet::new();
        let mut tools: Vec<String> = Vec::with_capacity(hits.len());
        for hit in &hits {
            // A name that is listed twice is one tool to call.
            if names.insert(self.catalog.tools()[hit.index].name()) {
                tools.push(self.hit(hit, tools.len() < self.options.search_schemas));
            }
        }
        out.list("tools", &tools);
        self.without_hits += usize::from(tools.is_empty());
        if self.catalog.tools().is_empty() {
            out.text("hint", NO_TOOLS);
        } else if tools.is_empty() {
            out.text("hint", NO_HIT);
        }
        if query.is_cut {
            out.text("note", CUT);
        }
    }

    fn hit(&mut self, hit: &Hit, with_schema: bool) -> String {
        let tool = &self.catalog.tools()[hit.index];
        let mut out = ObjectText::new();
        out.text("name", tool.name());
        let schema = tool.input_schema().filter(|_| with_schema);
        let shown = self.shown.get(tool.name()).copied();
        if shown.is_none() {
            if !tool.description().is_empty() {
                let description = shortened(tool.description(), DESCRIPTION_CHARS_MAX);
                let description = visible(&description);
                out.text("description", &description);
                if matches!(description, Cow::Owned(_)) {
                    out.flag("hiddenText", true);
                }
            }
            let is_read_only = self.catalog.named(tool.name()).is_some_and(|named| named.is_read_only());
            out.flag("readOnly", is_read_only);
        }
        if let Some(schema) = schema.filter(|_| shown != Some(true)) {
            let summary = schema_summary::compact(schema, self.options.search_schema_bytes);
            out.raw("inputSchema", summary.schema.get());
            if !summary.trimmed.is_empty() {
                out.texts("trimmed", &summary.trimmed);
            } else if !summary.whole {
                // Only words of descriptions are missing, so the call can be made as it is.
                out.flag("shortened", true);
            }
        }
        self.shown.insert(tool.name(), schema.is_some() || shown == Some(true));
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &str) -> Result<(Vec<String>, bool), String> {
        let raw: &RawValue = serde_json::from_str(arguments).unwrap();
        let search = Search::read(Some(raw)).map_err(|refusal| refusal.to_json())?;
        Ok((search.queries.into_iter().map(|query| query.text).collect(), search.is_list))
    }

    #[test]
    fn one_query_or_a_list_of_up_to_five_is_taken() {
        for (arguments, count, is_list) in [
            (r#"{"query":"a"}"#, 1, false),
            (r#"{"queries":["a","b","c","d","e"]}"#, 5, true),
            (r#"{"queries":"a"}"#, 1, true),
            (r#"{"query":"a","queries":["b"]}"#, 2, true),
            (r#"{"query":"a","queries":null,"limit":3}"#, 1, false),
            (r#"{"query":"a","limit":"3"}"#, 1, false),
            (r#"{"queries":"[\"a\",\"b\"]"}"#, 2, true),
            (r#"{"query":"[a"}"#, 1, false),
        ] {
            let (queries, list) = parsed(arguments).unwrap();
            assert_eq!((queries.len(), list), (count, is_list), "{arguments}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_search_is_said_with_the_right_form() {
        for arguments in [
            "{}",
            r#"{"query":"  "}"#,
            r#"{"queries":[]}"#,
            r#"{"query":7}"#,
            r#"{"q":"a"}"#,
            "[]",
            r#"{"queries":["a","b","c","d","e","f"]}"#,
            r#"{"query":"a","limit":"many"}"#,
        ] {
            let refusal = parsed(arguments).unwrap_err();
            assert!(refusal.contains("Send"), "{arguments}: {refusal}");
        }
    }

    #[test]
    fn t_d7_a_query_is_searched_for_up_to_2_kib() {
        for (length, is_cut) in [(QUERY_BYTES_MAX, false), (QUERY_BYTES_MAX + 1, true), (500_000, true)] {
            let raw = RawValue::from_string(format!(r#"{{"query":"{}"}}"#, "x".repeat(length))).unwrap();
            let search = Search::read(Some(&raw)).unwrap();
            assert_eq!((search.queries[0].is_cut, search.queries[0].text.len()), (is_cut, QUERY_BYTES_MAX));
        }
    }

    #[test]
    fn limits_are_held_at_their_bounds() {
        for (limit, expected) in
            [(0.0, 1), (-5.0, 1), (1.0, 1), (25.0, 25), (26.0, 25), (1e300, 25), (8.9, 8)]
        {
            assert_eq!(clamped_limit(limit), expected);
        }
    }
}

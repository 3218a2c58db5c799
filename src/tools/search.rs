//! `search_tools`: finds tools by what they do.
//!
//! The answer says nothing twice: a tool that several queries find is described once.

use super::answers::{Answers, Asked, Found};
use super::hit_texts::HitTexts;
use super::refusal::Refusal;
use super::request::{Members, cut};
use super::text::{ObjectText, escaped, shown};
use super::{Stop, ToolOptions, ToolReply, Toolbox};
use crate::caller::{Caller, TokenHash};
use crate::catalog::{Catalog, IndexedTool};
use crate::search::Ranker;
use crate::telemetry::search_span;
use serde_json::value::RawValue;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument;

/// Hits of a query that does not say how many.
const LIMIT_DEFAULT: usize = 8;
/// Most hits of one query.
const LIMIT_MAX: usize = 25;
/// Most queries of one search.
const QUERIES_MAX: usize = 5;
/// Room for a usual answer.
const ANSWER_BYTES: usize = 8 * 1024;

const READ_ONLY: &str = r#",\"readOnly\":true"#;
const NOT_READ_ONLY: &str = r#",\"readOnly\":false"#;

const EXPECTED: &str = r#"{"query": "what the tool should do"}, or {"queries": ["…", "…"]} with up to 5 queries, and an optional whole number "limit" up to 25"#;
const NO_HIT: &str = "No tool fits. Try other words for what the tool should do, or a broader query.";
const NO_TOOLS: &str = "The server behind this one lists no tools for this caller.";

/// Most bytes of a query that are searched for.
const QUERY_BYTES_MAX: usize = 2 * 1024;
/// Tools times queries from which a search takes some 300 microseconds or more. Below, handing it to another thread and back
/// would be a good part of its cost.
const HEAVY: usize = 10_000;

const CUT: &str = "Only the first 2 KiB of the query were searched for. Say shortly what the tool should do.";

const LIMITED: &str = "A limit is a whole number from 1 to 25.";

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
    /// Whether another limit was asked for.
    is_limited: bool,
}

/// What finds tools and words the answers.
pub(super) struct Finder {
    ranker: Arc<Ranker>,
    answers: Answers,
    texts: HitTexts,
    /// How many of a query's best hits come with their input schema.
    schemas: usize,
}

impl Finder {
    pub(super) fn new(ranker: Arc<Ranker>, options: ToolOptions) -> Self {
        let texts = HitTexts::new(options.search_schema_bytes);
        Self { ranker, answers: Answers::new(), texts, schemas: options.search_schemas }
    }
}

impl Toolbox {
    pub(super) async fn search(
        &self,
        caller: &Caller,
        arguments: Option<&RawValue>,
    ) -> Result<ToolReply, Stop> {
        let search = Search::read(arguments)?;
        let catalog = self.catalog(caller).await?;
        let (started, queries) = (Instant::now(), search.queries.len());
        let span = search_span(queries);
        let found = self.found(caller, search, catalog).instrument(span.clone()).await;
        match found {
            Some(Found { quoted, without_hits }) => {
                span.record("toolsearch.queries_without_hits", without_hits);
                self.metrics.count_search(queries, without_hits, started.elapsed());
                self.followed.searched(caller);
                Ok(ToolReply::Own { quoted, is_error: false })
            }
            None => Err(Refusal::new("This search failed. Search in other words.").into()),
        }
    }

    /// The answer, from memory where the caller has searched for the same before. `None` when the work broke.
    async fn found(&self, caller: &Caller, search: Search, catalog: Arc<Catalog>) -> Option<Found> {
        let asked = search.asked(caller.key(), &catalog);
        if let Some(found) = asked.as_ref().and_then(|asked| self.finder.answers.get(asked)) {
            return Some(found);
        }
        let is_heavy = catalog.tools().len() * search.queries.len() >= HEAVY;
        let finder = Arc::clone(&self.finder);
        let work = move || search.run(&finder, &catalog);
        let found = if is_heavy { self.heavy.run(work).await? } else { work() };
        if let Some(asked) = asked {
            self.finder.answers.put(asked, &found);
        }
        Some(found)
    }
}

impl Search {
    fn read(arguments: Option<&RawValue>) -> Result<Self, Refusal> {
        let members = Members::read(arguments, &["query", "queries", "limit"], EXPECTED)?;
        let asked = members.number("limit")?;
        let limit = asked.map_or(LIMIT_DEFAULT, clamped_limit);
        let is_limited = asked.is_some_and(|asked| !(1.0..=LIMIT_MAX as f64).contains(&asked));
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
            1..=QUERIES_MAX => Ok(Self { queries, is_list, limit, is_limited }),
            more => Err(Refusal::new(format!("{more} queries are too many. Send at most {QUERIES_MAX}."))),
        }
    }

    /// What is to be said about a query that was not searched for as it was asked. A list is told about its limit once.
    fn notes(&self, query: &Query) -> Vec<&'static str> {
        let notes = [(query.is_cut, CUT), (self.is_limited && !self.is_list, LIMITED)];
        notes.into_iter().filter_map(|(is_so, note)| is_so.then_some(note)).collect()
    }

    /// This search of this caller. `None` for a list of queries, since its answer repeats them, and no query is kept.
    fn asked(&self, caller: Option<TokenHash>, catalog: &Catalog) -> Option<Asked> {
        let query = self.queries.first().filter(|_| !self.is_list)?;
        Asked::new(caller, catalog.number(), self.limit, (&query.text, [query.is_cut, self.is_limited]))
    }

    /// Ranks each query and words the answer.
    fn run(&self, finder: &Finder, catalog: &Catalog) -> Found {
        let mut answer = Answer {
            finder,
            catalog,
            shown: Vec::new(),
            without_hits: 0,
            out: String::with_capacity(ANSWER_BYTES),
        };
        answer.out.push('"');
        if self.is_list {
            answer.out.push_str(r#"{\"results\":["#);
            for (i, query) in self.queries.iter().enumerate() {
                let mut result = ObjectText::new();
                result.text("query", &shown(&query.text));
                answer.out.push_str(if i > 0 { "," } else { "" });
                answer.out.push_str(&escaped(&result.unfinished()));
                answer.out.push(',');
                answer.add(query, self.limit, &self.notes(query));
            }
            answer.out.push(']');
            let mut rest = ObjectText::going_on();
            if self.is_limited {
                rest.text("note", LIMITED);
            }
            answer.out.push_str(&escaped(&rest.finish()));
        } else {
            answer.out.push('{');
            let query = &self.queries[0];
            answer.add(query, self.limit, &self.notes(query));
        }
        answer.out.push('"');
        Found { quoted: answer.out.into(), without_hits: answer.without_hits }
    }
}

/// Out-of-range limits have an obvious meaning, so they are worth a note and no refusal.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=25 before")]
fn clamped_limit(limit: f64) -> usize {
    if limit.is_nan() { LIMIT_DEFAULT } else { limit.clamp(1.0, LIMIT_MAX as f64) as usize }
}

/// A search answer under construction.
struct Answer<'a> {
    finder: &'a Finder,
    catalog: &'a Catalog,
    /// Names that were described already, and whether with their schema. There are some dozens at most.
    shown: Vec<(&'a str, bool)>,
    without_hits: usize,
    /// The inside of a JSON string: each piece is JSON that is escaped.
    out: String,
}

impl<'a> Answer<'a> {
    /// Adds one query's hits, or a hint when there are none, and ends its object.
    fn add(&mut self, query: &Query, limit: usize, notes: &[&str]) {
        let hits = self.finder.ranker.rank(&query.text, self.catalog.index(), limit);
        let catalog: &'a Catalog = self.catalog;
        let mut tools: Vec<&'a IndexedTool> = Vec::with_capacity(hits.len());
        for hit in &hits {
            let tool: &'a IndexedTool = &catalog.tools()[hit.index];
            // A name that is listed twice is one tool to call.
            if !tools.iter().any(|other| other.name() == tool.name()) {
                tools.push(tool);
            }
        }
        self.out.push_str(r#"\"tools\":["#);
        for (i, &tool) in tools.iter().enumerate() {
            self.out.push_str(if i > 0 { "," } else { "" });
            self.hit(tool, i < self.finder.schemas);
        }
        self.out.push(']');
        self.without_hits += usize::from(tools.is_empty());
        let mut rest = ObjectText::going_on();
        if catalog.tools().is_empty() {
            rest.text("hint", NO_TOOLS);
        } else if tools.is_empty() {
            rest.text("hint", NO_HIT);
        }
        if !notes.is_empty() {
            rest.text("note", &notes.join(" "));
        }
        self.out.push_str(&escaped(&rest.finish()));
    }

    /// Adds one hit.
    fn hit(&mut self, tool: &'a IndexedTool, with_schema: bool) {
        let texts = &self.finder.texts;
        let schema = with_schema.then(|| texts.schema(tool)).filter(|schema| !schema.is_empty());
        let named = self.catalog.named(tool.name());
        let shown = self.shown.iter_mut().find(|(name, _)| *name == tool.name());
        match &shown {
            Some(_) => {
                let mut name = ObjectText::new();
                name.text("name", tool.name());
                self.out.push_str(&escaped(&name.unfinished()));
            }
            None => {
                self.out.push_str(&texts.head(tool));
                let is_read_only = named.is_some_and(|named| named.is_read_only());
                self.out.push_str(if is_read_only { READ_ONLY } else { NOT_READ_ONLY });
            }
        }
        let was_shown = shown.as_ref().is_some_and(|(_, with_schema)| *with_schema);
        if let Some(schema) = schema.as_ref().filter(|_| !was_shown) {
            self.out.push_str(schema);
        }
        self.out.push('}');
        let with_schema = schema.is_some() || was_shown;
        match shown {
            Some((_, is_shown)) => *is_shown = with_schema,
            None => self.shown.push((tool.name(), with_schema)),
        }
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

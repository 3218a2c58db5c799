//! `search_tools`: finds tools by what they do.
//!
//! The answer says nothing twice: a tool that several queries find is described once.

use super::refusal::Refusal;
use super::request;
use super::schema_summary;
use super::text::{ObjectText, shortened};
use super::{Stop, ToolReply, Toolbox};
use crate::caller::Caller;
use crate::catalog::Catalog;
use crate::search::Hit;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments<'a> {
    #[serde(borrow, default)]
    query: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    queries: Option<Queries<'a>>,
    #[serde(default)]
    limit: Option<f64>,
}

/// Models send one query as a plain string now and then.
#[derive(Deserialize)]
#[serde(untagged)]
enum Queries<'a> {
    Many(#[serde(borrow)] Vec<Cow<'a, str>>),
    One(#[serde(borrow)] Cow<'a, str>),
}

impl Toolbox {
    pub(super) async fn search(
        &self,
        caller: &Caller,
        arguments: Option<&RawValue>,
    ) -> Result<ToolReply, Stop> {
        let arguments: SearchArguments<'_> = request::parse(arguments, EXPECTED)?;
        let limit = arguments.limit.map_or(LIMIT_DEFAULT, clamped_limit);
        let (queries, is_list) = queries(arguments)?;
        let catalog = self.catalog(caller).await?;
        let mut answer = Answer { toolbox: self, catalog: &catalog, shown: HashMap::new() };
        let mut out = ObjectText::new();
        if is_list {
            let results = queries.iter().map(|query| {
                let mut result = ObjectText::new();
                result.text("query", query);
                answer.add(&mut result, query, limit);
                result.finish()
            });
            out.list("results", results.collect::<Vec<_>>());
        } else {
            answer.add(&mut out, &queries[0], limit);
        }
        Ok(ToolReply::Own { text: out.finish(), is_error: false })
    }
}

/// Out-of-range limits have an obvious meaning, so they are not worth a refusal.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=25 before")]
fn clamped_limit(limit: f64) -> usize {
    if limit.is_nan() { LIMIT_DEFAULT } else { limit.clamp(1.0, LIMIT_MAX as f64) as usize }
}

/// The queries, none of them empty, and whether they came as a list.
fn queries(arguments: SearchArguments<'_>) -> Result<(Vec<Cow<'_, str>>, bool), Refusal> {
    let (mut queries, is_list) = match arguments.queries {
        Some(Queries::Many(queries)) => (queries, true),
        Some(Queries::One(query)) => (vec![query], true),
        None => (Vec::new(), false),
    };
    queries.extend(arguments.query);
    queries.retain(|query| !query.trim().is_empty());
    match queries.len() {
        0 => Err(Refusal::new(format!("There is no query. Send {EXPECTED}."))),
        1..=QUERIES_MAX => Ok((queries, is_list)),
        more => Err(Refusal::new(format!("{more} queries are too many. Send at most {QUERIES_MAX}."))),
    }
}

/// A search answer under construction.
struct Answer<'a> {
    toolbox: &'a Toolbox,
    catalog: &'a Catalog,
    /// Names that were described already, and whether with their schema.
    shown: HashMap<&'a str, bool>,
}

impl Answer<'_> {
    /// Adds one query's hits, or a hint when there are none.
    fn add(&mut self, out: &mut ObjectText, query: &str, limit: usize) {
        let hits = self.toolbox.ranker.rank(query, self.catalog.index(), limit);
        let mut names = HashSet::new();
        let mut tools: Vec<String> = Vec::with_capacity(hits.len());
        for hit in &hits {
            // A name that is listed twice is one tool to call.
            if names.insert(self.catalog.tools()[hit.index].name()) {
                tools.push(self.hit(hit, tools.len() < self.toolbox.options.search_schemas));
            }
        }
        out.list("tools", &tools);
        if self.catalog.tools().is_empty() {
            out.text("hint", NO_TOOLS);
        } else if tools.is_empty() {
            out.text("hint", NO_HIT);
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
                out.text("description", &shortened(tool.description(), DESCRIPTION_CHARS_MAX));
            }
            let is_read_only = self.catalog.named(tool.name()).is_some_and(|named| named.is_read_only());
            out.flag("readOnly", is_read_only);
        }
        if let Some(schema) = schema.filter(|_| shown != Some(true)) {
            let summary = schema_summary::compact(schema, self.toolbox.options.search_schema_bytes);
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
        let arguments: SearchArguments<'_> =
            request::parse(Some(raw), EXPECTED).map_err(|refusal| refusal.to_json())?;
        let (queries, is_list) = queries(arguments).map_err(|refusal| refusal.to_json())?;
        Ok((queries.into_iter().map(Cow::into_owned).collect(), is_list))
    }

    #[test]
    fn one_query_or_a_list_of_up_to_five_is_taken() {
        for (arguments, count, is_list) in [
            (r#"{"query":"a"}"#, 1, false),
            (r#"{"queries":["a","b","c","d","e"]}"#, 5, true),
            (r#"{"queries":"a"}"#, 1, true),
            (r#"{"query":"a","queries":["b"]}"#, 2, true),
            (r#"{"query":"a","queries":null,"limit":3}"#, 1, false),
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
    fn limits_are_held_at_their_bounds() {
        for (limit, expected) in
            [(0.0, 1), (-5.0, 1), (1.0, 1), (25.0, 25), (26.0, 25), (1e300, 25), (8.9, 8)]
        {
            assert_eq!(clamped_limit(limit), expected);
        }
    }
}

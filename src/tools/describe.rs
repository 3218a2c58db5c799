//! `describe_tool`: whole definitions, as the upstream gave them.

use super::arguments::ArgumentSchema;
use super::call::REST_AFTER_UNKNOWN;
use super::refusal::Refusal;
use super::request::Members;
use super::text::{ObjectText, shown};
use super::{Stop, ToolReply, Toolbox, suggest};
use crate::caller::Caller;
use crate::catalog::{Catalog, IndexedTool};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Most names of one call.
const NAMES_MAX: usize = 10;
/// Most suggestions for a name that is not there.
pub(super) const NEAREST_MAX: usize = 3;

const EXPECTED: &str = r#"{"names": ["…"]} with up to 10 exact names of tools"#;

impl Toolbox {
    pub(super) async fn describe(
        &self,
        caller: &Caller,
        arguments: Option<&RawValue>,
    ) -> Result<ToolReply, Stop> {
        // Models send a single name under either word.
        let members = Members::read(arguments, &["names", "name"], EXPECTED)?;
        let both = [members.texts("names")?, members.texts("name")?];
        let mut names: Vec<String> = both.into_iter().flatten().flat_map(|(names, _)| names).collect();
        if names.is_empty() || names.len() > NAMES_MAX {
            return Err(Refusal::new(format!("Send {EXPECTED}.")).into());
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        let catalog = self.catalog(caller).await?;
        let mut definitions: Vec<&str> = Vec::new();
        let (mut unknown, mut unchecked) = (Vec::new(), Vec::new());
        for name in &names {
            let Some(named) = catalog.named(name) else {
                self.catalogs.refresh(caller, REST_AFTER_UNKNOWN);
                unknown.push(unknown_name(&catalog, name));
                continue;
            };
            for tool in named.tools() {
                definitions.push(tool.definition());
                let schema = self.schema_of(tool).await;
                if let Some(reason) = schema.and_then(|schema| unchecked_reason(&schema)) {
                    let mut note = ObjectText::new();
                    note.text("name", name);
                    note.text("reason", &reason);
                    unchecked.push(note.finish());
                }
            }
        }
        let mut out = ObjectText::new();
        out.list("tools", &definitions);
        if !unknown.is_empty() {
            out.list("unknown", &unknown);
        }
        if !unchecked.is_empty() {
            out.list("argumentsNotCheckedHere", &unchecked);
        }
        Ok(ToolReply::own(&out.finish(), definitions.is_empty()))
    }

    /// The tool's compiled schema; `None` when compiling panicked.
    async fn schema_of(&self, tool: &Arc<IndexedTool>) -> Option<Arc<ArgumentSchema>> {
        if !self.compiles_much(tool) {
            return Some(self.schemas.of(tool));
        }
        let (schemas, tool) = (Arc::clone(&self.schemas), Arc::clone(tool));
        self.heavy.run(move || schemas.of(&tool)).await
    }
}

/// What of a tool's arguments is not checked before a call.
fn unchecked_reason(schema: &ArgumentSchema) -> Option<String> {
    match (schema.unchecked(), schema.skipped_patterns()) {
        (Some(reason), _) => Some(reason.to_string()),
        (None, 0) => None,
        (None, count) => Some(format!("{count} of its patterns can't be checked in bounded time")),
    }
}

fn unknown_name(catalog: &Catalog, name: &str) -> String {
    let nearest = suggest::nearest(name, catalog.names(), NEAREST_MAX);
    let mut out = ObjectText::new();
    out.text("name", &shown(name));
    out.texts("nearest", &nearest);
    out.finish()
}

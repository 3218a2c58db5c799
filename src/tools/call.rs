//! `call_read_tool` and `call_write_tool`: one call, gated, executed at most once, its result unchanged.

use super::arguments::{Checked, Violation};
use super::describe::NEAREST_MAX;
use super::refusal::Refusal;
use super::request::CallArguments;
use super::schemas::ArgumentSchemas;
use super::text::{shown, told};
use super::{Stop, ToolKind, ToolReply, ToolRequest, Toolbox, for_the_client, suggest};
use crate::caller::Caller;
use crate::catalog::{Catalog, IndexedTool, Named};
use crate::mcp::from_object;
use crate::telemetry::{CheckedFor, RefusalReason};
use crate::upstream::{ToolCall, UpstreamError};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const EXPECTED: &str = r#"{"name": "exact name of the tool", "arguments": {…}}"#;

/// After a listing, what the upstream finds invalid starts no other for so long.
const REST_AFTER_INVALID: Duration = Duration::from_secs(5);
/// The same for a name that the listing lacks: it may be of a new tool, but is more often a slip of the model.
pub(super) const REST_AFTER_UNKNOWN: Duration = Duration::from_secs(60);

/// A call that passed all gates.
pub(super) struct Gated<'a> {
    pub(super) tool: &'a IndexedTool,
    pub(super) arguments: Box<RawValue>,
    checked: CheckedFor,
}

/// Arguments over this many bytes are checked off the async threads.
const ARGUMENTS_HEAVY: usize = 16 * 1024;
/// Schemas over this many bytes are compiled off the async threads.
const SCHEMA_HEAVY: usize = 8 * 1024;

impl Toolbox {
    pub(super) async fn call_one(
        &self,
        caller: &Caller,
        request: &ToolRequest<'_>,
    ) -> Result<ToolReply, Stop> {
        let call = CallArguments::read(request.arguments, EXPECTED)?;
        let catalog = self.catalog(caller).await?;
        let is_read = request.tool == ToolKind::Read;
        let gated = self.gate(caller, &catalog, &call, is_read).await?;
        match self.send(caller, request, &gated).await {
            Ok(result) => Ok(ToolReply::Upstream(result)),
            Err(error) => Err(match for_the_client(&error, request.is_later_round()) {
                Some(failure) => Stop::Failed(failure),
                None => Stop::Upstream(explain(&error, gated.tool, is_read)),
            }),
        }
    }

    /// The three gates: known to this caller, read-only where it must be, arguments that fit.
    pub(super) async fn gate<'a>(
        &self,
        caller: &Caller,
        catalog: &'a Catalog,
        call: &CallArguments,
        must_be_read_only: bool,
    ) -> Result<Gated<'a>, Refusal> {
        let named = catalog.named(&call.name).ok_or_else(|| {
            self.catalogs.refresh(caller, REST_AFTER_UNKNOWN);
            unknown_tool(catalog, &call.name)
        })?;
        if must_be_read_only && !named.is_read_only() {
            return Err(Refusal::new(format!(
                "'{}' is not marked read-only. Call it with call_write_tool.",
                shown(named.first().name())
            ))
            .because(RefusalReason::NotReadOnly));
        }
        let arguments = call.object().map_err(|refusal| refusal.with_schema(named.first().input_schema()))?;
        let (arguments, checked) = self.check_arguments(named, arguments).await?;
        if self.followed.called(caller) {
            self.metrics.count_search_followed();
        }
        Ok(Gated { tool: named.first(), arguments, checked })
    }

    /// Arguments must fit one of the definitions that share the name; usually there is one.
    async fn check_arguments(
        &self,
        named: Named<'_>,
        mut arguments: Box<RawValue>,
    ) -> Result<(Box<RawValue>, CheckedFor), Refusal> {
        let mut first_problems: Option<Vec<Violation>> = None;
        for tool in named.tools() {
            let outcome = if arguments.get().len() > ARGUMENTS_HEAVY || self.compiles_much(tool) {
                let (schemas, tool) = (Arc::clone(&self.schemas), Arc::clone(tool));
                let work = move || {
                    let outcome = check(&schemas, &tool, &arguments);
                    (arguments, outcome)
                };
                let done = self.heavy.run(work).await;
                let (given_back, outcome) =
                    done.ok_or_else(|| Refusal::new("The arguments can't be checked. Nothing was called."))?;
                arguments = given_back;
                outcome
            } else {
                check(&self.schemas, tool, &arguments)
            };
            match outcome {
                Ok(checked) => return Ok((arguments, checked)),
                Err(problems) => first_problems.get_or_insert(problems),
            };
        }
        let tool = named.first();
        Err(Refusal::new(format!(
            "The arguments do not fit the input schema of '{}'. Nothing was called.",
            shown(tool.name())
        ))
        .because(RefusalReason::Arguments)
        .with_problems(first_problems.unwrap_or_default())
        .with_schema(tool.input_schema()))
    }

    /// Whether the tool's schema is one to be compiled off the async threads, and was not yet.
    pub(super) fn compiles_much(&self, tool: &IndexedTool) -> bool {
        tool.input_schema().is_some_and(|schema| schema.get().len() > SCHEMA_HEAVY)
            && self.schemas.known(tool.digest()).is_none()
    }

    /// Sends a gated call, and draws the consequences of its failure for the cache.
    pub(super) async fn send(
        &self,
        caller: &Caller,
        request: &ToolRequest<'_>,
        gated: &Gated<'_>,
    ) -> Result<Bytes, UpstreamError> {
        let call = ToolCall {
            name: gated.tool.name(),
            arguments: &gated.arguments,
            param_headers: gated.tool.param_headers(),
            client_capabilities: request.client_capabilities,
            trace: request.trace,
            // A batch has one answer for all its calls, so none of them can tell of itself.
            listening: request.listening.filter(|_| request.tool != ToolKind::ReadBatch),
            input_responses: request.input_responses,
            request_state: request.request_state,
        };
        self.metrics.count_call(gated.checked);
        let result = self.upstream.call_tool(caller, call).await;
        match &result {
            Err(UpstreamError::Unauthorized(_)) => self.catalogs.evict(caller),
            // The listing may be out of date: the tool is gone, or its schema has changed.
            Err(UpstreamError::Rpc(failure))
                if failure.is_invalid_params() || failure.is_header_mismatch() =>
            {
                self.catalogs.refresh(caller, REST_AFTER_INVALID);
            }
            _ => {}
        }
        result
    }
}

/// Checks arguments once, and where they do not fit, whether they do without what is not given.
fn check(
    schemas: &ArgumentSchemas,
    tool: &IndexedTool,
    arguments: &RawValue,
) -> Result<CheckedFor, Vec<Violation>> {
    let schema = schemas.of(tool);
    let problems = match schema.check(arguments) {
        Ok(Checked::Whole) => return Ok(CheckedFor::Whole),
        Ok(Checked::WithoutSomePatterns) => return Ok(CheckedFor::SomePatternsSkipped),
        Ok(Checked::Not(_)) => return Ok(CheckedFor::Unchecked),
        Err(problems) => problems,
    };
    let fits = without_optional_nulls(arguments, tool).is_some_and(|given| schema.fits(&given));
    if fits { Ok(CheckedFor::Whole) } else { Err(problems) }
}

/// The arguments less those that are `null` and not required: models say "not given" so, and header parameters may be
/// null by the protocol. `None` when there are none. Only the check reads this; what is sent stays as it is.
fn without_optional_nulls(arguments: &RawValue, tool: &IndexedTool) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Schema<'a> {
        #[serde(borrow, default)]
        required: Vec<Cow<'a, str>>,
    }
    if !arguments.get().contains("null") {
        return None;
    }
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(arguments.get()).ok()?;
    let schema: Schema<'_> = from_object(tool.input_schema()?.get().as_bytes()).ok()?;
    let before = members.len();
    members.retain(|name, value| {
        value.get() != "null" || schema.required.iter().any(|required| required == name)
    });
    (members.len() < before).then(|| serde_json::value::to_raw_value(&members).ok()).flatten()
}

fn unknown_tool(catalog: &Catalog, name: &str) -> Refusal {
    if let Some(meant) = suggest::typo_of(name, catalog.names()) {
        return Refusal::new(format!(
            "There is no tool of that name. Did you mean '{}'? Nothing was called.",
            shown(meant)
        ))
        .because(RefusalReason::MisspeltTool)
        .with_nearest(vec![meant.to_owned()]);
    }
    let nearest = suggest::nearest(name, catalog.names(), NEAREST_MAX);
    Refusal::new(
        "There is no tool of that name. Use search_tools to find the exact name. Nothing was called.",
    )
    .because(RefusalReason::UnknownTool)
    .with_nearest(nearest.into_iter().map(str::to_owned).collect())
}

/// An upstream failure in words for the model: what happened, whether anything was done, what to do.
pub(super) fn explain(error: &UpstreamError, tool: &IndexedTool, is_read: bool) -> Refusal {
    if let UpstreamError::Rpc(failure) = error
        && failure.is_invalid_params()
    {
        return Refusal::new(format!("The upstream refused the call: {}", told(&failure.message)))
            .with_schema(tool.input_schema());
    }
    let what = match error {
        UpstreamError::Rpc(failure) => {
            format!("The upstream answered with an error: {}", told(&failure.message))
        }
        error => {
            let mut text = error.to_string();
            text.replace_range(..1, &text[..1].to_uppercase());
            text
        }
    };
    let then = match (is_read, error.was_not_executed(), matches!(error, UpstreamError::TooLarge(_))) {
        (true, _, true) => "Ask for less, for instance with a filter or a smaller page.",
        (_, true, _) if matches!(error, UpstreamError::SessionLost) => {
            "Nothing was executed. Call it again: a new session will be opened."
        }
        (_, true, _) if matches!(error, UpstreamError::Header(_)) => {
            "Nothing was executed. Send other arguments."
        }
        (_, true, _) => "Nothing was executed. Try again later.",
        (true, ..) => "Try again later.",
        (false, ..) => "It is not known whether the call was executed: check before you repeat it.",
    };
    let stop = if what.ends_with(['.', '!', '?']) { "" } else { "." };
    Refusal::new(format!("{what}{stop} {then}"))
}

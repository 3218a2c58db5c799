//! `call_read_tools`: several read-only calls at once.
//!
//! **All gates are passed on one listing before anything is sent**, each call's own; one that is refused or fails
//! leaves the others alone.

use super::call::{Gated, explain};
use super::refusal::Refusal;
use super::request::{self, CallArguments};
use super::text::ObjectText;
use super::{Stop, ToolFailure, ToolReply, ToolRequest, Toolbox};
use crate::caller::Caller;
use crate::mcp::{Object, ResultType};
use crate::upstream::{Challenge, UpstreamError};
use bytes::Bytes;
use futures_util::future::join_all;
use serde::Deserialize;

const EXPECTED: &str = r#"{"calls": [{"name": "…", "arguments": {…}}, …]}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchArguments<'a> {
    #[serde(borrow)]
    calls: Vec<Object<CallArguments<'a>>>,
}

/// How one call of a batch ended.
enum Item {
    Result(Bytes),
    Error(Refusal),
    Unauthorized(Challenge),
}

impl Toolbox {
    pub(super) async fn call_many(
        &self,
        caller: &Caller,
        request: &ToolRequest<'_>,
    ) -> Result<ToolReply, Stop> {
        let BatchArguments { calls } = request::parse(request.arguments, EXPECTED)?;
        let calls: Vec<CallArguments<'_>> = calls.into_iter().map(|call| call.0).collect();
        let calls_max = self.options.batch_calls_max;
        if calls.is_empty() || calls.len() > calls_max {
            return Err(Refusal::new(format!("Send {EXPECTED} with 1 to {calls_max} calls.")).into());
        }
        let catalog = self.catalog(caller).await?;
        let gated: Vec<Result<Gated<'_>, Refusal>> =
            calls.iter().map(|call| self.gate(&catalog, call, true)).collect();
        let items = join_all(gated.into_iter().map(async |gated| match gated {
            Ok(gated) => self.item(caller, request, &gated).await,
            Err(refusal) => Item::Error(refusal),
        }))
        .await;
        answer(&calls, items)
    }

    async fn item(&self, caller: &Caller, request: &ToolRequest<'_>, gated: &Gated<'_>) -> Item {
        match self.send(caller, request, gated).await {
            Ok(result) if ResultType::of(&result) == ResultType::InputRequired => Item::Error(Refusal::new(
                "The tool asks for input, which a batch can't give. Call it alone with call_read_tool.",
            )),
            Ok(result) => Item::Result(result),
            Err(UpstreamError::Unauthorized(challenge)) => Item::Unauthorized(challenge),
            Err(error) => Item::Error(explain(&error, gated.tool, true)),
        }
    }
}

/// One text block with a result or an error for each call, in their order. Credentials that are no good (401) end the
/// whole batch, since the caller has to log in; a refusal of some calls (403) is theirs alone.
fn answer(calls: &[CallArguments<'_>], items: Vec<Item>) -> Result<ToolReply, Stop> {
    let all_refused = items.iter().all(|item| matches!(item, Item::Unauthorized(_)));
    let is_error = !items.iter().any(|item| matches!(item, Item::Result(_)));
    let mut results = Vec::with_capacity(items.len());
    for (call, item) in calls.iter().zip(items) {
        let mut out = ObjectText::new();
        out.text("name", &call.name);
        match item {
            Item::Result(result) => {
                let result =
                    std::str::from_utf8(&result).expect("a result was parsed as JSON, so it is UTF-8");
                out.raw("result", result);
            }
            Item::Error(refusal) => out.raw("error", &refusal.to_json()),
            Item::Unauthorized(challenge) if challenge.status == 401 || all_refused => {
                return Err(Stop::Failed(ToolFailure::Unauthorized(challenge)));
            }
            Item::Unauthorized(_) => {
                out.raw(
                    "error",
                    &Refusal::new("The upstream does not allow you to call this tool.").to_json(),
                );
            }
        }
        results.push(out.finish());
    }
    let mut out = ObjectText::new();
    out.list("results", &results);
    Ok(ToolReply::Own { text: out.finish(), is_error })
}

//! `call_read_tools`: several read-only calls at once.
//!
//! **All gates are passed on one listing before anything is sent**, each call's own; one that is refused or fails
//! leaves the others alone.

use super::call::{Gated, explain};
use super::refusal::Refusal;
use super::request::{CallArguments, Members};
use super::text::{ObjectText, shown};
use super::{Stop, ToolFailure, ToolReply, ToolRequest, Toolbox};
use crate::caller::Caller;
use crate::mcp::{ResultType, code};
use crate::upstream::{Challenge, UpstreamError};
use bytes::Bytes;
use futures_util::future::join_all;

const EXPECTED: &str = r#"{"calls": [{"name": "…", "arguments": {…}}, …]}"#;

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
        let calls = Members::read(request.arguments, &["calls"], EXPECTED)?.list("calls")?;
        let calls_max = self.options.batch_calls_max;
        if calls.is_empty() || calls.len() > calls_max {
            return Err(Refusal::new(format!("Send {EXPECTED} with 1 to {calls_max} calls.")).into());
        }
        let calls: Vec<CallArguments> =
            calls.iter().map(|call| CallArguments::read(Some(call), EXPECTED)).collect::<Result<_, _>>()?;
        let catalog = self.catalog(caller).await?;
        let gated = join_all(calls.iter().map(|call| self.gate(caller, &catalog, call, true))).await;
        let items = join_all(gated.into_iter().map(async |gated| match gated {
            Ok(gated) => self.item(caller, request, &gated).await,
            Err(refusal) => {
                self.metrics.count_refusal(refusal.reason());
                Item::Error(refusal)
            }
        }))
        .await;
        let names = calls.iter().map(|call| {
            // The name of a tool is needed whole; what names none is only repeated.
            catalog.named(&call.name).map_or_else(|| shown(&call.name), |_| call.name.clone())
        });
        answer(names, items)
    }

    async fn item(&self, caller: &Caller, request: &ToolRequest<'_>, gated: &Gated<'_>) -> Item {
        match self.send(caller, request, gated).await {
            Ok(result) if ResultType::of(&result) == ResultType::InputRequired => Item::Error(Refusal::new(
                "The tool asks for input, which a batch can't give. Call it alone with call_read_tool.",
            )),
            Ok(result) => Item::Result(result),
            Err(UpstreamError::Unauthorized(challenge)) => Item::Unauthorized(challenge),
            Err(UpstreamError::Rpc(failure)) if failure.code == code::MISSING_CAPABILITY => {
                Item::Error(Refusal::new(
                    "The tool needs something of your client that a batch can't use. Nothing was executed. Call it \
                     alone with call_read_tool.",
                ))
            }
            Err(error) => Item::Error(explain(&error, gated.tool, true)),
        }
    }
}

/// One text block with a result or an error for each call, in their order. Credentials that are no good (401) end the
/// whole batch, since the caller has to log in; a refusal of some calls (403) is theirs alone.
fn answer(names: impl Iterator<Item = String>, items: Vec<Item>) -> Result<ToolReply, Stop> {
    let all_refused = items.iter().all(|item| matches!(item, Item::Unauthorized(_)));
    let is_error = !items.iter().any(|item| matches!(item, Item::Result(_)));
    let mut results = Vec::with_capacity(items.len());
    for (name, item) in names.zip(items) {
        let mut out = ObjectText::new();
        out.text("name", &name);
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
    Ok(ToolReply::own(&out.finish(), is_error))
}

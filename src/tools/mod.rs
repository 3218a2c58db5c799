//! The five tools that a model sees, over the caller's catalogue.
//!
//! [`Toolbox`] is the door. `definitions` holds the words that the model reads; `search`, `describe`, `call` and
//! `batch` are the tools; `arguments` and `suggest` check what a model wants to send and say how to repair it.
//!
//! **Nothing goes upstream before three gates**: the tool is in the caller's own listing, it is read-only where it
//! must be, and its arguments fit its schema. A refusal always carries the fix.
//!
//! Deliberately not here: eras, JSON-RPC and HTTP, which `dispatch` and `server` know.

mod answers;
mod arguments;
mod batch;
mod call;
mod definitions;
mod describe;
mod followed;
mod heavy;
mod hit_texts;
mod kept;
mod refusal;
mod request;
mod schema_summary;
mod schemas;
mod search;
mod suggest;
mod text;

#[doc(hidden)]
pub use arguments::{ArgumentSchema, Checked, Unchecked, Violation};
pub use definitions::ToolKind;
pub use refusal::Refusal;
pub(crate) use request::outer_object;

use crate::caller::Caller;
use crate::catalog::{Catalog, CatalogCache};
use crate::mcp::{RpcError, TraceContext, code};
use crate::search::Ranker;
use crate::telemetry::{Metrics, Outcome, catalogue_span};
use crate::upstream::{Challenge, Listening, Upstream, UpstreamError};
use bytes::Bytes;
use followed::Followed;
use heavy::Heavy;
use schemas::ArgumentSchemas;
use search::Finder;
use serde_json::value::RawValue;
use std::sync::Arc;
use tracing::Instrument;

/// What the tools allow and show.
#[derive(Clone, Copy, Debug)]
pub struct ToolOptions {
    /// How many of a search's best hits come with their input schema.
    pub search_schemas: usize,
    /// Largest input schema in a search answer, in bytes; a larger one is made compact.
    pub search_schema_bytes: usize,
    /// Most calls in one batch; 0 leaves the batch tool out.
    pub batch_calls_max: usize,
    /// Memory for compiled input schemas, in bytes, by estimate.
    pub schema_cache_bytes: usize,
}

/// A call of one of the five tools.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// Which of the five.
    pub tool: ToolKind,
    /// The raw arguments, if there are any.
    pub arguments: Option<&'a RawValue>,
    /// What the caller's client can do; a raw JSON object.
    pub client_capabilities: &'a RawValue,
    /// The caller's trace context.
    pub trace: TraceContext<'a>,
    /// What the client wants to hear while the call runs.
    pub listening: Option<Listening<'a>>,
    /// The client's answers to what an earlier round asked for.
    pub input_responses: Option<&'a RawValue>,
    /// The state that an earlier round gave.
    pub request_state: Option<&'a RawValue>,
}

impl ToolRequest<'_> {
    /// Whether the client answers what an earlier round of the same call asked for.
    fn is_later_round(&self) -> bool {
        self.input_responses.is_some() || self.request_state.is_some()
    }
}

/// What a tool gives back.
#[derive(Debug)]
pub enum ToolReply {
    /// Our own words: compact JSON for one text block.
    Own {
        /// The text as a JSON string, quotes included.
        quoted: Arc<str>,
        /// Whether the model has to do something about it.
        is_error: bool,
    },
    /// The upstream's result object, byte for byte.
    Upstream(Bytes),
}

impl ToolReply {
    fn own(text: &str, is_error: bool) -> Self {
        Self::Own { quoted: text::quoted(text).into(), is_error }
    }
}

/// What ends a call without a result: somebody other than the model has to act.
#[derive(Debug)]
pub enum ToolFailure {
    /// The caller has to log in.
    Unauthorized(Challenge),
    /// The MCP client has to change its request.
    Rpc(RpcError),
}

/// A reply or failure with what the log line says of it.
pub struct ToolOutcome {
    /// What goes back.
    pub reply: Result<ToolReply, ToolFailure>,
    /// One word for logs and metrics.
    pub outcome: Outcome,
}

/// The five tools.
pub struct Toolbox {
    options: ToolOptions,
    catalogs: Arc<CatalogCache>,
    upstream: Arc<dyn Upstream>,
    finder: Arc<Finder>,
    schemas: Arc<ArgumentSchemas>,
    definitions: String,
    guidance: String,
    heavy: Heavy,
    metrics: Arc<Metrics>,
    followed: Followed,
}

impl Toolbox {
    /// The tools over these parts.
    pub fn new(
        options: ToolOptions,
        catalogs: Arc<CatalogCache>,
        upstream: Arc<dyn Upstream>,
        ranker: Arc<Ranker>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let definitions = definitions::all(options.batch_calls_max);
        let guidance = definitions::guidance(options.batch_calls_max);
        let schemas = Arc::new(ArgumentSchemas::new(options.schema_cache_bytes));
        let (heavy, followed) = (Heavy::new(), Followed::new());
        let finder = Arc::new(Finder::new(ranker, options));
        Self { options, catalogs, upstream, finder, schemas, definitions, guidance, heavy, metrics, followed }
    }

    /// The definitions for `tools/list`, a raw JSON array.
    pub fn definitions(&self) -> &str {
        &self.definitions
    }

    /// How a model is to use the tools.
    pub fn guidance(&self) -> &str {
        &self.guidance
    }

    /// The names of the tools that are offered.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        ToolKind::ALL.into_iter().map(ToolKind::name).filter(|name| self.find(name).is_some())
    }

    /// The tool of that name, where it is offered.
    pub fn find(&self, name: &str) -> Option<ToolKind> {
        ToolKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .filter(|kind| *kind != ToolKind::ReadBatch || self.options.batch_calls_max > 0)
    }

    /// Runs one tool for a caller.
    pub async fn call(&self, caller: &Caller, request: ToolRequest<'_>) -> ToolOutcome {
        let result = match request.tool {
            ToolKind::Search => self.search(caller, request.arguments).await,
            ToolKind::Describe => self.describe(caller, request.arguments).await,
            ToolKind::Read | ToolKind::Write => self.call_one(caller, &request).await,
            ToolKind::ReadBatch => self.call_many(caller, &request).await,
        };
        match result {
            Ok(reply) => ToolOutcome { reply: Ok(reply), outcome: Outcome::Ok },
            Err(Stop::Refused(refusal)) => {
                self.metrics.count_refusal(refusal.reason());
                ToolOutcome { reply: Ok(refusal.into_reply()), outcome: Outcome::Refused }
            }
            Err(Stop::Upstream(refusal)) => {
                ToolOutcome { reply: Ok(refusal.into_reply()), outcome: Outcome::UpstreamError }
            }
            Err(Stop::Failed(failure)) => {
                let outcome = match &failure {
                    ToolFailure::Unauthorized(_) => Outcome::Unauthorized,
                    ToolFailure::Rpc(_) => Outcome::InvalidRequest,
                };
                ToolOutcome { reply: Err(failure), outcome }
            }
        }
    }

    /// The caller's catalogue, or why there is none in words for the model.
    async fn catalog(&self, caller: &Caller) -> Result<Arc<Catalog>, Stop> {
        let span = catalogue_span();
        let listed = self.catalogs.get(caller).instrument(span.clone()).await;
        if let Ok(catalog) = &listed {
            span.record("toolsearch.tools", catalog.tools().len());
        }
        listed.map_err(|error| match error {
            UpstreamError::Unauthorized(challenge) => Stop::Failed(ToolFailure::Unauthorized(challenge)),
            error => {
                let advice = if error.is_lasting() {
                    tracing::warn!("the tools can't be listed: {error}; is --upstream an MCP endpoint?");
                    "Trying again will not help: the operator has to look at --upstream."
                } else {
                    "Try again later."
                };
                Stop::Upstream(Refusal::new(format!(
                    "The tools can't be listed now: {error}. Nothing was called. {advice}"
                )))
            }
        })
    }
}

/// Why a tool gave no result of its own.
enum Stop {
    /// The model can repair it.
    Refused(Refusal),
    /// The upstream could not do it; in words for the model.
    Upstream(Refusal),
    /// Neither can.
    Failed(ToolFailure),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Whether an upstream error is for the MCP client to act on, and the error for it then. In a later round of a call
/// what the upstream finds wrong is what the client added: its responses, or a state that is not the one it was given.
fn for_the_client(error: &UpstreamError, is_later_round: bool) -> Option<ToolFailure> {
    match error {
        UpstreamError::Unauthorized(challenge) => Some(ToolFailure::Unauthorized(challenge.clone())),
        UpstreamError::Rpc(failure)
            if failure.code == code::MISSING_CAPABILITY
                || (is_later_round && failure.is_invalid_params()) =>
        {
            // More than any such list of capabilities needs is not for us to carry.
            let data = failure.data.as_deref().filter(|data| data.len() <= 16 * 1024);
            let data = data.and_then(|data| serde_json::from_str(data).ok());
            Some(ToolFailure::Rpc(RpcError {
                code: failure.code,
                message: text::told(&failure.message).into(),
                data,
            }))
        }
        _ => None,
    }
}

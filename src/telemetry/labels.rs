//! The values that labels have: closed sets, so that nothing a caller or an upstream sends can become one.

/// How a request ended: the closed set of the `outcome` label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// The model was told how to repair its call.
    Refused,
    /// The upstream failed.
    UpstreamError,
    /// The caller has to log in.
    Unauthorized,
    /// The client's request was wrong.
    InvalidRequest,
    /// Something broke here.
    InternalError,
}

impl Outcome {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::UpstreamError => "upstream_error",
            Self::Unauthorized => "unauthorized",
            Self::InvalidRequest => "invalid_request",
            Self::InternalError => "internal_error",
        }
    }
}

/// What a model got wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusalReason {
    /// The arguments of one of the five tools themselves.
    #[default]
    Malformed,
    /// No tool of that name, and none that was obviously meant.
    UnknownTool,
    /// No tool of that name, but one that was obviously meant.
    MisspeltTool,
    /// A tool that is not marked read-only.
    NotReadOnly,
    /// The upstream's input schema.
    Arguments,
}

impl RefusalReason {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownTool => "unknown_tool",
            Self::MisspeltTool => "misspelt_tool",
            Self::NotReadOnly => "not_read_only",
            Self::Arguments => "arguments",
        }
    }
}

/// What the upstream is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A listing with all its pages.
    List,
    /// One tool call.
    Call,
}

impl Operation {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Call => "call",
        }
    }
}

/// `method`: what exists in any version, and words for the rest.
pub(super) const METHODS: &[&str] = &[
    "tools/call",
    "tools/list",
    "server/discover",
    "initialize",
    "ping",
    "notification",
    "metadata",
    "no_route",
    "other",
];
pub(super) const TOOLS: &[&str] =
    &["search_tools", "describe_tool", "call_read_tool", "call_read_tools", "call_write_tool", "none"];
pub(super) const OUTCOMES: &[&str] =
    &["ok", "refused", "upstream_error", "unauthorized", "invalid_request", "internal_error"];
pub(super) const REJECTIONS: &[&str] = &[
    "method",
    "host",
    "origin",
    "content_type",
    "content_encoding",
    "not_acceptable",
    "ambiguous_authorization",
    "token_in_query",
    "loop",
    "body_too_large",
    "body_too_slow",
    "body_cut",
    "overloaded",
    "caller_overloaded",
    "message",
];
pub(super) const REFUSALS: &[&str] =
    &["malformed", "unknown_tool", "misspelt_tool", "not_read_only", "arguments"];
pub(super) const OPERATIONS: &[&str] = &["list", "call"];
/// `ok`, a request that nobody waited for any more, and the kinds of failure.
pub(super) const UPSTREAM_OUTCOMES: &[&str] = &[
    "ok",
    "abandoned",
    "unauthorized",
    "unreachable",
    "timed_out",
    "cut",
    "status",
    "invalid",
    "too_large",
    "listing",
    "session_lost",
    "no_common_version",
    "busy",
    "rpc",
];
pub(super) const CATALOG_LOOKUPS: &[&str] = &["fresh", "stale", "listed"];
pub(super) const EVICTIONS: &[&str] = &["credentials", "callers", "memory", "idle"];
pub(super) const DEGRADED: &[&str] = &["words_only", "upstream_unreachable", "draining"];

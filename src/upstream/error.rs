//! What can go wrong on the way to the upstream and back.

use crate::mcp::{Era, ParamValueFault, code};
use http::HeaderValue;
use std::sync::Arc;
use std::time::Duration;

/// A refusal of the caller's credentials, to be relayed so that the client's login can start.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// 401 or 403.
    pub status: u16,
    /// All `WWW-Authenticate` values, unchanged.
    pub www_authenticate: Vec<HeaderValue>,
}

/// How far a request had come when the upstream failed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureStage {
    /// An HTTP error whose JSON-RPC error does not name the request: it was turned away unread.
    Unread,
    /// The one body of the response, which names the request.
    Read,
    /// An event of a stream: by then something was being done.
    Begun,
}

/// A JSON-RPC error of the upstream.
#[derive(Clone, Debug)]
pub struct RpcFailure {
    /// The HTTP status that it came with.
    pub http_status: u16,
    /// The upstream's code.
    pub code: i64,
    /// The upstream's text: for the caller, never for a log.
    pub message: String,
    /// The upstream's data, raw JSON.
    pub data: Option<String>,
    /// How far the request had come.
    pub stage: FailureStage,
}

impl RpcFailure {
    /// Whether the upstream does not know the tool or does not like the arguments.
    pub fn is_invalid_params(&self) -> bool {
        self.code == code::INVALID_PARAMS
    }

    /// Whether the upstream certainly turned the message away before it did what is asked for. A tool may answer with
    /// any code, with an HTTP error too; few codes are the transport's alone.
    fn is_of_the_transport(&self) -> bool {
        match (self.stage, self.http_status) {
            (FailureStage::Unread, 400 | 404 | 405) => true,
            (FailureStage::Read, 400 | 404) if self.code == code::METHOD_NOT_FOUND => true,
            (FailureStage::Read, 400 | 404 | 405) => {
                matches!(self.code, code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION)
            }
            _ => false,
        }
    }

    /// Whether the upstream missed a header that the tool's schema asks for.
    pub fn is_header_mismatch(&self) -> bool {
        self.code == code::HEADER_MISMATCH
    }
}

/// Why the upstream gave no result. Clonable, since callers who wait for the same listing share its error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The credentials were refused.
    #[error("the upstream answered HTTP {}", .0.status)]
    Unauthorized(Challenge),
    /// No connection: nothing was sent.
    #[error("the upstream can't be reached")]
    Unreachable,
    /// No connection, and why: nothing was sent.
    #[error("the upstream can't be reached: {0}")]
    NoConnection(&'static str),
    /// No answer in time.
    #[error("the upstream did not answer within {}", humantime::format_duration(*.0))]
    TimedOut(Duration),
    /// The connection or the stream ended before the answer was whole.
    #[error("the upstream's answer ended before it was complete")]
    Cut,
    /// An HTTP error without a JSON-RPC error in it.
    #[error("the upstream answered HTTP {0}")]
    Status(u16),
    /// An HTTP error with something in it that may be the answer or a part of it: what the call did is not known.
    #[error("the upstream answered HTTP {0}")]
    Unclear(u16),
    /// Something that is not an MCP answer; the text says what.
    #[error("the upstream's answer is not valid MCP: {0}")]
    Invalid(&'static str),
    /// The answer to another request came: the connection is out of step, and nothing is known of this one.
    #[error("the upstream's answer is not valid MCP: it answers another request")]
    OutOfStep,
    /// The answer is larger than allowed, in bytes.
    #[error("the upstream's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The listing breaks a limit; the text says which.
    #[error("the upstream's tool listing {0}")]
    Listing(&'static str),
    /// The upstream no longer knows the session. Nothing was executed.
    #[error("the upstream had forgotten the session")]
    SessionLost,
    /// Too many listings are under way for this one to have its turn. Nothing was sent.
    #[error("too many tool listings were under way")]
    Busy,
    /// The upstream speaks no version that the proxy speaks.
    #[error("the upstream speaks no protocol version that this proxy speaks")]
    NoCommonVersion,
    /// A call was never sent, since an argument can't be repeated in a header as the tool asks.
    #[error("the call can't be sent: {0}")]
    Header(#[from] ParamValueFault),
    /// A call was never sent, since what had to come before it failed: finding out the era, or a session.
    #[error(transparent)]
    NotSent(Arc<UpstreamError>),
    /// The upstream's own JSON-RPC error.
    #[error("the upstream answered with JSON-RPC error {}", .0.code)]
    Rpc(RpcFailure),
}

/// Whether a server that was connected to gave up, which while connecting is the TLS handshake.
fn is_end_of_handshake(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::InvalidData)
}

impl UpstreamError {
    /// Whether a tool call that ended so was certainly not executed by the upstream. Otherwise nobody here knows.
    pub fn was_not_executed(&self) -> bool {
        match self {
            Self::Unauthorized(_)
            | Self::Unreachable
            | Self::NoConnection(_)
            | Self::SessionLost
            | Self::NoCommonVersion
            | Self::Busy
            | Self::Header(_)
            | Self::NotSent(_) => true,
            Self::Status(status) => matches!(status, 400 | 404 | 405 | 406 | 413 | 415 | 429),
            Self::Rpc(failure) => failure.is_of_the_transport(),
            _ => false,
        }
    }

    /// Whether an upstream of the era that was spoken would hardly answer so: it may have changed since it was asked.
    pub(super) fn is_unlike_its_era(&self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 400 | 404 | 405 | 406 | 415),
            Self::Unclear(status) => matches!(status, 400 | 404 | 405),
            Self::Rpc(failure) => {
                let is_of_the_envelope = matches!(
                    failure.code,
                    code::INVALID_REQUEST | code::METHOD_NOT_FOUND | code::UNSUPPORTED_VERSION
                );
                failure.stage != FailureStage::Begun
                    && (is_of_the_envelope || matches!(failure.http_status, 400 | 404 | 405))
            }
            Self::Invalid(_) | Self::NoCommonVersion => true,
            Self::NotSent(error) => error.is_unlike_its_era(),
            _ => false,
        }
    }

    /// Whether a call that ended so was certainly not executed, and may have been turned away because it was made in an
    /// era that the upstream does not speak any more.
    pub(super) fn may_be_of_another_era(&self) -> bool {
        self.was_not_executed() && (self.is_unlike_its_era() || matches!(self, Self::SessionLost))
    }

    /// Whether a legacy call was refused with what a modern upstream says of requests without metadata. A tool may say it
    /// too, so such a call is not made again; but the model is not to blame where the upstream turns out to be modern.
    pub(super) fn may_be_of_the_envelope(&self, era: Era) -> bool {
        matches!(self, Self::Rpc(failure) if era == Era::Legacy
            && failure.stage == FailureStage::Read && failure.http_status == 400 && failure.is_invalid_params())
    }

    /// The same refusal where the upstream is of another era or of none that is known.
    pub(super) fn of_the_envelope(self, era: Era) -> Self {
        match self {
            Self::Rpc(failure) if era == Era::Legacy && failure.is_invalid_params() => {
                Self::Unclear(failure.http_status)
            }
            error => error,
        }
    }

    /// Whether a session may be gone; losing one costs a handshake, keeping a dead one every call.
    pub(super) fn may_be_for_a_lost_session(&self) -> bool {
        match self {
            Self::SessionLost | Self::Unauthorized(_) | Self::Unclear(400 | 404) => true,
            Self::Rpc(failure) => {
                failure.stage == FailureStage::Read && matches!(failure.http_status, 400 | 404)
            }
            _ => false,
        }
    }

    /// The same error where it kept a call from being sent. What says so by itself stays as it is.
    pub(super) fn before_call(self) -> Self {
        if self.was_not_executed() && !matches!(self, Self::Status(_) | Self::Rpc(_)) {
            return self;
        }
        Self::NotSent(Arc::new(self))
    }

    /// The error of a request that got no response. Anything after the connection stood may have reached the upstream.
    pub(super) fn of_request(error: &reqwest::Error) -> Self {
        if !error.is_connect() {
            return Self::Cut;
        }
        let mut cause = std::error::Error::source(error);
        let is_tls = error.url().is_some_and(|url| url.scheme() == "https");
        let mut why = None;
        while let Some(error) = cause {
            let io = error.downcast_ref::<std::io::Error>();
            if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
                why = Some("the connection was refused");
            } else if is_tls && (error.is::<rustls::Error>() || io.is_some_and(is_end_of_handshake)) {
                why = Some("TLS failed (is its certificate trusted, and does the port speak TLS?)");
            } else if error.to_string().contains("dns error") {
                why = Some("its name is not found");
            }
            // The source of an I/O error is that of the error inside it, which would be skipped so.
            cause = match io.and_then(std::io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        let Some(why) = why else { return Self::Unreachable };
        tracing::warn!("the upstream can't be reached: {why}");
        Self::NoConnection(why)
    }

    /// Whether it stays until somebody changes a setting: what answers is no MCP server.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Self::Status(300..400 | 404 | 405 | 501))
    }

    /// A short name for logs and metrics: a closed set.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unauthorized(_) => "unauthorized",
            Self::Unreachable | Self::NoConnection(_) => "unreachable",
            Self::TimedOut(_) => "timed_out",
            Self::Cut => "cut",
            Self::Status(_) | Self::Unclear(_) => "status",
            Self::Invalid(_) | Self::Header(_) | Self::OutOfStep => "invalid",
            Self::TooLarge(_) => "too_large",
            Self::Listing(_) => "listing",
            Self::SessionLost => "session_lost",
            Self::NoCommonVersion => "no_common_version",
            Self::Busy => "busy",
            Self::NotSent(error) => error.kind(),
            Self::Rpc(_) => "rpc",
        }
    }
}

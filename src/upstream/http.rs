//! [`HttpUpstream`]: an upstream over streamable HTTP, modern or legacy.

use super::breaker::Breaker;
use super::era::{self, EraMemory, Verdict};
use super::error::UpstreamError;
use super::exchange::{Reply, Request, Wire};
use super::metadata::Metadata;
use super::pool::{Pool, client};
use super::session::{Session, Sessions};
use super::{Listing, ToolCall, Upstream, wire};
use crate::budget::{Budget, Reader};
use crate::caller::Caller;
use crate::mcp::{
    Era, Instance, ParamValueFault, ProtocolVersion, ResultType, TraceContext, encode_header_text,
    from_object, names, param_header_values,
};
use crate::outbound::Tls;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::{HeaderName, HeaderValue};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// How to reach the upstream, and what it may cost.
#[derive(Clone)]
pub struct HttpUpstreamOptions {
    /// The upstream's MCP endpoint.
    pub url: Url,
    /// For one tool call, from sending it to its whole answer.
    pub call_timeout: Duration,
    /// For a listing with all its pages.
    pub list_timeout: Duration,
    /// For a TCP and TLS handshake.
    pub connect_timeout: Duration,
    /// Largest result of a call, in bytes.
    pub response_bytes_max: usize,
    /// Largest listing, all pages together, in bytes.
    pub listing_bytes_max: usize,
    /// Most pages of a listing.
    pub pages_max: usize,
    /// Most tools in a listing.
    pub tools_max: usize,
    /// In which listings are read.
    pub budget: Arc<Budget>,
    /// Most callers whose legacy sessions are kept.
    pub callers_max: NonZeroUsize,
    /// The name of this process, sent with each request.
    pub instance: Instance,
    /// Whom to trust, and as whom to come.
    pub tls: Tls,
}

/// The client could not be built.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamSetupError {
    /// The certificates to trust are no PEM.
    #[error("the CA file holds no readable PEM certificate")]
    Certificates,
    /// The certificate to show can't be used.
    #[error("it and --upstream-client-key hold no readable PEM certificate and its key")]
    Identity,
    /// The HTTP client refused its settings.
    #[error("the HTTP client can't be built")]
    Client(#[source] reqwest::Error),
}

/// The upstream over HTTP.
pub struct HttpUpstream {
    options: HttpUpstreamOptions,
    wire: Wire,
    era: EraMemory,
    sessions: Sessions,
    metadata: Metadata,
}

impl HttpUpstream {
    /// Builds the client; nothing is connected yet.
    ///
    /// # Errors
    /// When the certificates can't be read.
    pub fn new(options: HttpUpstreamOptions) -> Result<Self, UpstreamSetupError> {
        let breaker = Arc::new(Breaker::new(options.connect_timeout));
        let (again, its_breaker) = (options.clone(), Arc::clone(&breaker));
        let pool = Pool::new(client(&options, &breaker)?, move || client(&again, &its_breaker).ok());
        let wire = Wire { pool: Arc::new(pool), url: options.url.clone(), breaker };
        let sessions = Sessions::new(options.callers_max);
        Ok(Self { options, wire, era: EraMemory::default(), sessions, metadata: Metadata::default() })
    }

    /// From now on trusts and shows other certificates. Requests under way keep their connections; what was in use stays
    /// where it fails.
    ///
    /// # Errors
    /// When the certificates can't be used.
    pub fn use_tls(&self, tls: Tls) -> Result<(), UpstreamSetupError> {
        let (options, breaker) =
            (HttpUpstreamOptions { tls, ..self.options.clone() }, Arc::clone(&self.wire.breaker));
        let next = client(&options, &breaker)?;
        self.wire.pool.change(next, move || client(&options, &breaker).ok());
        Ok(())
    }

    async fn list(&self, caller: &Caller) -> Result<Listing, UpstreamError> {
        let deadline = Instant::now() + self.options.list_timeout;
        let reader = self.options.budget.reader();
        if self.era.get() == Some(Era::Legacy) {
            let listed = self.list_legacy(caller, &reader, deadline).await;
            match &listed {
                Err(error) if error.is_unlike_its_era() => self.era.doubt(Era::Legacy),
                _ => return listed,
            }
        }
        if let Verdict::Modern { instructions } = self.probe(caller, Some(&reader), deadline).await? {
            return self.walk(caller, None, instructions, &reader, deadline).await;
        }
        let listed = self.list_legacy(caller, &reader, deadline).await;
        if listed.is_ok() {
            self.era.is_legacy();
        }
        listed
    }

    /// Lists in the caller's session, and once more in a new one when the upstream has forgotten it: a listing
    /// changes nothing, so it may be repeated.
    async fn list_legacy(
        &self,
        caller: &Caller,
        reader: &Reader,
        deadline: Instant,
    ) -> Result<Listing, UpstreamError> {
        for is_last in [false, true] {
            let session = self.sessions.get(&self.wire, caller, self.left(deadline)?).await?;
            let _closed_after = Sessions::until_dropped(&self.wire, caller, &session);
            let instructions = session.instructions.as_deref().map(str::to_owned);
            let listed = self.walk(caller, Some(&session), instructions, reader, deadline).await;
            if listed.is_err() {
                self.sessions.forget(caller, &session);
            }
            let may_be_lost = session.id.is_some()
                && listed.as_ref().is_err_and(UpstreamError::may_be_for_a_lost_session)
                && !matches!(listed, Err(UpstreamError::Unauthorized(_)));
            if !may_be_lost || is_last {
                return listed;
            }
        }
        Err(UpstreamError::SessionLost)
    }

    /// Asks for the era, with the caller's own credentials.
    async fn probe(
        &self,
        caller: &Caller,
        reader: Option<&Reader>,
        deadline: Instant,
    ) -> Result<Verdict, UpstreamError> {
        let params = modern_params("");
        let mut request = self.request("server/discover", &params, deadline)?;
        request.reader = reader;
        let reply = self.wire.send(caller, request).await;
        let facts = reply.and_then(|reply| {
            from_object(&reply.result)
                .map_err(|_| UpstreamError::Invalid("its server/discover result can't be read"))
        });
        let verdict = era::judge(facts)?;
        // A refusal in any form reads as legacy, one meant for this caller alone too. It is remembered, for all callers,
        // once a handshake or a listing has proved it.
        if verdict != Verdict::Legacy {
            self.era.is_modern();
            self.sessions.leave(caller);
        }
        Ok(verdict)
    }

    /// All pages, and once more from the first where a cursor was valid no longer.
    async fn walk(
        &self,
        caller: &Caller,
        session: Option<&Arc<Session>>,
        instructions: Option<String>,
        reader: &Reader,
        deadline: Instant,
    ) -> Result<Listing, UpstreamError> {
        let mut walked = self.pages(caller, session, instructions.clone(), reader, deadline).await;
        if let Err(Walk::StaleCursor(_)) = walked {
            walked = self.pages(caller, session, instructions, reader, deadline).await;
        }
        walked.map_err(|walk| match walk {
            Walk::StaleCursor(error) | Walk::Failed(error) => error,
        })
    }

    /// All pages, each cursor once.
    async fn pages(
        &self,
        caller: &Caller,
        session: Option<&Arc<Session>>,
        instructions: Option<String>,
        reader: &Reader,
        deadline: Instant,
    ) -> Result<Listing, Walk> {
        let era = if session.is_some() { Era::Legacy } else { Era::Modern };
        let mut listing = Listing { tools: Vec::new(), instructions, ttl: None, era };
        let mut cursors: HashSet<String> = HashSet::new();
        let mut cursor: Option<String> = None;
        let mut bytes_left = self.options.listing_bytes_max;
        for _ in 0..self.options.pages_max {
            let page = Asked { session, cursor: cursor.as_deref(), bytes_max: bytes_left };
            let reply = self.page(caller, page, reader, deadline).await;
            let reply = reply.map_err(|error| match &error {
                UpstreamError::Rpc(failure) if cursor.is_some() && failure.is_invalid_params() => {
                    Walk::StaleCursor(error)
                }
                _ => Walk::Failed(error),
            })?;
            bytes_left = bytes_left.saturating_sub(reply.result.len());
            let page = wire::parse_page(&reply.result)?;
            listing.tools.extend(page.tools);
            listing.ttl = match (listing.ttl, page.ttl) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            if listing.tools.len() > self.options.tools_max {
                return Err(UpstreamError::Listing("has more tools than --max-tools allows").into());
            }
            match page.next_cursor {
                None => return Ok(listing),
                Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
                Some(_) => {
                    return Err(UpstreamError::Listing("repeats a cursor, so it would never end").into());
                }
            }
        }
        Err(UpstreamError::Listing("has more pages than --max-pages allows").into())
    }

    async fn page(
        &self,
        caller: &Caller,
        Asked { session, cursor, bytes_max }: Asked<'_>,
        reader: &Reader,
        deadline: Instant,
    ) -> Result<Reply, UpstreamError> {
        let cursor = cursor.map(|cursor| {
            let text = serde_json::to_string(cursor).expect("text serialises");
            format!(r#""cursor":{text}"#)
        });
        let cursor = cursor.unwrap_or_default();
        let params = match session {
            Some(_) => format!("{{{cursor}}}"),
            None => modern_params(&cursor),
        };
        let mut request = self.request("tools/list", &params, deadline)?;
        request.bytes_max = bytes_max;
        request.reader = Some(reader);
        if let Some(session) = session {
            request.version = session.version;
            request.session = session.id.as_ref();
        }
        let page = self.wire.send(caller, request).await;
        match page {
            Err(UpstreamError::TooLarge(_)) => Err(UpstreamError::TooLarge(self.options.listing_bytes_max)),
            page => page,
        }
    }

    async fn call(&self, caller: &Caller, call: &ToolCall<'_>) -> Result<Bytes, UpstreamError> {
        let deadline = Instant::now() + self.options.call_timeout;
        let era = self.era.get().map(|era| {
            // Its listing was made in the legacy era, since the upstream refuses this caller the modern one.
            if self.sessions.has(caller) { Era::Legacy } else { era }
        });
        let result = match era {
            Some(era) => match self.call_in(era, caller, call, deadline).await {
                Err(error) if error.may_be_of_another_era() || error.may_be_of_the_envelope(era) => {
                    self.call_in_other_era(era, error, caller, call, deadline).await
                }
                result => result,
            },
            None => {
                let verdict = self.probe(caller, None, deadline).await.map_err(UpstreamError::before_call)?;
                self.call_in(verdict.era(), caller, call, deadline).await
            }
        }?;
        if ResultType::of(&result) == ResultType::Unknown {
            return Err(UpstreamError::Invalid("its result is of a type that this proxy does not know"));
        }
        Ok(result)
    }

    async fn call_in(
        &self,
        era: Era,
        caller: &Caller,
        call: &ToolCall<'_>,
        deadline: Instant,
    ) -> Result<Bytes, UpstreamError> {
        let result = match era {
            Era::Modern => self.call_modern(caller, call, deadline).await,
            Era::Legacy => self.call_legacy(caller, call, deadline).await,
        };
        if result.as_ref().is_err_and(UpstreamError::is_unlike_its_era) {
            self.era.doubt(era);
        }
        result
    }

    /// The upstream turned a call away unexecuted, as one might that has changed since its era was found out. If it has,
    /// the call is made in its new era; else `refusal` stands.
    async fn call_in_other_era(
        &self,
        era: Era,
        refusal: UpstreamError,
        caller: &Caller,
        call: &ToolCall<'_>,
        deadline: Instant,
    ) -> Result<Bytes, UpstreamError> {
        match self.probe(caller, None, deadline).await {
            Ok(verdict) if verdict.era() == era => Err(refusal),
            Ok(verdict) if refusal.may_be_of_another_era() => {
                match self.call_in(verdict.era(), caller, call, deadline).await {
                    // Nothing was sent there either, so the first answer is the one to tell.
                    Err(UpstreamError::NotSent(_)) => Err(refusal.of_the_envelope(era)),
                    result => result,
                }
            }
            Ok(_) | Err(_) => Err(refusal.of_the_envelope(era)),
        }
    }

    async fn call_modern(
        &self,
        caller: &Caller,
        call: &ToolCall<'_>,
        deadline: Instant,
    ) -> Result<Bytes, UpstreamError> {
        let capabilities = wire::forwarded_capabilities(call.client_capabilities);
        let meta =
            wire::modern_meta(ProtocolVersion::MODERN.as_str(), &capabilities, &call.trace, call.listening);
        let params = wire::call_params(call, Some(&meta));
        let mut request = self.request("tools/call", &params, deadline)?;
        request.headers = call_headers(call)?;
        request.headers.extend(trace_headers(&call.trace));
        request.listening = call.listening;
        self.wire.send(caller, request).await.map(|reply| reply.result)
    }

    async fn call_legacy(
        &self,
        caller: &Caller,
        call: &ToolCall<'_>,
        deadline: Instant,
    ) -> Result<Bytes, UpstreamError> {
        let session = self.sessions.get(&self.wire, caller, self.left(deadline)?).await;
        let session = session.map_err(UpstreamError::before_call)?;
        self.era.is_legacy();
        let _closed_after = Sessions::until_dropped(&self.wire, caller, &session);
        let params = wire::call_params(call, wire::legacy_meta(&call.trace, call.listening).as_deref());
        let mut request = self.request("tools/call", &params, deadline)?;
        request.version = session.version;
        request.session = session.id.as_ref();
        request.headers = trace_headers(&call.trace).collect();
        request.listening = call.listening;
        let reply = self.wire.send(caller, request).await;
        if reply.as_ref().is_err_and(UpstreamError::may_be_for_a_lost_session) {
            self.sessions.forget(caller, &session);
        }
        reply.map(|reply| reply.result)
    }

    /// Notes where a challenge says that the login starts, and tells the whole time-out rather than what was left of
    /// it for the last request.
    fn noted<T>(&self, result: Result<T, UpstreamError>, timeout: Duration) -> Result<T, UpstreamError> {
        let timed_out = UpstreamError::TimedOut(timeout);
        result.map_err(|error| match error {
            UpstreamError::Unauthorized(challenge) => {
                self.metadata.note(&self.wire.url, &challenge);
                UpstreamError::Unauthorized(challenge)
            }
            UpstreamError::TimedOut(_) => timed_out,
            UpstreamError::NotSent(error) if matches!(*error, UpstreamError::TimedOut(_)) => {
                timed_out.before_call()
            }
            error => error,
        })
    }

    /// A modern request with the time that is left.
    fn request<'a>(
        &self,
        method: &'static str,
        params: &'a str,
        deadline: Instant,
    ) -> Result<Request<'a>, UpstreamError> {
        Ok(Request {
            method,
            params,
            version: ProtocolVersion::MODERN,
            session: None,
            headers: Vec::new(),
            timeout: self.left(deadline)?,
            bytes_max: self.options.response_bytes_max,
            listening: None,
            reader: None,
        })
    }

    fn left(&self, deadline: Instant) -> Result<Duration, UpstreamError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(UpstreamError::TimedOut(self.options.list_timeout)) } else { Ok(left) }
    }
}

/// A page of a listing that is asked for.
struct Asked<'a> {
    session: Option<&'a Arc<Session>>,
    cursor: Option<&'a str>,
    bytes_max: usize,
}

/// Why a listing was not walked to its end.
enum Walk {
    /// A cursor that the upstream itself gave is unknown to it: the list has changed under way.
    StaleCursor(UpstreamError),
    Failed(UpstreamError),
}

impl From<UpstreamError> for Walk {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

impl Upstream for HttpUpstream {
    fn list_tools<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Listing, UpstreamError>> {
        async move { self.noted(self.list(caller).await, self.options.list_timeout) }.boxed()
    }

    fn resource_metadata(&self) -> BoxFuture<'_, Result<Bytes, UpstreamError>> {
        self.metadata.get(&self.wire).boxed()
    }

    fn call_tool<'a>(
        &'a self,
        caller: &'a Caller,
        call: ToolCall<'a>,
    ) -> BoxFuture<'a, Result<Bytes, UpstreamError>> {
        async move { self.noted(self.call(caller, &call).await, self.options.call_timeout) }.boxed()
    }
}

/// The params of a modern request of ours: no capabilities, since nothing is done for a client here.
fn modern_params(member: &str) -> String {
    let meta = wire::modern_meta(ProtocolVersion::MODERN.as_str(), "{}", &TraceContext::default(), None);
    let comma = if member.is_empty() { "" } else { "," };
    format!(r#"{{{member}{comma}"_meta":{meta}}}"#)
}

/// `Mcp-Name` and `Mcp-Param-*`, made for this hop.
///
/// # Errors
/// When an argument can't be repeated as the tool asks: the call must not be sent without.
fn call_headers(call: &ToolCall<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, UpstreamError> {
    let mut headers = Vec::with_capacity(1 + call.param_headers.len().min(8));
    if let Ok(name) = HeaderValue::from_str(&encode_header_text(call.name)) {
        headers.push((names::NAME, name));
    }
    for (name, value) in param_header_values(call.param_headers, call.arguments)? {
        let header = HeaderName::from_bytes(format!("mcp-param-{}", name).to_ascii_lowercase().as_bytes());
        match (header, HeaderValue::from_str(&value)) {
            (Ok(header), Ok(value)) => headers.push((header, value)),
            _ => return Err(ParamValueFault::Type(name.to_owned()).into()),
        }
    }
    Ok(headers)
}

/// The caller's trace headers, which are made to cross hops.
fn trace_headers(trace: &TraceContext<'_>) -> impl Iterator<Item = (HeaderName, HeaderValue)> + use<> {
    let headers =
        [(names::TRACEPARENT, trace.traceparent_header), (names::TRACESTATE, trace.tracestate_header)];
    headers.map(|(name, value)| Some((name, value?.clone()))).into_iter().flatten()
}

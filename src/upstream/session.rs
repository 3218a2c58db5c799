//! Sessions that legacy upstreams give, kept per caller as soft state.
//!
//! **A session belongs to the caller who opened it**: it is kept under the caller's key, and a caller without a key
//! opens one for each request and closes it. Losing one costs a handshake, nothing else.

use super::error::UpstreamError;
use super::exchange::{Request, Wire};
use super::wire::{self, ServerFacts};
use crate::caller::{Caller, TokenHash};
use crate::mcp::{Era, ProtocolVersion, from_object};
use http::HeaderValue;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a handshake agreed on.
#[derive(Debug)]
pub(super) struct Session {
    /// `None` when the upstream keeps none.
    pub(super) id: Option<HeaderValue>,
    pub(super) version: ProtocolVersion,
    /// The upstream's guidance for models.
    pub(super) instructions: Option<String>,
}

/// The sessions of all callers.
pub(super) struct Sessions {
    kept: Mutex<LruCache<TokenHash, Arc<Session>>>,
}

impl Sessions {
    pub(super) fn new(callers_max: NonZeroUsize) -> Self {
        // The cache grows as callers come; its capacity is only a bound.
        let mut kept = LruCache::unbounded();
        kept.resize(callers_max);
        Self { kept: Mutex::new(kept) }
    }

    /// The caller's session, kept or opened now.
    pub(super) async fn get(
        &self,
        wire: &Wire,
        caller: &Caller,
        timeout: Duration,
    ) -> Result<Arc<Session>, UpstreamError> {
        let Some(key) = caller.key() else { return handshake(wire, caller, timeout).await.map(Arc::new) };
        if let Some(kept) = self.lock().get(&key) {
            return Ok(Arc::clone(kept));
        }
        let opened = Arc::new(handshake(wire, caller, timeout).await?);
        let first = {
            let mut kept = self.lock();
            Arc::clone(kept.get_or_insert(key, || Arc::clone(&opened)))
        };
        if !Arc::ptr_eq(&first, &opened) {
            // Another request of this caller was faster. Its session may be in use; ours is not.
            close(wire, caller, &opened);
        }
        Ok(first)
    }

    /// Forgets a session that the upstream no longer knows, unless a newer one took its place.
    pub(super) fn forget(&self, caller: &Caller, lost: &Arc<Session>) {
        let Some(key) = caller.key() else { return };
        let mut kept = self.lock();
        if kept.peek(&key).is_some_and(|session| Arc::ptr_eq(session, lost)) {
            kept.pop(&key);
        }
    }

    /// Ends what was opened for one request of a caller without a key.
    pub(super) fn end_of_request(wire: &Wire, caller: &Caller, session: &Arc<Session>) {
        if caller.key().is_none() {
            close(wire, caller, session);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<TokenHash, Arc<Session>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn handshake(wire: &Wire, caller: &Caller, timeout: Duration) -> Result<Session, UpstreamError> {
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{}}}"#,
        ProtocolVersion::LATEST_LEGACY,
        wire::CLIENT_INFO
    );
    let request = Request {
        method: "initialize",
        params: &params,
        version: ProtocolVersion::LATEST_LEGACY,
        session: None,
        headers: Vec::new(),
        timeout,
        bytes_max: 1024 * 1024,
        listening: None,
    };
    let reply = wire.send(caller, request).await?;
    let facts: ServerFacts = from_object(&reply.result)
        .map_err(|_| UpstreamError::Invalid("its initialize result can't be read"))?;
    let version = facts
        .protocol_version
        .and_then(|name| ProtocolVersion::parse(&name))
        .filter(|version| version.era() == Era::Legacy)
        .ok_or(UpstreamError::NoCommonVersion)?;
    let session = Session { id: reply.session, version, instructions: facts.instructions };
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
    wire.notify(caller, version, session.id.as_ref(), initialized, timeout).await?;
    Ok(session)
}

/// Closes a session in the background; a server that forgets it by itself is as good.
fn close(wire: &Wire, caller: &Caller, session: &Arc<Session>) {
    if session.id.is_none() {
        return;
    }
    let (wire, caller, session) = (wire.clone(), caller.clone(), Arc::clone(session));
    tokio::spawn(async move {
        if let Some(id) = &session.id {
            wire.delete_session(&caller, session.version, id).await;
        }
    });
}

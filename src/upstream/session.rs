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
        let Some(key) = caller.key() else { return handshake(wire, caller, timeout).await };
        if let Some(kept) = self.lock().get(&key) {
            return Ok(Arc::clone(kept));
        }
        let opened = handshake(wire, caller, timeout).await?;
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

    /// Whether the caller has a session, and so was served in the legacy era last.
    pub(super) fn has(&self, caller: &Caller) -> bool {
        caller.key().is_some_and(|key| self.lock().contains(&key))
    }

    /// Forgets the caller's session: the upstream speaks to this caller in the modern era.
    pub(super) fn leave(&self, caller: &Caller) {
        if let Some(key) = caller.key() {
            self.lock().pop(&key);
        }
    }

    /// Forgets a session that the upstream no longer knows, unless a newer one took its place.
    pub(super) fn forget(&self, caller: &Caller, lost: &Arc<Session>) {
        let Some(key) = caller.key() else { return };
        let mut kept = self.lock();
        if kept.peek(&key).is_some_and(|session| Arc::ptr_eq(session, lost)) {
            kept.pop(&key);
        }
    }

    /// Ends what was opened for one request of a caller without a key, as soon as the request is over or given up.
    pub(super) fn until_dropped<'a>(
        wire: &'a Wire,
        caller: &'a Caller,
        session: &Arc<Session>,
    ) -> Option<Opened<'a>> {
        caller.key().is_none().then(|| Opened { wire, caller, session: Some(Arc::clone(session)) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<TokenHash, Arc<Session>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn handshake(wire: &Wire, caller: &Caller, timeout: Duration) -> Result<Arc<Session>, UpstreamError> {
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
    let session = Arc::new(Session { id: reply.session, version, instructions: facts.instructions });
    let opened = Opened { wire, caller, session: Some(Arc::clone(&session)) };
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
    wire.notify(caller, version, session.id.as_ref(), initialized, timeout).await?;
    opened.keep();
    Ok(session)
}

/// A session that is closed when this is dropped: nobody would use it.
pub(super) struct Opened<'a> {
    wire: &'a Wire,
    caller: &'a Caller,
    session: Option<Arc<Session>>,
}

impl Opened<'_> {
    fn keep(mut self) {
        self.session = None;
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            close(self.wire, self.caller, session);
        }
    }
}

/// Closes a session in the background; a server that forgets it by itself is as good.
fn close(wire: &Wire, caller: &Caller, session: &Arc<Session>) {
    if session.id.is_none() {
        return;
    }
    // At the very end of the process there is nothing left to spawn on.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let (wire, caller, session) = (wire.clone(), caller.clone(), Arc::clone(session));
    runtime.spawn(async move {
        if let Some(id) = &session.id {
            wire.delete_session(&caller, session.version, id).await;
        }
    });
}

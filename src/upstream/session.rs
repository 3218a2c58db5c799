//! Sessions that legacy upstreams give, kept per caller as soft state.
//!
//! **A session belongs to the caller who opened it**: it is kept under the caller's key, and a caller without a key
//! opens one for each request and closes it. Losing one costs a handshake, nothing else.
//!
//! The upstream's instructions come with a session and are kept with it. Callers who are given the same ones share them; all
//! different ones together have a bound, and the sessions used least give way.

use super::error::UpstreamError;
use super::exchange::{Request, Wire};
use super::wire::{self, ServerFacts};
use crate::caller::{Caller, TokenHash};
use crate::mcp::{Era, ProtocolVersion, from_object};
use http::HeaderValue;
use lru::LruCache;
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most bytes of all different instructions together.
const INSTRUCTIONS_BYTES_MAX: usize = 4 << 20;

/// What a handshake agreed on.
#[derive(Debug)]
pub(super) struct Session {
    /// `None` when the upstream keeps none.
    pub(super) id: Option<HeaderValue>,
    pub(super) version: ProtocolVersion,
    /// The upstream's guidance for models.
    pub(super) instructions: Option<Arc<str>>,
}

/// The sessions of all callers.
pub(super) struct Sessions {
    kept: Mutex<LruCache<TokenHash, Arc<Session>>>,
    texts: Mutex<Texts>,
}

/// Instructions, each once.
#[derive(Default)]
struct Texts {
    known: HashSet<Arc<str>>,
    bytes: usize,
}

impl Texts {
    fn shared(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.known.get(text.as_str()) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        self.known.insert(Arc::clone(&text));
        text
    }

    /// Forgets those that no session holds.
    fn sweep(&mut self) {
        self.known.retain(|text| Arc::strong_count(text) > 1);
        self.bytes = self.known.iter().map(|text| text.len()).sum();
    }
}

impl Sessions {
    pub(super) fn new(callers_max: NonZeroUsize) -> Self {
        // The cache grows as callers come; its capacity is only a bound.
        let mut kept = LruCache::unbounded();
        kept.resize(callers_max);
        Self { kept: Mutex::new(kept), texts: Mutex::default() }
    }

    /// The caller's session, kept or opened now.
    pub(super) async fn get(
        &self,
        wire: &Wire,
        caller: &Caller,
        timeout: Duration,
    ) -> Result<Arc<Session>, UpstreamError> {
        let Some(key) = caller.key() else { return self.handshake(wire, caller, timeout).await };
        if let Some(kept) = self.lock().get(&key) {
            return Ok(Arc::clone(kept));
        }
        let opened = self.handshake(wire, caller, timeout).await?;
        let first = {
            let mut kept = self.lock();
            Arc::clone(kept.get_or_insert(key, || Arc::clone(&opened)))
        };
        self.bound_texts();
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

    async fn handshake(
        &self,
        wire: &Wire,
        caller: &Caller,
        timeout: Duration,
    ) -> Result<Arc<Session>, UpstreamError> {
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
            reader: None,
        };
        let reply = wire.send(caller, request).await?;
        let facts: ServerFacts = from_object(&reply.result)
            .map_err(|_| UpstreamError::Invalid("its initialize result can't be read"))?;
        let version = facts
            .protocol_version
            .and_then(|name| ProtocolVersion::parse(&name))
            .filter(|version| version.era() == Era::Legacy)
            .ok_or(UpstreamError::NoCommonVersion)?;
        let instructions = facts.instructions.map(|text| self.texts().shared(text));
        let session = Arc::new(Session { id: reply.session, version, instructions });
        let opened = Opened { wire, caller, session: Some(Arc::clone(&session)) };
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
        wire.notify(caller, version, session.id.as_ref(), initialized, timeout).await?;
        opened.keep();
        Ok(session)
    }

    /// Forgets the sessions used least, a tenth at a time, while all instructions together are too long.
    fn bound_texts(&self) {
        let mut texts = self.texts();
        while texts.bytes > INSTRUCTIONS_BYTES_MAX {
            texts.sweep();
            let mut kept = self.lock();
            // The one that was opened just now stays.
            let going = (kept.len() / 10 + 1).min(kept.len().saturating_sub(1));
            if texts.bytes <= INSTRUCTIONS_BYTES_MAX || going == 0 {
                return;
            }
            for _ in 0..going {
                kept.pop_lru();
            }
            drop(kept);
            texts.sweep();
        }
    }

    fn texts(&self) -> std::sync::MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LruCache<TokenHash, Arc<Session>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Salt;
    use http::HeaderMap;

    #[test]
    fn t_x12_instructions_of_sessions_are_bounded_together() {
        let (sessions, salt) = (Sessions::new(NonZeroUsize::MAX), Salt::random());
        let open = |number: usize, text: String| {
            let token = HeaderValue::from_str(&format!("Bearer {number}")).unwrap();
            let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, token)]);
            let key = Caller::from_headers(&headers, &salt).unwrap().key().unwrap();
            let instructions = Some(sessions.texts().shared(text));
            let session = Session { id: None, version: ProtocolVersion::LATEST_LEGACY, instructions };
            sessions.lock().push(key, Arc::new(session));
            sessions.bound_texts();
        };
        let kib = |number: usize| format!("{number:01024}");
        // Those that are the same count once.
        (0..10_000).for_each(|number| open(number, kib(0)));
        assert_eq!((sessions.lock().len(), sessions.texts().bytes), (10_000, 1024));
        (1..INSTRUCTIONS_BYTES_MAX / 1024).for_each(|number| open(number, kib(number)));
        assert_eq!((sessions.lock().len(), sessions.texts().bytes), (10_000, INSTRUCTIONS_BYTES_MAX));
        open(20_000, "1".to_owned());
        assert!(sessions.lock().len() < 10_000 && sessions.texts().bytes <= INSTRUCTIONS_BYTES_MAX);
        open(20_001, "x".repeat(INSTRUCTIONS_BYTES_MAX + 1));
        assert_eq!(sessions.lock().len(), 1);
    }
}

//! A gateway that can be told to misbehave, and that knows afterwards what it was asked.
//!
//! Every text that it gives carries the [mark](crate::mark) of the token it was asked with: instructions, definitions,
//! results. Every request id and every nonce of a call is counted in its [`Ledger`]. Tokens can be revoked while it
//! runs. What is wrong with an answer is decided for each request by a plan.

mod answer;
pub mod fault;
mod ledger;

pub use answer::tool;
pub use fault::Fault;
pub use ledger::Ledger;

use crate::http::{Message, Wire};
use crate::mark::Marks;
use fault::{Script, Then};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How the gateway speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 2026-07-28, plain JSON.
    ModernJson,
    /// 2026-07-28, event streams.
    ModernSse,
    /// 2025-11-25, event streams, a session for each caller.
    LegacySessions,
    /// 2025-11-25, plain JSON, no sessions.
    LegacyStateless,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ModernJson, Self::ModernSse, Self::LegacySessions, Self::LegacyStateless];

    /// For people and for flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::ModernJson => "modern-json",
            Self::ModernSse => "modern-sse",
            Self::LegacySessions => "legacy-sessions",
            Self::LegacyStateless => "legacy-stateless",
        }
    }

    /// Whether it speaks the revision without handshakes.
    pub fn is_modern(self) -> bool {
        matches!(self, Self::ModernJson | Self::ModernSse)
    }

    fn streams(self) -> bool {
        matches!(self, Self::ModernSse | Self::LegacySessions)
    }
}

/// A request as the plan sees it.
#[derive(Debug)]
pub struct Asked<'a> {
    pub token: &'a str,
    pub method: &'a str,
    /// The id as raw JSON.
    pub id: &'a str,
    pub params: &'a Value,
}

impl Asked<'_> {
    /// The tool that is called.
    pub fn tool(&self) -> &str {
        self.params["name"].as_str().unwrap_or_default()
    }

    /// The nonce among the arguments.
    pub fn nonce(&self) -> &str {
        self.params["arguments"]["nonce"].as_str().unwrap_or_default()
    }
}

/// Says what is wrong with an answer, if anything.
pub type Plan = dyn Fn(&Asked<'_>) -> Option<Fault> + Send + Sync;
/// Gives the tools of a token, a raw JSON object each, instead of the usual ones.
pub type Listing = dyn Fn(&str, &str) -> Vec<String> + Send + Sync;

/// What a gateway is like.
pub struct Settings {
    pub kind: Kind,
    /// For the marks.
    pub seed: u64,
    /// Tools of each caller, half of them read-only.
    pub tools: usize,
    /// Tools on a page of a listing.
    pub page: usize,
    /// Text in every result and description, for searches through logs.
    pub canary: String,
    /// How long a call takes.
    pub call_takes: Duration,
    /// What "after the deadline" means.
    pub deadline: Duration,
    pub plan: Box<Plan>,
    /// Other tools than the usual ones: takes the token and its mark.
    pub listing: Option<Box<Listing>>,
}

impl Settings {
    /// A gateway without faults.
    pub fn new(kind: Kind, seed: u64) -> Self {
        Self {
            kind,
            seed,
            tools: 12,
            page: 8,
            canary: String::new(),
            call_takes: Duration::ZERO,
            deadline: Duration::from_secs(1),
            plan: Box::new(|_| None),
            listing: None,
        }
    }
}

/// A running gateway. It ends when this is dropped.
pub struct Gateway {
    pub address: SocketAddr,
    pub shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// What all connections of a gateway share.
pub struct Shared {
    pub settings: Settings,
    pub marks: Marks,
    pub ledger: Ledger,
    /// How long a call takes now, in microseconds.
    pub call_micros: AtomicU64,
    revoked: Mutex<HashSet<String>>,
    /// Session to token.
    sessions: Mutex<HashMap<String, String>>,
    next_session: AtomicU64,
    stopped: AtomicBool,
}

impl Gateway {
    /// Binds a free port of this machine.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        Self::start_at(settings, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Binds an address.
    ///
    /// # Errors
    /// When it is taken.
    pub async fn start_at(settings: Settings, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            marks: Marks::new(settings.seed),
            ledger: Ledger::default(),
            call_micros: AtomicU64::new(u64::try_from(settings.call_takes.as_micros()).unwrap_or(u64::MAX)),
            revoked: Mutex::default(),
            sessions: Mutex::default(),
            next_session: AtomicU64::new(1),
            stopped: AtomicBool::new(false),
            settings,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting: Mutex::new(Some(accepting)) })
    }

    /// What it saw.
    pub fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// The mark of a token.
    pub fn mark(&self, token: &str) -> String {
        self.shared.marks.of(token)
    }

    /// From now on the token is refused.
    pub fn revoke(&self, token: &str) {
        lock(&self.shared.revoked).insert(token.to_owned());
    }

    /// The token is good again.
    pub fn restore(&self, token: &str) {
        lock(&self.shared.revoked).remove(token);
    }

    /// Forgets all sessions, as a restart would.
    pub fn forget_sessions(&self) {
        lock(&self.shared.sessions).clear();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(accepting) = lock(&self.accepting).take() {
            accepting.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    // A connection that breaks is part of the test.
                    let _broken = serve(Wire::new(stream), &shared).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(mut wire: Wire, shared: &Shared) -> io::Result<()> {
    while let Some(message) = wire.read().await? {
        if shared.stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        let script = shared.script(&message).await;
        for (pause, bytes) in &script.pieces {
            if !pause.is_zero() {
                tokio::time::sleep(*pause).await;
            }
            wire.write(bytes).await?;
        }
        while let (true, Some((pause, bytes))) = (script.is_endless, script.pieces.last()) {
            tokio::time::sleep(*pause).await;
            wire.write(bytes).await?;
        }
        match script.then {
            Then::Keep => {}
            Then::Close => return Ok(()),
            Then::Reset => {
                wire.reset();
                return Ok(());
            }
            Then::Hang => return hang(&wire.stream).await,
        }
    }
    Ok(())
}

/// Keeps a connection until the other side closes it, and no longer than any test takes.
async fn hang(stream: &TcpStream) -> io::Result<()> {
    let gone = async {
        let mut scratch = [0; 4096];
        loop {
            stream.readable().await?;
            match stream.try_read(&mut scratch) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(300), gone).await.unwrap_or(Ok(()))
}

impl Shared {
    /// The answer to one request, faults and all.
    async fn script(&self, message: &Message) -> Script {
        self.ledger.requests.fetch_add(1, Ordering::Relaxed);
        let token = message.token();
        if ["cookie", "x-api-key", "x-forwarded-for", "proxy-authorization", "referer"]
            .iter()
            .any(|name| message.header(name).is_some())
        {
            self.ledger.leaked_headers.fetch_add(1, Ordering::Relaxed);
        }
        if lock(&self.revoked).contains(token) {
            self.ledger.refused.fetch_add(1, Ordering::Relaxed);
            let challenge = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
            return Script::whole(crate::http::response(401, challenge, ""));
        }
        if message.first_line().starts_with("DELETE ") {
            if let Some(session) = message.header("mcp-session-id") {
                lock(&self.sessions).remove(session);
            }
            return Script::whole(crate::http::response(200, "", ""));
        }
        let Ok(body) = serde_json::from_slice::<Value>(&message.body) else {
            return Script::whole(crate::http::response(400, "", "no JSON"));
        };
        let method = body["method"].as_str().unwrap_or_default();
        if body.get("id").is_none() || method.is_empty() {
            if method == "notifications/cancelled" {
                self.ledger.cancelled.fetch_add(1, Ordering::Relaxed);
            }
            return Script::whole(crate::http::response(202, "", ""));
        }
        if let Some(id) = body["id"].as_str() {
            self.ledger.note_id(id);
        }
        let id = body["id"].to_string();
        let asked = Asked { token, method, id: &id, params: &body["params"] };
        self.answer(&asked, message.header("mcp-session-id")).await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

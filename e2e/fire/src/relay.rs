//! A fault proxy: passes bytes between the proxy and its upstream, and breaks what passes as a plan says.
//!
//! It knows where a request and an answer end and nothing else of HTTP, so that it can cut at any byte, hold an answer
//! back, let it drip, or send one more that nobody asked for.

use crate::http::{Message, Wire};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Break {
    /// Nothing.
    #[default]
    Pass,
    /// The answer waits so long.
    Delay(Duration),
    /// Only so many bytes of the request go on; then both sides are reset.
    CutRequest(usize),
    /// Only so many bytes of the answer go on; then the asking side is reset.
    ResetAnswer(usize),
    /// The same with an orderly close.
    TruncateAnswer(usize),
    /// The answer in pieces of so many bytes, a pause before each.
    Drip(usize, Duration),
    /// After the answer comes an older one, which was made for somebody else, so much later.
    Extra(Duration),
    /// An older answer comes first, in the same breath.
    Before,
    /// The request goes on; the answer never comes.
    BlackHole,
    /// The request is never read.
    Deaf,
}

/// An exchange as the plan sees it.
pub struct Exchange<'a> {
    /// Counted over all connections, from 0.
    pub number: u64,
    pub request: &'a Message,
}

/// Says what becomes of an exchange.
pub type BreakPlan = dyn Fn(&Exchange<'_>) -> Break + Send + Sync;

/// What the port does with new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// They are served.
    Open,
    /// They are accepted and reset.
    Slams,
    /// They are accepted and never read.
    Silent,
    /// Nothing listens.
    Closed,
}

/// A running fault proxy. It ends when this is dropped.
pub struct Relay {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    door: watch::Sender<Door>,
    /// The door that the port has by now.
    stands: watch::Receiver<Door>,
    accepting: JoinHandle<()>,
}

struct Shared {
    upstream: SocketAddr,
    plan: Box<BreakPlan>,
    exchanges: AtomicU64,
    broken: AtomicU64,
    /// Answers that passed, for those who get one too many.
    older: Mutex<VecDeque<Vec<u8>>>,
    is_replaying: AtomicBool,
    /// Told when all connections are to end.
    cut: watch::Sender<u64>,
}

impl Relay {
    /// Binds a free port in front of an upstream.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start(
        upstream: SocketAddr,
        plan: impl Fn(&Exchange<'_>) -> Break + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), upstream, plan).await
    }

    /// Binds an address in front of an upstream.
    ///
    /// # Errors
    /// When it is taken.
    pub async fn start_at(
        address: SocketAddr,
        upstream: SocketAddr,
        plan: impl Fn(&Exchange<'_>) -> Break + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            plan: Box::new(plan),
            exchanges: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            older: Mutex::default(),
            is_replaying: AtomicBool::new(true),
            cut: watch::channel(0).0,
        });
        let (door, wanted) = watch::channel(Door::Open);
        let (stands_now, stands) = watch::channel(Door::Open);
        let accepting = tokio::spawn(accept(listener, address, Arc::clone(&shared), wanted, stands_now));
        Ok(Self { address, shared, door, stands, accepting })
    }

    /// Changes what happens to new connections, and ends all that are open. Returns when it is so.
    pub async fn set_door(&self, door: Door) {
        self.door.send_replace(door);
        let mut stands = self.stands.clone();
        let _ended = stands.wait_for(|now| *now == door).await;
        self.shared.cut.send_modify(|epoch| *epoch += 1);
    }

    /// Exchanges so far, and how many of them were broken.
    pub fn counts(&self) -> (u64, u64) {
        (self.shared.exchanges.load(Ordering::Relaxed), self.shared.broken.load(Ordering::Relaxed))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.cut.send_modify(|epoch| *epoch += 1);
    }
}

async fn accept(
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    mut wanted: watch::Receiver<Door>,
    stands: watch::Sender<Door>,
) {
    let mut listener = Some(listener);
    loop {
        let door = *wanted.borrow_and_update();
        if door == Door::Closed {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
            if listener.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
        }
        stands.send_replace(door);
        let Some(open) = &listener else {
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        };
        tokio::select! {
            accepted = open.accept() => match accepted {
                Ok((stream, _)) => welcome(stream, door, &shared),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

fn welcome(stream: TcpStream, door: Door, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    let mut cut = shared.cut.subscribe();
    match door {
        Door::Slams => Wire::new(stream).reset(),
        Door::Closed => {}
        Door::Silent | Door::Open => {
            tokio::spawn(async move {
                let passing = async {
                    if door == Door::Silent {
                        return std::future::pending().await;
                    }
                    // A connection that breaks is part of the test.
                    let _broken = shared.pass(Wire::new(stream)).await;
                };
                tokio::select! {
                    () = passing => {}
                    _ = cut.changed() => {}
                }
            });
        }
    }
}

impl Shared {
    /// Passes exchanges until one side has had enough.
    async fn pass(&self, mut asking: Wire) -> io::Result<()> {
        let mut upstream: Option<Wire> = None;
        while let Some(request) = asking.read().await? {
            let number = self.exchanges.fetch_add(1, Ordering::Relaxed);
            let broken = (self.plan)(&Exchange { number, request: &request });
            if broken != Break::Pass {
                self.broken.fetch_add(1, Ordering::Relaxed);
            }
            if let Break::Deaf = broken {
                return gone(&asking).await;
            }
            let mut answering = match upstream.take() {
                Some(wire) => wire,
                None => Wire::new(TcpStream::connect(self.upstream).await?),
            };
            if let Break::CutRequest(at) = broken {
                answering.write(&request.raw[..at.min(request.raw.len())]).await?;
                // What was sent should arrive before the reset does.
                tokio::time::sleep(Duration::from_millis(1)).await;
                asking.reset();
                answering.reset();
                return Ok(());
            }
            answering.write(&request.raw).await?;
            let answered = tokio::select! {
                answered = self.answer(&asking, &mut answering, broken) => answered?,
                // Whoever asked may hang up before there is an answer, and the upstream has to notice.
                () = hangs_up(&asking) => false,
            };
            if !answered {
                if matches!(broken, Break::ResetAnswer(_)) {
                    asking.reset();
                }
                return Ok(());
            }
            upstream = Some(answering);
        }
        Ok(())
    }

    /// Passes an answer. Returns whether the connection can be used again.
    async fn answer(&self, asking: &Wire, answering: &mut Wire, broken: Break) -> io::Result<bool> {
        if broken == Break::Pass {
            return self.stream(asking, answering).await;
        }
        let Some(answer) = answering.read().await? else { return Ok(false) };
        let raw = &answer.raw;
        match broken {
            Break::Delay(pause) => {
                tokio::time::sleep(pause).await;
                asking.write(raw).await?;
            }
            Break::ResetAnswer(at) | Break::TruncateAnswer(at) => {
                asking.write(&raw[..at.min(raw.len())]).await?;
                return Ok(false);
            }
            Break::Drip(bytes, pause) => {
                for piece in raw.chunks(bytes.max(1)) {
                    tokio::time::sleep(pause).await;
                    asking.write(piece).await?;
                }
            }
            Break::Extra(later) => {
                let older = self.replay(raw);
                if later.is_zero() {
                    asking.write(&[raw.as_slice(), &older].concat()).await?;
                } else {
                    asking.write(raw).await?;
                    // Spun rather than slept: a timer is coarser than the window that matters.
                    let until = std::time::Instant::now() + later;
                    while std::time::Instant::now() < until {
                        tokio::task::yield_now().await;
                    }
                    asking.write(&older).await?;
                }
            }
            Break::Before => {
                let older = self.replay(raw);
                asking.write(&[&older, raw.as_slice()].concat()).await?;
            }
            Break::BlackHole => std::future::pending().await,
            Break::Pass | Break::CutRequest(_) | Break::Deaf => {}
        }
        Ok(true)
    }

    /// Passes an answer as it comes, however long it is.
    async fn stream(&self, asking: &Wire, answering: &mut Wire) -> io::Result<bool> {
        const REMEMBERED: usize = 256 * 1024;
        let mut seen = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        loop {
            let count = tokio::io::AsyncReadExt::read(&mut answering.stream, &mut piece).await?;
            if count == 0 {
                return Ok(false);
            }
            asking.write(&piece[..count]).await?;
            if seen.len() > REMEMBERED {
                continue;
            }
            seen.extend_from_slice(&piece[..count]);
            if crate::http::is_whole(&seen) {
                self.remember(&seen);
                return Ok(true);
            }
        }
    }

    fn remember(&self, answer: &[u8]) {
        const KEPT: usize = 64;
        if !self.is_replaying.load(Ordering::Relaxed) || answer.len() > 16 * 1024 {
            return;
        }
        let mut older = self.older.lock().unwrap_or_else(PoisonError::into_inner);
        if older.len() == KEPT {
            older.pop_front();
        }
        older.push_back(answer.to_vec());
    }

    /// An older answer, which nearly always belongs to somebody else; this very one where there is none.
    fn replay(&self, own: &[u8]) -> Vec<u8> {
        let mut older = self.older.lock().unwrap_or_else(PoisonError::into_inner);
        older.pop_front().unwrap_or_else(|| own.to_vec())
    }
}

/// Completes when the asking side closes while it waits.
async fn hangs_up(asking: &Wire) {
    // Reading here would take bytes of the next request, which must not come before the answer; so only the end is
    // looked for. Peeking does both.
    loop {
        let mut byte = [0];
        match asking.stream.peek(&mut byte).await {
            Ok(0) | Err(_) => return,
            Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Reads nothing and waits for the other side's end.
async fn gone(asking: &Wire) -> io::Result<()> {
    let waiting = hangs_up(asking);
    let _late = tokio::time::timeout(Duration::from_secs(300), waiting).await;
    Ok(())
}

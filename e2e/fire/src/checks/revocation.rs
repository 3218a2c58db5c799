//! A revoked token: refused on the very next call, and from then on everywhere; without a call, search and describe end
//! when the listing's time is over. The clocks are short here; unit tests move them over the real ones.

use super::{Options, Secrets, nothing_private};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::relay::{Break, Relay};
use crate::report::{Report, Times};
use crate::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(2);
const STALE: Duration = Duration::from_secs(1);
/// A listing that was given just before the revocation is still on its way.
const SLACK: Duration = Duration::from_millis(300);

struct Run {
    mcp: SocketAddr,
    gateway: Gateway,
    secrets: Secrets,
    seed: u64,
    report: Report,
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let callers = options.count(400, 4_000);
    for kind in Kind::ALL.into_iter().filter(|kind| kind.name().contains(&options.only)) {
        one_kind(kind, callers / 4, options, report).await?;
    }
    Ok(())
}

async fn one_kind(kind: Kind, callers: u64, options: &Options, report: &Report) -> io::Result<()> {
    println!("{}: {callers} callers", kind.name());
    let secrets = Secrets::new(options.seed);
    let settings = Settings { canary: secrets.upstream.clone(), ..Settings::new(kind, options.seed) };
    let gateway = Gateway::start(settings).await?;
    let seed = options.seed;
    // Listings are slow, so that some are on their way when their token dies.
    let relay = Relay::start(gateway.address, move |exchange| {
        let mut rng = Rng::new(seed, exchange.number);
        if exchange.request.text().contains(r#""method":"tools/list""#) {
            Break::Delay(Duration::from_millis(rng.below(60)))
        } else {
            Break::Pass
        }
    });
    let relay = relay.await?;
    // All of them may ask at once.
    let places = callers.to_string();
    let flags = ["--catalog-ttl", "2s", "--catalog-max-stale", "1s", "--max-in-flight", &places];
    let proxy = Proxy::start(&options.proxy, relay.address, &flags).await?;
    let run = Arc::new(Run {
        mcp: proxy.mcp,
        gateway,
        secrets: secrets.clone(),
        seed: options.seed,
        report: Report::default(),
    });
    let tasks: Vec<_> = (0..callers).map(|number| tokio::spawn(Arc::clone(&run).live(number))).collect();
    let mut silent = Times::default();
    for task in tasks {
        if let Some(lasted) = task.await.map_err(io::Error::other)? {
            silent.add(lasted);
        }
    }
    report.figure("callers who only searched", silent.count());
    report.figure(
        "their last answer after the revocation",
        format!(
            "median {:?}, longest {:?}, clocks {:?}",
            silent.quantile(500),
            silent.quantile(1000),
            TTL + STALE
        ),
    );
    let wrong = run.report.failures();
    report.must("answers to revoked tokens", wrong == 0, wrong);
    nothing_private(&proxy, &secrets, report).await
}

impl Run {
    /// One caller's life: some work, the revocation, and what comes after.
    async fn live(self: Arc<Self>, number: u64) -> Option<Duration> {
        let mut rng = Rng::new(self.seed, number);
        let token = format!("{}-{number}", self.secrets.token);
        let era = if rng.permille(500) { Era::Modern } else { Era::Legacy };
        let mut client = Client::new(self.mcp, &token, era);
        let own = self.gateway.mark(&token);
        tokio::time::sleep(Duration::from_millis(rng.below(1500))).await;
        for _ in 0..=rng.below(8) {
            self.ask(&mut client, &Ask::search("notes"), 200, "a good token").await;
            tokio::time::sleep(Duration::from_millis(rng.below(600))).await;
        }
        self.gateway.revoke(&token);
        let revoked = Instant::now();
        if rng.permille(400) {
            return Some(self.search_until_refused(&mut client, &mut rng, revoked).await);
        }
        tokio::time::sleep(Duration::from_millis(rng.below(500))).await;
        // A search of another connection may be waiting for a listing that was given before.
        let beside = tokio::spawn({
            let (this, token) = (Arc::clone(&self), token.clone());
            async move {
                let mut beside = Client::new(this.mcp, &token, Era::Modern);
                let _either = beside.ask(&Ask::search("notes")).await;
            }
        });
        let nonce = format!("{NONCE}{}", rng.hex());
        let write = Ask::write(&format!("own_{own}__write"), &nonce, &self.secrets.argument);
        self.ask(&mut client, &write, 401, "the next call").await;
        for _ in 0..4 {
            self.ask(&mut client, &Ask::search("notes"), 401, "a search after a 401").await;
            self.ask(&mut client, &Ask::describe(&format!("own_{own}__read")), 401, "a describe after a 401")
                .await;
            tokio::time::sleep(Duration::from_millis(rng.below(80))).await;
        }
        if self.gateway.ledger().executions(&nonce) > 0 {
            self.report.fail("a revoked token's write was executed", &nonce);
        }
        let _done = beside.await;
        self.gateway.restore(&token);
        self.ask(&mut client, &Ask::search("notes"), 200, "a restored token").await;
        None
    }

    /// Searches only: how long after the revocation there was an answer.
    async fn search_until_refused(&self, client: &mut Client, rng: &mut Rng, revoked: Instant) -> Duration {
        let mut last = Duration::ZERO;
        loop {
            let asked = revoked.elapsed();
            match client.ask(&Ask::search("notes")).await {
                Ok(answer) if answer.status == 401 => return last,
                Ok(answer) if answer.is_ok() => last = asked,
                other => self.report.fail("an odd end of a search", format!("{other:?}")),
            }
            if asked > TTL + STALE + SLACK {
                self.report.fail("a search outlives its clocks", format!("{asked:?}"));
                return last;
            }
            tokio::time::sleep(Duration::from_millis(20 + rng.below(200))).await;
        }
    }

    async fn ask(&self, client: &mut Client, ask: &Ask, expected: u16, when: &str) {
        match client.ask(ask).await {
            Ok(answer) if answer.status == expected => {}
            other => self.report.fail(when, format!("{} not {expected}: {other:?}", ask.tool)),
        }
    }
}

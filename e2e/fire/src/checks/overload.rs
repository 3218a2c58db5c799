//! Ten times what it can do: what it takes it does in time, the rest it refuses at once, and it recovers.
//!
//! A call takes the upstream 100 ms here and 50 may be in flight, so that it can do some 500 a second whatever the machine.

use super::load::{Load, Source};
use super::{Options, Secrets};
use crate::client::Ask;
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::Marks;
use crate::process::Proxy;
use crate::report::Report;
use std::io;
use std::time::Duration;

const PLACES: u64 = 50;
const CALL_TAKES: Duration = Duration::from_millis(100);

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let lasts = Duration::from_secs(if options.is_long { 60 } else { 10 });
    let secrets = Secrets::new(options.seed);
    let settings = Settings { call_takes: CALL_TAKES, ..Settings::new(Kind::ModernJson, options.seed) };
    let gateway = Gateway::start(settings).await?;
    let places = PLACES.to_string();
    let proxy =
        Proxy::start(&options.proxy, gateway.address, &["--max-in-flight", &places, "--log-level", "info"])
            .await?;
    let source = Source {
        mcp: proxy.mcp,
        token: secrets.token,
        tokens: PLACES,
        ask: |mark| Ask::read(&format!("own_{mark}__read"), "nn-0"),
        marks: Marks::new(options.seed),
    };
    // Everybody's tools are listed by then.
    source.closed(PLACES, Duration::from_secs(1)).await;
    let mut single = source.closed(1, Duration::from_secs(3)).await;
    let peak = per_second(&source.closed(PLACES, Duration::from_secs(5)).await, Duration::from_secs(5));
    report.figure(
        "unloaded",
        format!("p50 {:?}, p99 {:?}", single.accepted.quantile(500), single.accepted.quantile(990)),
    );
    report.figure("peak", format!("{peak:.0} a second"));
    let before = source.open(peak * 0.8, lasts / 2).await;
    report.must("no refusal at 80%", before.refused.count() == 0 && before.failed == 0, told(&before));
    let mut flood = source.open(peak * 10.0, lasts).await;
    report.figure("at ten times the peak", told(&flood));
    let goodput = per_second(&flood, lasts);
    report.must(
        "goodput of the peak, at least 90%",
        goodput >= peak * 0.9,
        format!("{:.0}%", goodput / peak * 100.0),
    );
    let (accepted, unloaded) = (flood.accepted.quantile(990), single.accepted.quantile(990));
    report.must(
        "p99 of what is accepted, at most 3 times unloaded",
        accepted <= unloaded * 3,
        format!("{accepted:?}"),
    );
    let refused = flood.refused.quantile(990);
    report.must(
        "p99 of a refusal, at most 10 ms",
        refused <= Duration::from_millis(10),
        format!("{refused:?}, median {:?}", flood.refused.quantile(500)),
    );
    report.must(
        "refusals say when to come again",
        flood.refused_without_retry_after == 0,
        flood.refused_without_retry_after,
    );
    let over = std::time::Instant::now();
    let after = source.open(peak * 0.8, Duration::from_secs(8)).await;
    let recovered = after.last_refusal.map_or(Duration::ZERO, |last| last.saturating_duration_since(over));
    report.must(
        "recovered within 5 s",
        recovered <= Duration::from_secs(5) && after.failed == 0,
        format!("{recovered:?}, {}", told(&after)),
    );
    Ok(())
}

fn per_second(load: &Load, lasts: Duration) -> f64 {
    load.accepted.count() as f64 / lasts.as_secs_f64()
}

fn told(load: &Load) -> String {
    let mut accepted = load.accepted.clone();
    format!(
        "{} accepted with p99 {:?}, {} refused, {} failed",
        load.accepted.count(),
        accepted.quantile(990),
        load.refused.count(),
        load.failed
    )
}

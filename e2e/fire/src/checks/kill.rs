//! Killed at any moment, it is ready again at once, and has left nothing on disk.

use super::{Options, Secrets};
use crate::client::{Ask, Client, Era};
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::report::{Report, Times};
use crate::rng::Rng;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let kills = options.count(15, 200);
    let secrets = Secrets::new(options.seed);
    let gateway = Gateway::start(Settings::new(Kind::LegacySessions, options.seed)).await?;
    let mut rng = Rng::new(options.seed, 0);
    let mut times = Times::default();
    let (mut failed, mut written) = (0, BTreeSet::new());
    let token = format!("{}-0", secrets.token);
    let own = gateway.mark(&token);
    for _ in 0..kills {
        let started = Instant::now();
        let proxy = Proxy::start(&options.proxy, gateway.address, &[]).await?;
        let is_ready = proxy.operator("/readyz").await.is_ok_and(|page| page.status() == 200);
        let mut client = Client::new(proxy.mcp, &token, Era::Modern);
        let nonce = format!("{NONCE}{}", rng.hex());
        let answer = client.ask(&Ask::write(&format!("own_{own}__write"), &nonce, "")).await;
        times.add(started.elapsed());
        if !is_ready || !answer.is_ok_and(|answer| answer.is_ok()) {
            failed += 1;
        }
        written.extend(open_for_writing(proxy.pid()));
        let busy = async {
            loop {
                let _answer = client.ask(&Ask::search("notes")).await;
            }
        };
        let _busy_until_then = tokio::time::timeout(Duration::from_micros(rng.below(30_000)), busy).await;
        proxy.signal("KILL")?;
    }
    report.must("starts that were ready and answered", failed == 0, format!("{} of {kills}", kills - failed));
    report.figure(
        "start to first answer",
        format!("median {:?}, longest {:?}", times.quantile(500), times.quantile(1000)),
    );
    report.must("files that it writes to", written.is_empty(), format!("{written:?}"));
    let twice = gateway.ledger().executed_twice();
    report.must("calls executed twice", twice == 0, twice);
    Ok(())
}

/// Files that a process has open for writing, its standard streams aside.
fn open_for_writing(pid: u32) -> Vec<String> {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let file = |number: &str| {
        let target = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).ok()?;
        let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        // The lowest two bits are 0 for files that are only read.
        let writes = u32::from_str_radix(flags, 8).is_ok_and(|flags| flags & 3 != 0);
        (writes && target.starts_with("/") && !target.starts_with("/dev") && Path::new(&target).is_file())
            .then(|| target.display().to_string())
    };
    open.filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|number| !matches!(number.as_str(), "0" | "1" | "2"))
        .filter_map(|number| file(&number))
        .collect()
}

//! What many replicas cost the upstream: a simulation of listings per minute.
//!
//! Each replica lists a caller's tools for itself: at the caller's first request, and again at the first request after the
//! listing's time is over; in the minute after that the stale one is served while the new one is fetched, which is a
//! listing all the same. A balancer sends requests round-robin, or by consistent hashing on `Authorization`. Callers work
//! in spells: a few requests some seconds apart, then nothing for a while.

use crate::catalogue::Random;

/// `--catalog-ttl`, in seconds.
const TTL: f64 = 600.0;
/// Simulated time, of which the first hour is not counted.
const HOURS: f64 = 4.0;

/// How callers work.
struct Workload {
    callers: usize,
    /// Seconds between a caller's requests in a spell, on average.
    pause: f64,
    /// Requests in a spell.
    requests: usize,
    /// Seconds between a caller's spells, on average.
    rest: f64,
}

const WORKLOAD: Workload = Workload { callers: 10_000, pause: 20.0, requests: 15, rest: 3_000.0 };

#[derive(Clone, Copy, PartialEq, Debug)]
enum Balancing {
    RoundRobin,
    ConsistentHashing,
}

/// What the upstream sees.
struct Cost {
    /// In an hour without anything special.
    listings_per_minute: f64,
    requests_per_minute: f64,
    /// Of one replica in the ten minutes after it starts with nothing, and in those before.
    cold: usize,
    warm: usize,
}

fn simulate(workload: &Workload, replicas: usize, balancing: Balancing) -> Cost {
    let mut random = Random(42);
    let (start, end) = (3_600.0, HOURS * 3_600.0);
    let mut requests: Vec<(f64, usize)> = Vec::new();
    for caller in 0..workload.callers {
        let mut at = exponential(&mut random, workload.rest);
        while at < end + TTL {
            for _ in 0..workload.requests {
                requests.push((at, caller));
                at += exponential(&mut random, workload.pause);
            }
            at += exponential(&mut random, workload.rest);
        }
    }
    requests.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut fresh_until = vec![f64::NEG_INFINITY; workload.callers * replicas];
    let (mut listings, mut counted) = (0_u64, 0_u64);
    let (mut cold, mut warm) = (0, 0);
    let mut is_restarted = false;
    for (turn, (at, caller)) in requests.into_iter().enumerate() {
        let replica = match balancing {
            Balancing::RoundRobin => turn % replicas,
            Balancing::ConsistentHashing => Random(caller as u64).below(replicas),
        };
        if at >= end && !is_restarted {
            (0..workload.callers).for_each(|caller| fresh_until[caller * replicas] = f64::NEG_INFINITY);
            is_restarted = true;
        }
        let counts = at >= start && at < end;
        counted += u64::from(counts);
        let fresh = &mut fresh_until[caller * replicas + replica];
        if at >= *fresh {
            *fresh = at + TTL;
            listings += u64::from(counts);
            cold += usize::from(replica == 0 && (end..end + TTL).contains(&at));
            warm += usize::from(replica == 0 && (end - TTL..end).contains(&at));
        }
    }
    let minutes = (end - start) / 60.0;
    Cost {
        listings_per_minute: listings as f64 / minutes,
        requests_per_minute: counted as f64 / minutes,
        cold,
        warm,
    }
}

fn exponential(random: &mut Random, mean: f64) -> f64 {
    let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    -mean * (1.0 - share).ln()
}

/// Prints the table of `docs/deploy.md`.
pub fn print() {
    let Workload { callers, pause, requests, rest } = WORKLOAD;
    println!(
        "{callers} callers; spells of {requests} requests {pause} s apart, {rest} s between spells; listings kept {TTL} s\n"
    );
    println!(
        "| Replicas | Balancing | Requests a minute | Listings a minute | Requests a listing | Listings of one replica in ten minutes | The same after a restart |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for replicas in [1, 4, 16] {
        for (balancing, name) in [
            (Balancing::RoundRobin, "round-robin"),
            (Balancing::ConsistentHashing, "consistent hashing on `Authorization`"),
        ] {
            if replicas == 1 && balancing == Balancing::ConsistentHashing {
                continue;
            }
            let Cost { listings_per_minute: listings, requests_per_minute: requests, cold, warm } =
                simulate(&WORKLOAD, replicas, balancing);
            let name = if replicas == 1 { "-" } else { name };
            let share = requests / listings;
            println!(
                "| {replicas} | {name} | {requests:.0} | {listings:.0} | {share:.1} | {warm} | {cold} |"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Workload = Workload { callers: 200, pause: 20.0, requests: 15, rest: 3_000.0 };

    #[test]
    fn hashing_costs_what_one_replica_does_and_round_robin_more_with_each() {
        let listings = |replicas, balancing| simulate(&SMALL, replicas, balancing).listings_per_minute;
        let one = listings(1, Balancing::RoundRobin);
        let hashed = listings(16, Balancing::ConsistentHashing);
        let (four, sixteen) = (listings(4, Balancing::RoundRobin), listings(16, Balancing::RoundRobin));
        assert!((one - hashed).abs() < 1e-9 && one < four && four < sixteen);
        let cost = simulate(&SMALL, 1, Balancing::RoundRobin);
        assert!(cost.cold > cost.warm && sixteen <= cost.requests_per_minute);
    }
}

//! Which era the upstream speaks, found out by asking, and remembered for a while.

use super::error::UpstreamError;
use super::wire::ServerFacts;
use crate::mcp::{Era, ProtocolVersion, code};
use serde::Deserialize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a verdict holds before the upstream is asked again.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The last verdict. It holds nothing of any caller.
#[derive(Default)]
pub(super) struct EraMemory(Mutex<Option<(Era, Instant)>>);

impl EraMemory {
    /// The era, while the verdict holds.
    pub(super) fn get(&self) -> Option<Era> {
        let verdict = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        verdict.filter(|(_, since)| since.elapsed() < REMEMBERED).map(|(era, _)| era)
    }

    pub(super) fn set(&self, era: Era) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((era, Instant::now()));
    }

    /// The upstream behaved unlike its era: ask again before the next request.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What a `server/discover` in the modern form says about the other side.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Modern { instructions: Option<String> },
    Legacy,
}

impl Verdict {
    pub(super) fn era(&self) -> Era {
        match self {
            Self::Modern { .. } => Era::Modern,
            Self::Legacy => Era::Legacy,
        }
    }
}

/// Judges the outcome of the probe.
///
/// # Errors
/// What is not a verdict: refused credentials, time-outs, overload, a server fault, a modern server that finds our
/// request wrong, or one with which there is no common version.
pub(super) fn judge(outcome: Result<ServerFacts, UpstreamError>) -> Result<Verdict, UpstreamError> {
    match outcome {
        Ok(facts) => by_versions(&facts.supported_versions, facts.instructions),
        Err(UpstreamError::Rpc(failure)) => match failure.code {
            code::UNSUPPORTED_VERSION => by_versions(&supported(failure.data.as_deref()), None),
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::INVALID_PARAMS => {
                Err(UpstreamError::Rpc(failure))
            }
            _ => Ok(Verdict::Legacy),
        },
        Err(UpstreamError::Status(status @ (408 | 429 | 300..=399 | 500..))) => {
            Err(UpstreamError::Status(status))
        }
        // A legacy server may refuse in any form: an empty 400, plain text, a result that is no discovery.
        Err(UpstreamError::Status(_) | UpstreamError::Invalid(_) | UpstreamError::SessionLost) => {
            Ok(Verdict::Legacy)
        }
        Err(error) => Err(error),
    }
}

fn by_versions(supported: &[String], instructions: Option<String>) -> Result<Verdict, UpstreamError> {
    let known: Vec<ProtocolVersion> =
        supported.iter().filter_map(|name| ProtocolVersion::parse(name)).collect();
    if known.iter().any(|version| version.era() == Era::Modern) {
        Ok(Verdict::Modern { instructions })
    } else if known.is_empty() && !supported.is_empty() {
        Err(UpstreamError::NoCommonVersion)
    } else {
        Ok(Verdict::Legacy)
    }
}

fn supported(data: Option<&str>) -> Vec<String> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    data.and_then(|data| serde_json::from_str::<Data>(data).ok())
        .map(|data| data.supported)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::RpcFailure;

    fn facts(versions: &[&str]) -> Result<ServerFacts, UpstreamError> {
        let supported_versions = versions.iter().map(|&version| version.to_owned()).collect();
        Ok(ServerFacts { supported_versions, ..ServerFacts::default() })
    }

    fn rpc(code: i64, data: Option<&str>) -> Result<ServerFacts, UpstreamError> {
        let (message, data) = (String::new(), data.map(str::to_owned));
        Err(UpstreamError::Rpc(RpcFailure { http_status: 200, code, message, data }))
    }

    #[test]
    fn c2_the_verdict_follows_the_table() {
        let modern = Verdict::Modern { instructions: None };
        assert_eq!(judge(facts(&["2026-07-28", "2025-11-25"])).unwrap(), modern);
        assert_eq!(judge(facts(&["2025-11-25"])).unwrap(), Verdict::Legacy);
        assert!(matches!(judge(facts(&["2031-01-01"])), Err(UpstreamError::NoCommonVersion)));
        assert_eq!(judge(rpc(-32022, Some(r#"{"supported":["2026-07-28"]}"#))).unwrap(), modern);
        assert_eq!(judge(rpc(-32022, Some(r#"{"supported":["2025-06-18"]}"#))).unwrap(), Verdict::Legacy);
        for legacy in [-32000, -32600, -32601, 0] {
            assert_eq!(judge(rpc(legacy, None)).unwrap(), Verdict::Legacy, "{legacy}");
        }
        for ours in [-32020, -32021, -32602] {
            assert!(judge(rpc(ours, None)).is_err(), "{ours}");
        }
        for status in [400, 404, 405, 406, 415] {
            assert_eq!(judge(Err(UpstreamError::Status(status))).unwrap(), Verdict::Legacy, "{status}");
        }
        for status in [302, 408, 429, 500, 503] {
            assert!(judge(Err(UpstreamError::Status(status))).is_err(), "{status}");
        }
        assert!(judge(Err(UpstreamError::Unreachable)).is_err());
        assert!(judge(Err(UpstreamError::TimedOut(Duration::ZERO))).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn t_h15_a_verdict_is_remembered_for_ten_minutes() {
        let memory = EraMemory::default();
        assert_eq!(memory.get(), None);
        memory.set(Era::Legacy);
        tokio::time::advance(REMEMBERED - Duration::from_millis(1)).await;
        assert_eq!(memory.get(), Some(Era::Legacy));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(memory.get(), None);
    }
}

//! Which era the upstream speaks, found out by asking, and remembered for a while.

use super::error::UpstreamError;
use super::wire::ServerFacts;
use crate::mcp::{Era, ProtocolVersion, code};
use serde::Deserialize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long it holds that an upstream is legacy; a modern one shows by itself when it is so no more.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The last verdict. It holds nothing of any caller, and none of them alone changes it: **that the upstream is modern stands
/// until a request in that era failed as none would there**. A refused `server/discover` may be meant for its caller.
#[derive(Default)]
pub(super) struct EraMemory(Mutex<Memory>);

#[derive(Clone, Copy, Default)]
enum Memory {
    #[default]
    Nothing,
    Legacy(Instant),
    Modern,
}

impl EraMemory {
    /// The era, while the verdict holds.
    pub(super) fn get(&self) -> Option<Era> {
        match *self.memory() {
            Memory::Legacy(since) if since.elapsed() < REMEMBERED => Some(Era::Legacy),
            Memory::Modern => Some(Era::Modern),
            _ => None,
        }
    }

    /// The upstream said that it is modern.
    pub(super) fn is_modern(&self) {
        *self.memory() = Memory::Modern;
    }

    /// A handshake or a listing in the legacy era succeeded.
    pub(super) fn is_legacy(&self) {
        let mut memory = self.memory();
        if !matches!(*memory, Memory::Modern) {
            *memory = Memory::Legacy(Instant::now());
        }
    }

    /// The upstream behaved unlike this era: if it is the one remembered, ask again before the next request.
    pub(super) fn doubt(&self, era: Era) {
        let mut memory = self.memory();
        match (*memory, era) {
            (Memory::Modern, Era::Modern) | (Memory::Legacy(_), Era::Legacy) => *memory = Memory::Nothing,
            _ => {}
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        Err(UpstreamError::Status(status) | UpstreamError::Unclear(status)) if matches!(status, 300..=399 | 408 | 429 | 500..) => {
            Err(UpstreamError::Status(status))
        }
        // A legacy server may refuse in any form: an empty 400, plain text, a result that is no discovery.
        Err(
            UpstreamError::Status(_)
            | UpstreamError::Unclear(_)
            | UpstreamError::Invalid(_)
            | UpstreamError::SessionLost,
        ) => Ok(Verdict::Legacy),
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
    use crate::upstream::{FailureStage, RpcFailure};

    fn facts(versions: &[&str]) -> Result<ServerFacts, UpstreamError> {
        let supported_versions = versions.iter().map(|&version| version.to_owned()).collect();
        Ok(ServerFacts { supported_versions, ..ServerFacts::default() })
    }

    fn rpc(code: i64, data: Option<&str>) -> Result<ServerFacts, UpstreamError> {
        let (message, data) = (String::new(), data.map(str::to_owned));
        Err(UpstreamError::Rpc(RpcFailure {
            http_status: 200,
            code,
            message,
            data,
            stage: FailureStage::Read,
        }))
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
    async fn t_h15_that_it_is_legacy_is_remembered_for_ten_minutes() {
        let memory = EraMemory::default();
        assert_eq!(memory.get(), None);
        memory.is_legacy();
        tokio::time::advance(REMEMBERED - Duration::from_millis(1)).await;
        assert_eq!(memory.get(), Some(Era::Legacy));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(memory.get(), None);
    }

    #[test]
    fn t_h15_modern_stands_until_a_modern_request_failed_as_none_would() {
        let memory = EraMemory::default();
        memory.is_modern();
        memory.is_legacy();
        memory.doubt(Era::Legacy);
        assert_eq!(memory.get(), Some(Era::Modern));
        memory.doubt(Era::Modern);
        assert_eq!(memory.get(), None);
        memory.is_legacy();
        assert_eq!(memory.get(), Some(Era::Legacy));
    }
}

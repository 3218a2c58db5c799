//! Protocol versions and the two eras that they belong to.

use std::fmt;

/// How a request says which version it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Per-request metadata, 2026-07-28 and later.
    Modern,
    /// The `initialize` handshake, up to 2025-11-25.
    Legacy,
}

/// A revision of the protocol that the proxy speaks, oldest first so that they compare by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26, the only one with JSON-RPC batches; assumed where nothing is said.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last with a handshake.
    V2025_11_25,
    /// 2026-07-28, the first with per-request metadata.
    V2026_07_28,
}

impl ProtocolVersion {
    /// Every version that is served, newest first, as `supportedVersions` lists them.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// The newest modern version.
    pub const MODERN: Self = Self::V2026_07_28;
    /// What a handshake is answered with when the client asks for a version that is not served.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// What a request without any claim speaks.
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The version of that exact name, if it is served.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == name)
    }

    /// The era that the version belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_parses_to_itself_and_they_are_listed_newest_first() {
        for version in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::parse(version.as_str()), Some(version));
        }
        assert!(ProtocolVersion::ALL.windows(2).all(|pair| pair[0] > pair[1]));
        assert_eq!(ProtocolVersion::parse("2026-07-28 "), None);
    }
}

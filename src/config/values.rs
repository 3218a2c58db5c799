//! The kinds of values that settings have.

use super::EmbedderChoice;
use crate::telemetry::LogFormat;
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;
use url::Url;

/// A value, or why it can't be read. Parsing it never fails, so that all problems can be told together.
#[derive(Clone, Debug)]
pub struct Setting<T>(pub Result<T, String>);

impl<T: FromStr<Err: Display>> FromStr for Setting<T> {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.trim().parse().map_err(|error| format!("'{text}' can't be read: {error}"))))
    }
}

/// A time such as `90s` or `10m`; a number alone is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Duration);

impl FromStr for Seconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.parse::<u64>() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => humantime::parse_duration(text).ok(),
        };
        // A limit far beyond any use keeps sums of times from overflowing.
        parsed
            .filter(|time| time.as_secs() <= 366 * 24 * 3600)
            .map(Self)
            .ok_or("write a time such as 90s or 10m")
    }
}

/// A size such as `4KiB` or `16MiB`; a number alone is bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub usize);

impl FromStr for ByteSize {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "write a size such as 4KiB or 16MiB";
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: usize = text[..digits].parse().map_err(|_| FORM)?;
        let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            _ => return Err(FORM),
        };
        number.checked_mul(unit).filter(|bytes| *bytes > 0).map(Self).ok_or(FORM)
    }
}

impl Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

/// A harmless value that stands where a setting could not be read. It is never used: the problem ends the start.
pub(super) trait Placeholder {
    fn placeholder() -> Self;
}

macro_rules! placeholders {
    ($($type:ty => $value:expr),* $(,)?) => {
        $(impl Placeholder for $type {
            fn placeholder() -> Self {
                $value
            }
        })*
    };
}

placeholders! {
    Seconds => Self(Duration::ZERO),
    ByteSize => Self(1),
    usize => 1,
    NonZeroUsize => Self::MIN,
    NonZeroU16 => Self::MIN,
    SocketAddr => Self::from(([127, 0, 0, 1], 0)),
    Url => Self::parse("http://localhost").expect("the URL is valid"),
    tracing::Level => Self::INFO,
    LogFormat => Self::Text,
    EmbedderChoice => Self::None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_people_write_them() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("1h 30m", 5400)] {
            assert_eq!(text.parse::<Seconds>().unwrap().0.as_secs(), seconds);
        }
        for (text, bytes) in [("7", 7), ("4KiB", 4096), ("4 kb", 4096), ("2G", 1 << 31)] {
            assert_eq!(text.parse::<ByteSize>().unwrap().0, bytes);
        }
        for bad in ["", "-1", "soon", "1e3"] {
            assert!(bad.parse::<Seconds>().is_err() && bad.parse::<ByteSize>().is_err(), "{bad}");
        }
        assert!("9999999999999h".parse::<Seconds>().is_err());
        assert!("0".parse::<ByteSize>().is_err() && "99999999999999999999G".parse::<ByteSize>().is_err());
    }
}

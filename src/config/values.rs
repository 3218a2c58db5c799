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

/// A value, or what was written instead of one. Parsing it never fails, so that all problems can be told together.
#[derive(Clone, Debug)]
pub struct Setting<T>(pub Result<T, String>);

impl<T: FromStr + Value> FromStr for Setting<T> {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // A URL may hold a password.
        let shown = if text.contains('@') { "the value".to_owned() } else { format!("'{text}'") };
        Ok(Self(text.trim().parse().map_err(|_| shown)))
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch(pub bool);

impl Switch {
    /// How on and off can be written; the docs name all of them.
    pub const WORDS: [[&str; 2]; 4] = [["true", "false"], ["1", "0"], ["yes", "no"], ["on", "off"]];
}

impl FromStr for Switch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        let found = Self::WORDS.iter().find_map(|[on, off]| match () {
            () if is(on) => Some(true),
            () if is(off) => Some(false),
            () => None,
        });
        found.map(Self).ok_or(Self::FORM)
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

/// What a kind of values looks like.
pub trait Value {
    /// What to write.
    const FORM: &'static str;

    /// A harmless value that stands where a setting could not be read. It is never used: the problem ends the start.
    fn placeholder() -> Self;
}

/// A value where nothing else is told with what is wrong with it.
pub(super) fn value<T: FromStr + Value>(text: &str) -> Result<T, &'static str> {
    text.trim().parse().map_err(|_| T::FORM)
}

macro_rules! placeholders {
    ($($type:ty => $value:expr, $form:literal;)*) => {
        $(impl Value for $type {
            const FORM: &'static str = $form;

            fn placeholder() -> Self {
                $value
            }
        })*
    };
}

placeholders! {
    Seconds => Self(Duration::ZERO), "write a time such as 90s or 10m";
    ByteSize => Self(1), "write a size such as 4KiB or 16MiB";
    Switch => Self(false), "write true or false";
    usize => 1, "write a whole number from 0";
    NonZeroUsize => Self::MIN, "write a whole number from 1";
    NonZeroU16 => Self::MIN, "write a whole number from 1 to 65535";
    SocketAddr => Self::from(([127, 0, 0, 1], 0)), "write an IP address and a port, such as 127.0.0.1:8080";
    Url => Self::parse("http://localhost").expect("the URL is valid"),
        "write a whole URL, such as https://gateway.example/mcp/all";
    tracing::Level => Self::INFO, "choose error, warn, info, debug or trace";
    LogFormat => Self::Text, "choose text or json";
    EmbedderChoice => Self::None, "choose builtin or none";
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

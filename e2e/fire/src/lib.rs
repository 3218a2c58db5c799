//! Holds the proxy under fire: what stands behind it lies, breaks and stalls, and what stands before it floods it.
//!
//! [`gateway`] is an upstream whose every answer says whose it is, and that counts what it was asked. [`relay`] breaks
//! the bytes in between. [`client`] asks, [`process`] starts the real binary and looks at it from outside, [`canary`]
//! searches for what must not be told. [`checks`] put them together, one for each promise. It shares no types with the
//! proxy on purpose.
//!
//! Chance follows from a printed seed. With several tasks at once the order of events does not, so a seed replays the
//! same draws rather than the same second.

pub mod canary;
pub mod checks;
pub mod client;
pub mod daemon;
pub mod gateway;
pub mod http;
pub mod mark;
pub mod process;
pub mod relay;
pub mod report;
pub mod rng;

//! What is fuzzed: a function for each target, which takes any bytes and panics when a promise is broken.
//!
//! `fuzz_targets/` has a program for each; `fuzz/run` builds and runs them. The tests here run every committed input
//! once, without any instrumentation.

#![forbid(unsafe_code)]

mod app;
mod cache;
mod catalog;
mod flags;
mod model;
mod search;
mod tools;
mod upstream;
mod wire;

pub use app::{challenge, inbound};
pub use cache::cache;
pub use catalog::{gate, listing};
pub use flags::flags;
pub use model::model;
pub use search::search;
pub use tools::schema;
pub use wire::{json, param_headers, sse};

/// The text before and behind the first line end.
fn two_parts(data: &[u8]) -> (&[u8], &[u8]) {
    let end = data.iter().position(|&byte| byte == b'\n');
    end.map_or((data, &[]), |end| (&data[..end], &data[end + 1..]))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    const TARGETS: [(&str, fn(&[u8])); 12] = [
        ("cache", crate::cache),
        ("challenge", crate::challenge),
        ("flags", crate::flags),
        ("gate", crate::gate),
        ("inbound", crate::inbound),
        ("json", crate::json),
        ("listing", crate::listing),
        ("model", crate::model),
        ("param_headers", crate::param_headers),
        ("schema", crate::schema),
        ("search", crate::search),
        ("sse", crate::sse),
    ];

    #[test]
    fn every_committed_input_passes() {
        for (name, target) in TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
            let mut count = 0;
            for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{name}: {error}")) {
                target(&fs::read(entry.unwrap().path()).unwrap());
                count += 1;
            }
            assert!(count >= 3, "{name} has {count} inputs");
            target(b"");
        }
    }
}

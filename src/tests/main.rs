//! Integration tests, one binary: the whole proxy in process or as a process, with faked upstreams behind it.
//!
//! `support` holds the fakes: [`support::FakeUpstream`] behind the `Upstream` trait, for what does not depend on the
//! wire, and [`support::FakeMcp`] behind a real socket, byte by byte. Names start with the protocol rule or the threat
//! that they prove.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod batches;
mod catalog;
mod connections;
mod cors;
mod environment;
mod evaluation;
mod fetch_model;
mod hanging_up;
mod held_writes;
mod hostile_schemas;
mod http;
mod isolation;
mod login;
mod metrics;
mod model;
mod process;
mod rules;
mod schedules;
mod security;
mod settings;
mod smuggling;
mod support;
mod tidy;
mod tools;
mod tools_bytes;
mod tools_failures;
mod tracing;
mod transcripts;
mod upstream;
mod upstream_changes;
mod upstream_faults;
mod upstream_hostile;
mod upstream_listing;
mod upstream_notices;
mod upstream_resume;
mod upstream_streams;
mod upstream_tls;

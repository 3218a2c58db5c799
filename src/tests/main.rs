//! Integration tests, one binary.

mod fetch_model;

//! The two arms added.

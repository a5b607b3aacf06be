//! The contract between a protocol and its host (design.md §5, docs/adr/0001).
#![forbid(unsafe_code)]

mod execution;

pub use execution::{Execution, Installing, Lookup, Ordered, Outcome, VerifiedFrame};

//! Tests of the trusted component's interface and of its conformance suite.

/// Marks a test that fails without a rule of `docs/protocols/a2m.md`, for `cargo xtask paper`.
macro_rules! covers {
    ($($label:literal),+) => {};
}

mod broken;
mod homes;
mod logs;
mod store;
mod support;
mod verifiers;

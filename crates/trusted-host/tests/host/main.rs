//! Tests of the trusted component's interface and of its conformance suite.

mod broken;
mod homes;
mod logs;
mod store;
mod support;
mod verifiers;

//! Tests of every operation, event and bound.

mod bounds;
mod codec;
mod operations;
mod support;
mod watching;

//! Tests of every operation, event and bound.

mod bounds;
mod codec;
mod frames;
mod operations;
mod support;
mod watching;

//! Tests, by part of the specification.

mod checkpoint;
mod choose;
mod harness;
mod normal;
mod recovery;
mod replies;
mod status;
mod tentative;
mod view_change;
mod wire;

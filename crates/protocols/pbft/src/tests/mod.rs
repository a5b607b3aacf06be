//! Tests, by part of the specification.

mod authenticators;
mod checkpoint;
mod choose;
mod entering;
mod harness;
mod normal;
mod pace;
mod phases;
mod recovery;
mod refuted;
mod replies;
mod status;
mod tentative;
mod useful;
mod view_change;
mod wire;
mod worth;

//! Tests of the trusted core, by subject.

mod a2m;
mod blobs;
mod certificates;
mod engine;
mod exhaustive;
mod faces;
mod keys;
mod runs;
mod size;
mod state;
mod support;
mod values;

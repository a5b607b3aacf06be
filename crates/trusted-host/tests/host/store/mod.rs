//! Tests of the durable store: what it survives, and what it refuses.

mod blob_crashes;
mod blob_damage;
mod blobs;
mod crashes;
mod damage;
pub mod disk;
mod fixture;
mod full;
mod homes;
pub mod machine;
mod rules;
mod support;

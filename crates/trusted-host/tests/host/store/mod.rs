//! Tests of the durable store: what it survives, and what it refuses.

mod blob_crashes;
mod blob_damage;
mod blobs;
mod crashes;
mod damage;
mod disk;
mod fixture;
mod full;
mod homes;
mod machine;
mod rules;
mod support;

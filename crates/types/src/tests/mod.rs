//! Round trips, canonical form and the pinned encodings of the shared types.
mod codec;
mod configuration;
mod group;

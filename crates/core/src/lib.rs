//! The contract between a protocol and its host

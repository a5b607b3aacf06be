//! What the replica does around its protocol and its executor.

mod events;
mod hashing;
mod proofs;
mod proving;
mod reads;
mod stubs;
mod transfer;

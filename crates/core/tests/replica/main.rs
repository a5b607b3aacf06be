//! What the replica does around its protocol and its executor.

mod stubs;
mod transfer;

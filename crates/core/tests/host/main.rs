//! The host's one loop: the order of its commands, what a crash between any two of them leaves, and when
//! it refuses to go on.

mod crash;
mod logs;
mod order;
mod scribe;

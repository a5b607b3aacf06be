//! Tests of the rules that `docs/protocols/a2m-pbft-e.md` labels, over components that keep real logs.

mod checkpoint;
mod client;
mod harness;
mod reads;
mod replies;
mod restart;

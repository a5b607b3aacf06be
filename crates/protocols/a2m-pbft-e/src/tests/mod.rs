//! Tests of the rules that `docs/protocols/a2m-pbft-e.md` labels, over components that keep real logs.

mod again;
mod certificates;
mod checkpoint;
mod client;
mod diverged;
mod harness;
mod reads;
mod renewal;
mod replies;
mod restart;
mod useful;

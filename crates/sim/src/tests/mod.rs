//! Tests of the simulator itself.

mod checkers;
mod histories;
mod networks;
mod pbft;
mod random;
mod reminded;
mod runs;
mod storages;

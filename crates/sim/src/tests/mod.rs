//! Tests of the simulator itself.

mod checkers;
mod coordination;
mod heirs;
mod histories;
mod jumps;
mod networks;
mod pbft;
mod random;
mod relapses;
mod reminded;
mod runs;
mod storages;

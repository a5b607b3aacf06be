//! Tests of MinBFT: one for each rule of docs/protocols/minbft.md, the schedules that the rules are
//! there for, and the wire.

mod beyond;
mod craft;
mod given;
mod harness;
mod hidden;
mod journal;
mod looked_again;
mod paper_bounds;
mod paper_checkpoint;
mod paper_clients;
mod paper_counters;
mod paper_epochs;
mod paper_evidence;
mod paper_new_view;
mod paper_normal;
mod paper_pace;
mod paper_readmission;
mod paper_recovery;
mod paper_repair;
mod paper_transfer;
mod paper_view_change;
mod replaced;
mod requests;
mod schedules;
mod smoke;
mod void;
mod wire;

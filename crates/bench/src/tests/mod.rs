//! Tests of what needs no servers.
mod allocations;
mod cost;
mod flood;
mod junk;
mod open;
mod peers;
mod protocols;
mod report;

//! Tests of what needs no servers.
mod allocations;
mod open;
mod peers;
mod report;

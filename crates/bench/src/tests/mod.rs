//! Tests of what needs no servers.
mod allocations;
mod open;
mod report;

//! Tests of what needs no servers.
mod peers;
mod report;

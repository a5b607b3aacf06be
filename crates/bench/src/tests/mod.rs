//! Tests of what needs no servers.
mod report;

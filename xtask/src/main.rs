//! Checks, simulation, paper coverage, planted bugs, benchmarks
fn main() {}

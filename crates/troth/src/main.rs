//! The troth command
fn main() {}

//! Tests of what needs no process.

mod print;
mod users;

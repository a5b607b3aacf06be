//! Tests of what needs no process.

mod doctor;
mod print;
mod users;

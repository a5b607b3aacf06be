//! Tests of what needs no process.

mod doctor;
mod how_to_start;
mod print;
mod room;
mod users;

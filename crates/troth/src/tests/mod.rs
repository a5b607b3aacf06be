//! Tests of what needs no process.

mod doctor;
mod help;
mod how_to_start;
mod mistakes;
mod print;
mod reach;
mod room;
mod suggest;
mod users;

//! Tests of the map, the client table, the executor and state transfer.

mod client_table;
mod configuration;
mod content;
mod formats;
mod map_history;
mod moving;
mod order;
mod outbox;
mod pace;
mod pages;
mod restore;
mod salvage;
mod support;
mod tentative;
mod transfer;

mod config;
mod connection;
mod engine;
mod http;
mod inbox;
mod marker;
mod places;
mod timers;

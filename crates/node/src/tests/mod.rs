mod config;
mod engine;
mod http;
mod inbox;
mod marker;
mod timers;

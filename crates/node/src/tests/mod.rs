mod config;
mod http;
mod inbox;
mod marker;
mod timers;

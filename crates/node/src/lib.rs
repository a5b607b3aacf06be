//! The runtime: sockets, timers, metrics

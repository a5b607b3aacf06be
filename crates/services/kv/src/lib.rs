//! The kv and null services

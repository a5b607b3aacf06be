//! Clients: the reply rule as a pure machine and an async front

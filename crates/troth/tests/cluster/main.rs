//! Real processes: the `troth` command as a user runs it. Every wait has a condition and a deadline,
//! and whatever a test starts ends with it, also when it fails.

#![expect(clippy::disallowed_methods, reason = "a test of processes waits for them")]

mod a2m;
mod a2m_renewal;
mod admin;
mod backup;
#[cfg(feature = "demo-adversary")]
mod demo;
#[cfg(feature = "demo-adversary")]
mod diverged;
mod doctor;
mod durability;
mod full;
mod gateway;
mod import;
mod import_strange;
mod killed;
mod life;
mod operating;
mod pbft;
mod pbft_reads;
mod printing;
mod reach;
mod refusals;
mod stopping;
mod support;
mod trusted;
mod trusted_users;
mod zookeeper;

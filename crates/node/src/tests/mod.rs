mod asked;
mod asked_late;
mod authenticators;
mod backup;
mod bodies;
mod bodies_crash;
mod charges;
mod component_pairs;
mod config;
mod connection;
mod engine;
mod far_ahead;
mod flood;
mod full_disk;
mod http;
mod inbox;
mod journal;
mod known;
mod marker;
mod notes;
mod pace;
mod passed_over;
mod pbft;
mod places;
mod remembered;
mod set_back;
mod shares;
mod snapshots;
mod standing;
mod timers;
mod trusted_config;
mod versions;
mod zookeeper;

use crate::beside::{Desk, Done};
use std::time::Duration;

/// Waits for what a thread beside the loop did next.
fn next_done(desk: &Desk, runtime: &tokio::runtime::Runtime) -> Done {
    let next = async {
        loop {
            if let Some(done) = desk.take() {
                return done;
            }
            desk.woken().await;
        }
    };
    let patience = Duration::from_secs(60);
    let done = runtime.block_on(async { tokio::time::timeout(patience, next).await });
    done.expect("the threads answer")
}

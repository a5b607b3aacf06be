//! `troth demo`: three replicas, one of which is killed, comes back as a liar, and is replaced; then all are
//! killed at once. A model is held against every answer.

mod failures;
mod model;
mod stage;
mod steps;

use crate::cli::Demo;
use crate::failure::{Failure, NOT_DONE};
use crate::print::say;
use stage::Stage;
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};

/// One thing that the demonstration shows.
struct Step {
    /// What it shows, in plain words.
    title: &'static str,
    /// Why that is worth showing.
    words: &'static str,
}

const STEPS: [Step; 8] = [
    Step {
        title: "Three replicas start, each with its trusted component in a process of its own",
        words: "One of three may fail in any way. What a replica promises is on its disk before anybody hears of it, and \
                its component certifies no two things under one number.",
    },
    Step {
        title: "Write 2000 keys, 32 requests at a time",
        words: "A write is done when two replicas agree on the outcome: at least one of them is correct.",
    },
    Step {
        title: "Watch keys while they change",
        words: "Each change must arrive once, in order, and nothing else.",
    },
    Step {
        title: "Two clients want the same key at once",
        words: "Compare-and-swap: of two that expect the same version, exactly one may win, every time.",
    },
    Step {
        title: "Kill the primary with SIGKILL in the middle of 2000 writes",
        words: "The others notice, agree on a new primary and carry over all that was decided. No write may be lost, \
                doubled or answered wrongly.",
    },
    Step {
        title: "It comes back in the hands of an adversary",
        words: "It has its disk and its component, sends wrong results and invented events to clients, and corrupted, \
                contradicting and stale messages to the others. Asked alone, it says what it likes; the group does not.",
    },
    Step {
        title: "Remove it, and admit a fresh replica in its place",
        words: "An operator's order, carried out by all at the same place: what the old component certified counts no more, \
                the new one votes as soon as nothing of the old one can be missing. To show that it does, another replica is killed.",
    },
    Step {
        title: "Kill everything at once, start it again and compare the whole store",
        words: "Every write that was ever confirmed must be there, with its value and version, and nothing else.",
    },
];

pub(crate) fn run(demo: &Demo) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::system("cannot start", &why))?;
    let began = Instant::now();
    let result = runtime.block_on(async {
        let listen = |kind| signal(kind).map_err(|why| Failure::system("cannot listen for signals", &why));
        let (mut interrupt, mut terminate) =
            (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        tokio::select! {
            shown = show(demo) => shown,
            _ = interrupt.recv() => Err(stopped()),
            _ = terminate.recv() => Err(stopped()),
        }
    });
    match &result {
        Ok(checked) => say!(
            "\nAll {checked} answers were right, in {:.1} s. Play on: `make up`.",
            began.elapsed().as_secs_f64()
        ),
        Err(_) => say!("\nThe demonstration FAILED."),
    }
    result.map(drop)
}

fn stopped() -> Failure {
    Failure::new(NOT_DONE, "stopped by a signal; everything is cleaned up")
}

async fn show(demo: &Demo) -> Result<u64, Failure> {
    announce(0);
    let mut stage = Stage::set(demo.keep).await?;
    done(&format!("they serve, and are connected to each other; files in {}", stage.place()));
    for index in 1..STEPS.len() {
        announce(index);
        let seen = match index {
            1 => steps::write(&mut stage).await,
            2 => steps::watch(&mut stage).await,
            3 => steps::compete(&mut stage).await,
            4 => steps::kill_primary(&mut stage).await,
            5 => failures::come_back_lying(&mut stage).await,
            6 => failures::replace_the_liar(&mut stage).await,
            _ => failures::lose_power(&mut stage).await,
        };
        done(&seen?);
    }
    Ok(stage.model.checked())
}

fn announce(index: usize) {
    let step = &STEPS[index];
    say!("\n[{}/{}] {}", index + 1, STEPS.len(), step.title);
    say!("      {}", step.words);
}

fn done(seen: &str) {
    say!("      -> {seen}");
}

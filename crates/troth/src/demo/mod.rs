//! `troth demo`: five replicas, one of which lies and one of which is killed, and a model that every
//! answer is held against.

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

const STEPS: [Step; 7] = [
    Step {
        title: "Five replicas start as five processes; replica 1 is run by an adversary",
        words: "Two of five may fail in any way. Replica 1 sends wrong results and invented events to clients, and \
                corrupted, contradicting and stale messages to the others.",
    },
    Step {
        title: "Write 2000 keys, 32 requests at a time",
        words: "A write is done when three replicas agree on the outcome: at least one of them is correct.",
    },
    Step {
        title: "Read them back, and catch the liar",
        words: "Asked alone, the liar says what it likes. The group says what was written.",
    },
    Step {
        title: "Watch keys while they change",
        words: "Each change must arrive once, in order, and nothing else, although the liar invents changes.",
    },
    Step {
        title: "Two clients want the same key at once",
        words: "Compare-and-swap: of two that expect the same version, exactly one may win, every time.",
    },
    Step {
        title: "Kill the primary with SIGKILL in the middle of 2000 writes",
        words: "The others notice, agree on a new primary and carry over all that was decided. No write may be lost, \
                doubled or answered wrongly. The next in line is the liar: as primary it hides its proposals from half of the others.",
    },
    Step {
        title: "Compare everything once more",
        words: "A scan of the whole store must equal the model, and the correct replicas must agree and accuse no correct one.",
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
            "\nAll {checked} answers were right, in {:.1} s, with two of five replicas failed. Play on: `make up`.",
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
            2 => steps::read(&mut stage).await,
            3 => steps::watch(&mut stage).await,
            4 => steps::compete(&mut stage).await,
            5 => steps::kill_primary(&mut stage).await,
            _ => steps::compare(&mut stage).await,
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

//! `troth demo`: three replicas, one of which is killed, comes back as a liar, and is replaced; then all are
//! killed at once. A model is held against every answer. With other protocols than MinBFT none is replaced.

mod failures;
mod model;
mod stage;
mod steps;

use crate::cli::Demo;
use crate::failure::{Failure, NOT_DONE};
use crate::init::fits;
use crate::print::say;
use stage::Stage;
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};
use troth_node::config::{Auth, Protocol};

/// What is done in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Start,
    Write,
    Watch,
    Compete,
    KillPrimary,
    ComeBackLying,
    ReplaceTheLiar,
    LosePower,
}

/// One thing that the demonstration shows.
struct Step {
    act: Act,
    /// What it shows, in plain words.
    title: &'static str,
    /// Why that is worth showing.
    words: &'static str,
}

const STEPS: [Step; 8] = [
    Step {
        act: Act::Start,
        title: "Three replicas start, each with its trusted component in a process of its own",
        words: "One of three may fail in any way. What a replica promises is on its disk before anybody hears of it, and \
                its component certifies no two things under one number.",
    },
    Step {
        act: Act::Write,
        title: "Write 2000 keys, 32 requests at a time",
        words: "A write is done when two replicas agree on the outcome: at least one of them is correct.",
    },
    Step {
        act: Act::Watch,
        title: "Watch keys while they change",
        words: "Each change must arrive once, in order, and nothing else.",
    },
    Step {
        act: Act::Compete,
        title: "Two clients want the same key at once",
        words: "Compare-and-swap: of two that expect the same version, exactly one may win, every time.",
    },
    Step {
        act: Act::KillPrimary,
        title: "Kill the primary with SIGKILL in the middle of 2000 writes",
        words: "The others notice, agree on a new primary and carry over all that was decided. No write may be lost, \
                doubled or answered wrongly.",
    },
    Step {
        act: Act::ComeBackLying,
        title: "It comes back in the hands of an adversary",
        words: "It has its disk and its component, sends wrong results and invented events to clients, and corrupted, \
                contradicting and stale messages to the others. Asked alone, it says what it likes; the group does not.",
    },
    Step {
        act: Act::ReplaceTheLiar,
        title: "Remove it, and admit a fresh replica in its place",
        words: "An operator's order, carried out by all at the same place: what the old component certified counts no more, \
                the new one votes as soon as nothing of the old one can be missing. To show that it does, another replica is killed.",
    },
    Step {
        act: Act::LosePower,
        title: "Kill everything at once, start it again and compare the whole store",
        words: "Every write that was ever confirmed must be there, with its value and version, and nothing else.",
    },
];

/// What other words PBFT needs.
const PBFT: [Step; 2] = [
    Step {
        act: Act::Start,
        title: "Four replicas start, and nothing in any of them is trusted",
        words: "One of four may fail in any way. What a replica promises is on its disk before anybody hears of it, and three \
                must have heard the same before anything is done.",
    },
    Step {
        act: Act::ComeBackLying,
        title: "It comes back in the hands of an adversary",
        words: "It sends wrong results and invented events to clients, votes for something else towards each of the others, and \
                sends them corrupted and stale messages. Asked alone, it says what it likes; the group does not.",
    },
];

/// What other words A2M-PBFT-E needs.
const A2M_PBFT_E: [Step; 2] = [
    Step {
        act: Act::Start,
        title: "Four replicas start, each with a component in a process of its own that attests what it executed",
        words: "One of four may fail in any way. Were two to lie, nothing need get done any more, and yet nobody is shown two \
                histories: a component appends to one, and clients ask to see it.",
    },
    Step {
        act: Act::Write,
        title: "Write 2000 keys, 32 requests at a time",
        words: "A write is done when three replicas agree on the outcome and show, each attested by its component, the same \
                history up to it.",
    },
];

/// What other words A2M-PBFT-EA needs.
const A2M_PBFT_EA: [Step; 1] = [Step {
    act: Act::Start,
    title: "Three replicas start, each with a component in a process of its own that attests all that it says",
    words: "One of three may fail in any way. What a replica promises is on its disk before anybody hears of it, and its \
            component's logs hold one message for each place in the protocol.",
}];

/// The steps that a group of this protocol goes through.
fn steps(protocol: Protocol) -> Vec<&'static Step> {
    let others: &'static [Step] = match protocol {
        Protocol::MinBft => &[],
        Protocol::Pbft => &PBFT,
        Protocol::A2mPbftE => &A2M_PBFT_E,
        Protocol::A2mPbftEa => &A2M_PBFT_EA,
    };
    let other = |step: &'static Step| others.iter().find(|other| other.act == step.act);
    let kept = STEPS.iter().filter(|step| protocol.readmits() || step.act != Act::ReplaceTheLiar);
    kept.map(|step| other(step).unwrap_or(step)).collect()
}

/// By what requests show whose they are.
fn auth(demo: &Demo) -> Auth {
    demo.auth.unwrap_or_default()
}

pub(crate) fn run(demo: &Demo) -> Result<(), Failure> {
    fits(demo.protocol, auth(demo))?;
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
    let (protocol, auth) = (demo.protocol, auth(demo));
    let steps = steps(protocol);
    announce(0, &steps);
    let mut stage = Stage::set(protocol, auth, demo.keep).await?;
    done(&format!("they serve, and are connected to each other; files in {}", stage.place()));
    for (index, step) in steps.iter().enumerate().skip(1) {
        announce(index, &steps);
        let seen = match step.act {
            Act::Start => continue,
            Act::Write => steps::write(&mut stage).await,
            Act::Watch => steps::watch(&mut stage).await,
            Act::Compete => steps::compete(&mut stage).await,
            Act::KillPrimary => steps::kill_primary(&mut stage).await,
            Act::ComeBackLying => failures::come_back_lying(&mut stage).await,
            Act::ReplaceTheLiar => failures::replace_the_liar(&mut stage).await,
            Act::LosePower => failures::lose_power(&mut stage).await,
        };
        done(&seen?);
    }
    Ok(stage.model.checked())
}

fn announce(index: usize, steps: &[&Step]) {
    let step = steps[index];
    say!("\n[{}/{}] {}", index + 1, steps.len(), step.title);
    say!("      {}", step.words);
}

fn done(seen: &str) {
    say!("      -> {seen}");
}

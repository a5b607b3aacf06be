//! Crashes: between any two commands, once and again; logs that are whole and logs that are not.

use crate::scribe::{Ask, ENV, Home, ME, Said, Scribe, group, name, names};
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::ModelSigner;
use troth_core::{Command, Host, LogRecord, RecoveryError, Resume};
use troth_trusted::CounterValue;
use troth_trusted::a2m::LogId;
use troth_types::Wire;

/// What must hold after every start: the own messages are all that the component certified, each once
/// and in order, and what ever left is among them, word for word.
fn consistent(home: &mut Home, context: &str) {
    let own = home.scribe().own.clone();
    let counter = home.counter();
    assert_eq!(own.last().map_or(CounterValue(0), Said::value), counter, "{context}: up to the component");
    let mut predecessor = CounterValue(0);
    for said in &own {
        let ui = said.ui.as_ref().expect("certified");
        assert_eq!(ui.predecessor(), predecessor, "{context}: without a gap");
        predecessor = ui.value();
    }
    let known: BTreeMap<CounterValue, &Said> = own.iter().map(|said| (said.value(), said)).collect();
    for sent in home.sent.iter().filter(|said| said.ui.is_some()) {
        assert_eq!(known.get(&sent.value()), Some(&sent), "{context}: what left was promised");
    }
}

/// Goes through a script and crashes before the given command (counted over the whole script); whether
/// the crash came.
fn crash_at(home: &mut Home, script: &[Ask], at: usize) -> bool {
    let mut left = at;
    for ask in script {
        home.ask(*ask);
        while let Some(command) = home.host().command() {
            if left == 0 {
                return true;
            }
            left -= 1;
            home.obey(command);
        }
    }
    false
}

const SCRIPTS: &[&[Ask]] = &[
    &[Ask::Certify(1), Ask::Certify(1), Ask::Certify(1)],
    &[Ask::Certify(2), Ask::Send, Ask::Certify(3)],
    &[Ask::Certify(5), Ask::Jump, Ask::Certify(1), Ask::Jump, Ask::Jump, Ask::Certify(4)],
    &[Ask::Everything, Ask::Persist, Ask::Everything, Ask::Remember, Ask::Certify(2)],
    &[Ask::Certify(3), Ask::Compact, Ask::Send, Ask::Certify(2), Ask::Compact, Ask::Everything],
    &[Ask::Jump, Ask::Compact, Ask::Certify(4), Ask::Persist, Ask::Jump, Ask::Send],
];

#[test]
fn a_crash_between_any_two_commands_contradicts_nothing() {
    for script in SCRIPTS {
        for at in 0.. {
            let mut home = Home::new(true);
            let crashed = crash_at(&mut home, script, at);
            home.again().expect("its log is whole");
            consistent(&mut home, &format!("{script:?} crashed before {at}"));
            home.ask(Ask::Certify(2));
            home.ask(Ask::Jump);
            home.run();
            consistent(&mut home, &format!("{script:?} crashed before {at}, and went on"));
            if !crashed {
                break;
            }
        }
    }
}

#[test]
fn a_second_crash_contradicts_nothing_either() {
    for script in SCRIPTS {
        'first: for at in 0.. {
            for then in 0.. {
                let mut home = Home::new(true);
                let first = crash_at(&mut home, script, at);
                home.again().expect("its log is whole");
                let again = [Ask::Certify(3), Ask::Compact, Ask::Jump, Ask::Everything];
                let second = crash_at(&mut home, &again, then);
                home.again().expect("its log is whole");
                consistent(&mut home, &format!("{script:?} crashed before {at} and {then}"));
                home.ask(Ask::Certify(1));
                home.run();
                consistent(&mut home, &format!("{script:?} crashed before {at} and {then}, and went on"));
                if !second {
                    if !first {
                        break 'first;
                    }
                    break;
                }
            }
        }
    }
}

#[test]
fn the_component_answered_and_the_host_never_heard() {
    // A crash between the component's move and everything after it, for runs of 1 to 20.
    for count in 1..=20 {
        let mut home = Home::new(true);
        home.ask(Ask::Certify(2));
        home.run();
        home.ask(Ask::Certify(count));
        let call = home.run_until_asked();
        home.attest(call);
        assert_eq!(home.sent.len(), 2);
        home.again().expect("the bodies are there and the component gives its certificate again");
        assert_eq!(home.scribe().own.len() as u64, 2 + count);
        consistent(&mut home, &format!("a run of {count}"));
    }
}

#[test]
fn a_body_that_was_never_certified_is_replaced() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(3));
    home.run_until_asked();
    home.again().expect("its log is whole");
    assert!(home.scribe().own.is_empty(), "nothing was certified");
    home.ask(Ask::Certify(1));
    home.run();
    home.again().expect("its log is whole");
    let own = &home.scribe().own;
    assert_eq!((own.len(), own[0].word), (1, 1_000_001), "the word of its second life");
}

fn recovered(home: &mut Home, log: &[bytes::Bytes]) -> Result<(), RecoveryError> {
    let resumed = home.resumed();
    let signer = Arc::new(ModelSigner::new(1));
    let counters = [resumed];
    let resume = Resume { counters: &counters, logs: &[] };
    Host::recover(Scribe::default(), ME, group(), signer, ENV, None, log, resume).map(drop)
}

#[test]
fn a_log_older_than_the_component_is_refused() {
    for count in [1, 2, 5] {
        let mut home = Home::new(true);
        home.ask(Ask::Certify(1));
        home.run();
        let old = home.log.clone();
        home.ask(Ask::Certify(count));
        home.run();
        let whole = home.log.clone();
        assert!(recovered(&mut home, &whole).is_ok());
        let refused = recovered(&mut home, &old);
        assert!(matches!(refused, Err(RecoveryError::BodyMissing(_, _))), "{refused:?}");
        assert!(matches!(recovered(&mut home, &[]), Err(RecoveryError::BodyMissing(_, _))));
        // Any body of the last run that is missing, or is another body.
        for at in 0..whole.len() {
            let LogRecord::Own { counter, previous, new, .. } =
                LogRecord::from_wire(&whole[at]).expect("a record")
            else {
                continue;
            };
            let mut burned = whole.clone();
            burned.remove(at);
            assert!(
                matches!(recovered(&mut home, &burned), Err(RecoveryError::BodyMissing(_, _))),
                "{new:?}"
            );
            if new > CounterValue(1) {
                let mut other = whole.clone();
                other[at] = LogRecord::Own { counter, previous, new, body: 424_242u64.to_wire() }.to_wire();
                let refused = recovered(&mut home, &other);
                assert!(matches!(refused, Err(RecoveryError::BodyMissing(_, _))), "{new:?}: {refused:?}");
            }
        }
    }
}

#[test]
fn what_does_not_decode_is_refused() {
    let mut home = Home::new(true);
    home.ask(Ask::Everything);
    home.run();
    let whole = home.log.clone();
    for at in 0..whole.len() {
        for cut in 0..whole[at].len() {
            let mut log = whole.clone();
            log[at] = log[at].slice(..cut);
            assert!(matches!(recovered(&mut home, &log), Err(RecoveryError::Malformed(_))));
        }
    }
    let mut log = whole.clone();
    log.push(bytes::Bytes::from_static(&[9]));
    assert!(matches!(recovered(&mut home, &log), Err(RecoveryError::Malformed(_))));
}

#[test]
fn a_log_of_another_protocol_is_refused() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(1));
    home.run();
    let whole = home.log.clone();
    assert!(recovered(&mut home, &whole).is_ok());
    // A body that counters certify, said to fill a slot.
    let body = 7u64.to_wire();
    let filled = LogRecord::OwnInLog { log: LogId(1), slot: CounterValue(1), body };
    let mut log = whole.clone();
    log.push(filled.to_wire());
    assert!(matches!(recovered(&mut home, &log), Err(RecoveryError::Malformed(_))));
}

#[test]
fn a_machine_may_refuse_what_it_starts_from() {
    let mut home = Home::new(true);
    home.snapshot = Some(bytes::Bytes::from_static(b"bad"));
    assert_eq!(home.again(), Err(RecoveryError::Machine("a bad snapshot")));
    for error in [
        RecoveryError::Machine("why"),
        RecoveryError::BodyMissing(crate::scribe::COUNTER, CounterValue(255)),
        RecoveryError::Malformed(troth_types::Malformed::Short),
    ] {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_fresh_segment_holds_what_matters() {
    let mut home = Home::new(true);
    home.ask(Ask::Everything);
    home.ask(Ask::Certify(2));
    home.run();
    let before = home.scribe().clone();
    home.ask(Ask::Compact);
    assert!(home.host().command().is_none(), "it waits for the next phase");
    home.ask(Ask::Send);
    let done = home.run();
    assert_eq!(name(&done[0]), "segment");
    assert_eq!(names(&done).last(), Some(&"send"));
    home.again().expect("its log is whole");
    assert_eq!(home.scribe().restored.as_deref(), Some(&b"snapshot at 4"[..]));
    assert_eq!(home.scribe().own, before.own);
    assert_eq!(home.scribe().records, before.records);
}

#[test]
fn a_segment_beside_the_old_one_changes_nothing_wherever_it_is_torn() {
    for under_way in [0, 1, 3] {
        let mut home = Home::new(true);
        home.ask(Ask::Everything);
        home.ask(Ask::Certify(5));
        home.run();
        if under_way > 0 {
            home.ask(Ask::Certify(under_way));
            home.run_until_asked();
        }
        let (before, old) = (home.scribe().clone(), home.log.clone());
        home.ask(Ask::Compact);
        home.ask(Ask::Send);
        let carried: Vec<bytes::Bytes> = home
            .run()
            .into_iter()
            .filter_map(|command| match command {
                Command::Append(bytes) => Some(bytes),
                _ => None,
            })
            .collect();
        assert!(carried.len() > 6, "the messages, the records, the bodies under way and the mark");
        // The snapshot is not there yet, so the old segment still is.
        for kept in 0..=carried.len() {
            home.snapshot = None;
            home.log = [&old[..], &carried[..kept]].concat();
            home.again().unwrap_or_else(|why| panic!("{kept} of {}: {why}", carried.len()));
            assert_eq!(home.scribe().own, before.own, "{kept} of {}", carried.len());
            let mut records = home.scribe().records.clone();
            records.sort_unstable();
            records.dedup();
            assert_eq!(records, before.records, "no record is lost; one may be there twice");
        }
        // The mark says that the messages before it are not needed.
        home.log = carried;
        home.again().expect("the segment stands alone");
        assert_eq!(home.scribe().own, before.own);
        consistent(&mut home, &format!("{under_way} under way"));
    }
}

#[test]
fn a_state_from_others_is_durable_before_what_rests_on_it() {
    for (asks, needed) in [
        (&[Ask::Compact][..], Some(false)),
        (&[Ask::Rebase], Some(true)),
        (&[Ask::Rebase, Ask::Compact], Some(true)),
        (&[Ask::Compact, Ask::Rebase], Some(true)),
        (&[Ask::Rebase, Ask::CompactAhead], Some(true)),
        (&[Ask::CompactAhead], None),
    ] {
        let mut home = Home::new(true);
        for ask in asks {
            home.ask(*ask);
        }
        home.ask(Ask::Certify(1));
        let done = home.run();
        let expected: &[&str] = match needed {
            Some(_) => &["segment", "append", "append", "sync", "attest", "certified"],
            None => &["append", "sync", "attest", "certified"],
        };
        assert_eq!(names(&done), expected, "{asks:?}");
        let begun = done.iter().find_map(|command| match command {
            Command::NewSegment { needed, .. } => Some(*needed),
            _ => None,
        });
        assert_eq!(begun, needed, "{asks:?}");
    }
}

#[test]
fn a_state_from_others_that_is_not_there_yet_is_not_forgotten() {
    let begun = |done: &[Command<crate::scribe::Scribe>]| {
        done.iter().find_map(|command| match command {
            Command::NewSegment { snapshot, needed } => Some((snapshot.clone(), *needed)),
            _ => None,
        })
    };
    let mut home = Home::new(true);
    // Its state was let go for a later one, whose own is not finished.
    home.ask(Ask::RebaseAhead);
    for _ in 0..2 {
        home.ask(Ask::Certify(1));
        assert_eq!(begun(&home.run()), None);
    }
    home.ask(Ask::Reach);
    home.host().allow_segments(false);
    home.ask(Ask::Certify(1));
    let snapshot = bytes::Bytes::from_static(b"snapshot at 5");
    assert_eq!(begun(&home.run()), Some((snapshot, true)), "it is needed as it was");
    home.ask(Ask::Certify(1));
    assert_eq!(begun(&home.run()), None, "once");
}

#[test]
fn what_waits_is_counted_in_bytes_until_it_is_taken_out() {
    let mut home = Home::new(true);
    assert_eq!(home.host().backlog_bytes(), 0);
    home.ask(Ask::Everything);
    let one = home.host().backlog_bytes();
    assert!(one > 0);
    for _ in 0..9 {
        home.ask(Ask::Everything);
    }
    assert!(home.host().backlog_bytes() >= 10 * one);
    home.run();
    // The last certificate stays for the next sync.
    assert!((1..one).contains(&home.host().backlog_bytes()));
    home.ask(Ask::Compact);
    home.ask(Ask::Certify(3));
    home.run();
    assert!((1..one).contains(&home.host().backlog_bytes()), "also of what was carried over");
}

#[test]
fn a_segment_waits_until_it_is_welcome_unless_it_is_needed() {
    let mut home = Home::new(true);
    home.host().allow_segments(false);
    home.ask(Ask::Compact);
    home.ask(Ask::Certify(1));
    assert!(!names(&home.run()).contains(&"segment"), "it is not welcome");
    home.host().allow_segments(true);
    home.ask(Ask::Certify(1));
    assert_eq!(names(&home.run())[0], "segment", "nor forgotten");
    home.host().allow_segments(false);
    home.ask(Ask::Rebase);
    home.ask(Ask::Certify(1));
    assert_eq!(names(&home.run())[0], "segment", "it is needed");
}

#[test]
fn a_mark_lets_go_of_what_the_machine_let_go() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(4));
    home.run();
    let mut log = home.log.clone();
    let last = home.scribe().own.last().expect("it said four words").clone();
    log.push(LogRecord::Sealed(last.to_wire()).to_wire());
    log.push(LogRecord::CarriedOver(1).to_wire());
    home.log = log;
    home.again().expect("its log is whole");
    assert_eq!(home.scribe().own, [last]);
}

#[test]
fn a_segment_begun_while_a_run_is_under_way_holds_its_bodies() {
    for (count, certified) in [(1, false), (1, true), (7, false), (7, true)] {
        let mut home = Home::new(true);
        home.ask(Ask::Certify(2));
        home.run();
        home.ask(Ask::Certify(count));
        let call = home.run_until_asked();
        home.ask(Ask::Compact);
        home.ask(Ask::Send);
        let done = home.run();
        assert!(names(&done).starts_with(&["segment"]));
        let bodies = done
            .iter()
            .filter(|command| match command {
                Command::Append(bytes) => {
                    matches!(LogRecord::from_wire(bytes), Ok(LogRecord::Own { .. }))
                }
                _ => false,
            })
            .count();
        assert_eq!(bodies as u64, count, "the old segment had them, and it is gone");
        if certified {
            home.attest(call);
        }
        home.again().expect("its log is whole");
        let expected = 2 + if certified { count } else { 0 };
        assert_eq!(home.scribe().own.len() as u64, expected);
        consistent(&mut home, &format!("a run of {count}, certified: {certified}"));
    }
}

#[test]
fn a_segment_that_was_not_synced_never_was() {
    let mut home = Home::new(true);
    home.ask(Ask::Everything);
    home.run();
    let before = home.scribe().own.clone();
    home.ask(Ask::Compact);
    home.ask(Ask::Send);
    while let Some(command) = home.host().command() {
        if matches!(command, Command::Sync) {
            break;
        }
        home.obey(command);
    }
    home.again().expect("the old segment is whole");
    assert_eq!((home.scribe().restored.as_ref(), &home.scribe().own), (None, &before));
}

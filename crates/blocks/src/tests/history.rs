//! The account of a history log by itself, with a component that says what a test wants.

use super::at;
use crate::{HistoryLog, MOST_VALUES};
use troth_auth::HISTORY_LOG;
use troth_core::BatchRun;
use troth_trusted::a2m::{
    A2m, Answer, Attestation, Claim, Content, LOGS, Operation, Request, Slot, chained, slot_nonce,
};
use troth_trusted::{Certifier, Epoch, Identity, MacKey, Proof, VolatileStore};
use troth_trusted_host::repetition::can_be_answered_later;
use troth_trusted_host::{LogRoom, log_room};
use troth_types::{Batch, Digest, GroupId, Seq, Time};

fn said(request: Request, slot: Slot, content: Content) -> Answer {
    let claim = Claim { request, log: HISTORY_LOG, slot, nonce: slot_nonce(slot), content };
    Answer::Attested(Attestation { epoch: Epoch(1), claim, proof: Proof::Mac([0; 32]) })
}

fn batch(number: u64) -> Batch {
    Batch { time: Time(number), frames: vec![Digest([1; 32])] }
}

/// More than any of these tests fills.
const ROOM: usize = 1 << 20;

/// The account of an empty log, whose component has said so.
fn fresh() -> HistoryLog {
    with_room(ROOM)
}

/// The same of one with room for so many slots.
fn with_room(room: usize) -> HistoryLog {
    let mut log = HistoryLog::new(GroupId(*b"tests-of-blocks-"), room);
    let (ticket, _) = log.start(Seq(0), Seq(0));
    assert!(log.asked(ticket));
    let nothing = Content::Forgotten { low: at(0) };
    let answers = vec![said(Request::End, at(0), nothing), said(Request::Lookup, at(0), nothing)];
    assert_eq!(log.answered(ticket, answers), Ok(Vec::new()));
    log
}

#[test]
fn a_gap_that_nobody_fills_makes_nobody_keep_everything() {
    let mut log = fresh();
    log.installed(Seq(100));
    for number in 101..=140_000 {
        log.executed(Seq(number), &batch(number), Vec::new()).expect("a small batch");
    }
    assert_eq!(log.lacks(), Some(Seq(1)));
    assert_eq!(log.calls(), None, "nothing is appended over a gap");
    assert_eq!(log.len(), 4096);
    let kept = log.kept();
    let runs: Vec<_> = kept.iter().map(|(from, values)| (from.0, values.len())).collect();
    assert_eq!(runs, [(140_000 - 131_071, MOST_VALUES), (140_000 - 65_535, MOST_VALUES)]);
}

/// The digest of a history that holds these values from the first number on.
fn digest_of(values: &[Digest]) -> Digest {
    let slots = (1..).map(at).zip(values);
    Digest(slots.fold([0; 32], |digest, (slot, value)| chained(slot, &value.0, &digest)))
}

#[test]
fn what_is_behind_a_gap_is_kept_and_leads_from_what_is_shown_to_a_certificate() {
    let group = GroupId(*b"tests-of-blocks-");
    let batches: Vec<Batch> = (1..=9).map(batch).collect();
    let values: Vec<Digest> =
        batches.iter().map(|batch| BatchRun::of(batch).expect("a small batch").value(group)).collect();
    let mut log = fresh();
    for number in [1, 2] {
        log.executed(Seq(number), &batches[number as usize - 1], Vec::new()).expect("a small batch");
    }
    while log.calls().is_some() {}
    log.installed(Seq(6));
    for number in 7..=9 {
        log.executed(Seq(number), &batches[number as usize - 1], Vec::new()).expect("a small batch");
    }
    assert_eq!(log.kept(), [(Seq(1), values[..2].to_vec()), (Seq(7), values[6..].to_vec())]);
    // All that anybody shows is the gap, and the certificate is of a later number.
    log.certified(Seq(8), digest_of(&values[..8])).expect("nothing is known of it here");
    assert_eq!(log.lacks(), Some(Seq(3)));
    let wrong = [vec![Digest([5; 32])], values[3..6].to_vec()].concat();
    assert_eq!(log.shown(Seq(3), &wrong), None);
    assert_eq!(log.shown(Seq(3), &values[2..5]), None, "a part of it proves nothing");
    assert_eq!(log.shown(Seq(3), &values[2..6]), Some(values[2..6].to_vec()));
    assert_eq!(log.lacks(), None);
    assert_eq!(log.kept(), [(Seq(1), values)]);
}

#[test]
fn batches_are_appended_and_their_answers_belong_to_their_own_questions() {
    let mut log = fresh();
    log.executed(Seq(1), &batch(1), Vec::new()).expect("a small batch");
    let (ticket, operations) = log.calls().expect("it appends");
    assert_eq!(operations.len(), 1);
    log.executed(Seq(2), &batch(2), Vec::new()).expect("a small batch");
    let (later, _) = log.calls().expect("it appends the next");
    assert_ne!(ticket, later);
    // What somebody else asked for is none of it.
    assert!(!log.asked(troth_core::Ticket(1)));
    assert_eq!(log.answered(troth_core::Ticket(1), Vec::new()), Ok(Vec::new()));
    assert!(log.asked(ticket) && log.asked(later));
}

/// What is asked of a component whose log ends at 150 and begins at 1, where 150 batches are executed again and 300 are
/// stable: looked up first, appended in parts, forgotten after each.
#[test]
fn no_call_asks_before_it_changes_or_forgets_what_it_fills() {
    let mut log = HistoryLog::new(GroupId(*b"tests-of-blocks-"), ROOM);
    let (start, operations) = log.start(Seq(100), Seq(150));
    assert!(can_be_answered_later(&operations));
    for number in 101..=300 {
        log.executed(Seq(number), &batch(number), Vec::new()).expect("a small batch");
    }
    let last = Content::Assigned { value: [0; 32], digest: [0; 32] };
    let nothing = Content::Forgotten { low: at(1) };
    let answers = vec![said(Request::End, at(150), last), said(Request::Lookup, at(0), nothing)];
    log.answered(start, answers).expect("its own history");
    log.certified(Seq(300), Digest([3; 32])).expect("nothing is known of it here");
    let (mut low, mut end, mut looked_up, mut most) = (1, 150, 0, 0);
    let mut open = std::collections::VecDeque::new();
    loop {
        while let Some((ticket, operations)) = log.calls() {
            assert!(can_be_answered_later(&operations), "{operations:?}");
            open.push_back((ticket, operations));
        }
        let Some((ticket, operations)) = open.pop_front() else { break };
        for operation in &operations {
            match operation {
                Operation::Append { slot, .. } => {
                    assert_eq!(slot.0, end + 1);
                    end = slot.0;
                }
                Operation::Truncate { slot, .. } => low = slot.0,
                Operation::Lookup { slot, .. } => {
                    assert!(slot.0 >= low && slot.0 <= end);
                    looked_up += 1;
                }
                other => panic!("{other:?}"),
            }
            most = most.max(end - low);
        }
        log.answered(ticket, vec![Answer::Done; operations.len()]).expect("no attestation contradicts it");
    }
    // The state that it started from, and what it executed again.
    assert_eq!((low, end, looked_up), (300, 300, 51));
    assert!(most < 150, "room was taken for {most} slots");
}

/// Has everything done that is asked for now; the slots that are filled and the slot below which all is forgotten.
fn obeyed(log: &mut HistoryLog) -> (Vec<u64>, Option<u64>) {
    let (mut filled, mut low) = (Vec::new(), None);
    while let Some((ticket, operations)) = log.calls() {
        let slots = operations.iter().filter_map(|operation| match operation {
            Operation::Append { slot, .. } => Some(slot.0 as u64),
            _ => None,
        });
        filled.extend(slots);
        let truncated = operations.iter().find_map(|operation| match operation {
            Operation::Truncate { slot, .. } => Some(slot.0 as u64),
            _ => None,
        });
        low = truncated.or(low);
        log.answered(ticket, vec![Answer::Done; operations.len()]).expect("no attestation contradicts it");
    }
    (filled, low)
}

#[test]
fn a_full_log_is_asked_for_nothing_that_it_would_refuse() {
    let mut log = with_room(8);
    for number in 1..=20 {
        log.executed(Seq(number), &batch(number), Vec::new()).expect("a small batch");
    }
    assert_eq!(obeyed(&mut log), ((1..8).collect(), None), "it waits for a stable checkpoint");
    log.certified(Seq(4), Digest([3; 32])).expect("nothing is known of it here");
    assert_eq!(obeyed(&mut log), ((8..12).collect(), Some(4)));
    // A stable checkpoint beyond its end: it goes on as room is there.
    log.certified(Seq(20), Digest([3; 32])).expect("nothing is known of it here");
    assert_eq!(obeyed(&mut log), ((12..21).collect(), Some(20)));
}

#[test]
fn an_end_is_asked_for_where_the_log_ends_with_what_was_executed() {
    let nonce = [9; 32];
    let mut unknown = HistoryLog::new(GroupId(*b"tests-of-blocks-"), ROOM);
    let (ticket, _) = unknown.start(Seq(0), Seq(0));
    assert_eq!(unknown.attest_end(Seq(0), nonce), None, "nothing is known of the log yet");
    assert!(unknown.asked(ticket));
    let mut log = fresh();
    assert_eq!(log.attest_end(Seq(0), nonce), None, "it holds nothing");
    log.executed(Seq(1), &batch(1), Vec::new()).expect("a small batch");
    assert_eq!(log.attest_end(Seq(1), nonce), None, "its append was not asked for");
    log.calls().expect("an append");
    let (ticket, operations) = log.attest_end(Seq(1), nonce).expect("that comes before");
    assert_eq!(operations, [Operation::End { log: HISTORY_LOG, nonce }]);
    let filled = |number| Content::Assigned { value: [number; 32], digest: [number; 32] };
    assert_eq!(log.answered(ticket, vec![said(Request::End, at(1), filled(1))]), Ok(Vec::new()));
    assert_eq!(log.end_attested().map(|end| end.claim.slot), Some(at(1)));
    assert_eq!(log.end_attested(), None, "once");
    let (ticket, _) = log.attest_end(Seq(1), nonce).expect("again");
    assert!(log.answered(ticket, vec![said(Request::End, at(2), filled(2))]).is_err(), "somebody else wrote");
    assert_eq!(log.end_attested(), None);
}

/// An empty component of one replica.
pub(super) fn component() -> A2m<LogRoom, VolatileStore> {
    let identity = Identity { group: *b"tests-of-blocks-", replica: 1, epoch: Epoch(1) };
    A2m::start(identity, Certifier::Mac(MacKey::new(&[3; 32])), VolatileStore, log_room([64; LOGS]))
}

/// Lets the component do whatever the account asks for; the numbers that are attested, as they come.
pub(super) fn obey(log: &mut HistoryLog, component: &mut A2m<LogRoom, VolatileStore>) -> Vec<Seq> {
    let mut attested = Vec::new();
    while let Some((ticket, operations)) = log.calls() {
        let mut answers = Vec::new();
        component.call(&operations, |answer| answers.push(answer)).expect("room for it");
        let numbers = log.answered(ticket, answers).expect("the history of this replica");
        attested.extend(numbers.into_iter().map(|(at, _)| at));
    }
    attested
}

/// A replica that begins with what its own log says it executed, beside a component that may know less.
fn restarted(executed: u64, component: &mut A2m<LogRoom, VolatileStore>) -> HistoryLog {
    let mut log = HistoryLog::new(GroupId(*b"tests-of-blocks-"), ROOM);
    let (ticket, operations) = log.start(Seq(0), Seq(executed));
    let mut answers = Vec::new();
    component.call(&operations, |answer| answers.push(answer)).expect("it only asks");
    log.answered(ticket, answers).expect("the history of this replica");
    for number in 1..=executed {
        log.executed(Seq(number), &batch(number), Vec::new()).expect("a small batch");
    }
    obey(&mut log, component);
    log
}

/// A component that comes back with an older state could be made to fill its slots with something else. Its replica fills
/// them with what they held: whoever was shown an attestation from before is shown the same content again.
#[test]
fn a_component_that_was_set_back_is_given_again_what_it_held() {
    let mut whole = component();
    let before = restarted(9, &mut whole);
    let mut set_back = component();
    restarted(4, &mut set_back);
    assert_eq!(set_back.logs().get(HISTORY_LOG).map(|log| log.high()), Some(at(4)));
    let after = restarted(9, &mut set_back);
    for number in 1..=9 {
        let held = |log: &HistoryLog| {
            log.held(Seq(number)).map(|held| (held.digest, held.attestation.as_ref().map(|made| made.claim)))
        };
        assert!(held(&before).is_some());
        assert_eq!(held(&after), held(&before), "slot {number}");
    }
    // The other way round, where the replica's log is what was set back, it must not go on.
    let mut log = HistoryLog::new(GroupId(*b"tests-of-blocks-"), ROOM);
    let (ticket, operations) = log.start(Seq(0), Seq(8));
    let mut answers = Vec::new();
    whole.call(&operations, |answer| answers.push(answer)).expect("it only asks");
    assert!(log.answered(ticket, answers).is_err());
}

/// A replica whose component's history is another one from 5 on starts with a state at 4, and is sent one at 8 before it
/// executes anything: what the component holds in 5 to 8 is never asked for to be shown to anybody.
#[test]
fn a_component_whose_history_is_another_is_found_out_behind_a_state_that_came_from_others() {
    let group = GroupId(*b"tests-of-blocks-");
    let value = |number| BatchRun::of(&batch(number)).expect("a small batch").value(group);
    let values: Vec<Digest> = (1..=9).map(value).collect();
    let mut component = component();
    restarted(9, &mut component);
    let again = |component: &mut A2m<LogRoom, VolatileStore>| {
        let mut log = HistoryLog::new(group, ROOM);
        let (ticket, operations) = log.start(Seq(4), Seq(9));
        let mut answers = Vec::new();
        component.call(&operations, |answer| answers.push(answer)).expect("it only asks");
        log.answered(ticket, answers).expect("nothing contradicts it");
        obey(&mut log, component);
        log
    };
    let judge = |log: &mut HistoryLog, component: &mut A2m<LogRoom, VolatileStore>| {
        let (ticket, operations) = log.calls()?;
        assert!(can_be_answered_later(&operations));
        let mut answers = Vec::new();
        component.call(&operations, |answer| answers.push(answer)).expect("it only asks");
        Some(log.answered(ticket, answers))
    };
    for (certified, is_ours) in [(digest_of(&values[..8]), true), (Digest([7; 32]), false)] {
        let mut log = again(&mut component);
        log.certified(Seq(8), certified).expect("nothing is known of it here");
        log.installed(Seq(8));
        let judged = judge(&mut log, &mut component).expect("it is looked up");
        assert_eq!(judged.is_ok(), is_ours, "{judged:?}");
        if is_ours {
            assert_eq!(log.held(Seq(8)).map(|held| held.digest), Some(certified));
            obey(&mut log, &mut component);
            log.certified(Seq(8), certified).expect("it holds it");
            assert_eq!(log.calls(), None, "once");
            component = self::component();
            restarted(9, &mut component);
        }
    }
    // What is held was compared, and is not asked for.
    let mut whole = restarted(9, &mut self::component());
    while whole.calls().is_some() {}
    whole.certified(Seq(8), digest_of(&values[..8])).expect("its own history");
    let asks = |(_, operations): (_, Vec<Operation>)| matches!(operations[..], [Operation::Truncate { .. }]);
    assert!(whole.calls().is_some_and(asks), "nothing but room");
}

//! What is said of medians, and what the papers predict.

use crate::cli::ProtocolsPart;
use crate::protocols::Cell;
use crate::protocols::auth::contenders;
use crate::protocols::entry::{ENTRIES, Predicted};
use crate::protocols::interval::Interval;
use troth_node::config::{Auth, Protocol};

#[test]
fn ten_ratios_tell_the_median_to_between_the_second_and_the_ninth() {
    let ten = Interval::of((1..=10).rev().map(f64::from));
    assert_eq!(ten, Interval { median: 5.5, low: 2.0, high: 9.0, known: true });
    // As tables of the sign test have it.
    for (count, cut) in [(6, 1.0), (8, 1.0), (9, 2.0), (12, 3.0), (15, 4.0), (20, 6.0)] {
        let some = Interval::of((1..=count).map(f64::from));
        assert_eq!((some.low, some.high, some.known), (cut, f64::from(count) + 1.0 - cut, true), "{count}");
    }
}

#[test]
fn five_ratios_do_not_tell_the_median_to_95_percent() {
    for count in 1..=5 {
        let few = Interval::of((1..=count).map(f64::from));
        assert_eq!((few.low, few.high, few.known), (1.0, f64::from(count), false));
    }
}

#[test]
fn every_protocol_has_an_entry_and_pbft_comes_first() {
    assert_eq!(ENTRIES[0].protocol, Protocol::Pbft);
    assert!(Protocol::ALL.iter().all(|protocol| ENTRIES.iter().any(|entry| entry.protocol == *protocol)));
}

#[test]
fn pbft_is_measured_by_all_that_shows_whose_frames_are_and_others_by_signatures() {
    let groups = contenders().map(|one| one.agreed);
    assert!(groups.iter().all(|agreed| (agreed.protocol, agreed.faults) == (Protocol::Pbft, 1)));
    assert_eq!(groups.map(|agreed| agreed.auth), [Auth::Signed, Auth::Mac, Auth::AllSigned]);
    assert!(ENTRIES.iter().all(|entry| entry.contends(2).agreed.auth == Auth::Signed));
}

#[test]
fn that_is_measured_where_one_may_be_faulty_and_nothing_is_large() {
    let cell = |faults, name| Cell { faults, name, request: 0, reply: 0 };
    let part = |protocol: &[Protocol]| ProtocolsPart { cell: Vec::new(), protocol: protocol.to_vec() };
    assert!(part(&[]).has_auth(cell(1, "0/0")) && part(&[Protocol::Pbft]).has_auth(cell(1, "0/0")));
    assert!(!part(&[]).has_auth(cell(2, "0/0")) && !part(&[]).has_auth(cell(1, "4/0")));
    assert!(!part(&[Protocol::MinBft]).has_auth(cell(1, "0/0")));
}

#[test]
fn a_batch_takes_as_many_messages_as_the_papers_have_arrows() {
    let predicted = |protocol: Protocol, faults| {
        let entry = ENTRIES.iter().find(|entry| entry.protocol == protocol).unwrap();
        entry.predicted(faults)
    };
    assert_eq!(predicted(Protocol::Pbft, 1), Predicted { messages: 24, trusted_calls: 0 });
    assert_eq!(predicted(Protocol::Pbft, 2), Predicted { messages: 84, trusted_calls: 0 });
    assert_eq!(predicted(Protocol::MinBft, 1), Predicted { messages: 6, trusted_calls: 3 });
    assert_eq!(predicted(Protocol::MinBft, 2), Predicted { messages: 20, trusted_calls: 5 });
}

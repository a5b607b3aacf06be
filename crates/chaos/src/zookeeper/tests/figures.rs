//! A run in which too little happened shows nothing.

use super::{Book, journals};
use crate::zookeeper::faults::Kind;
use crate::zookeeper::figures::Figures;
use crate::zookeeper::journal::{Ask, Change, Entry};
use std::collections::BTreeMap;

#[test]
fn what_happened_is_counted() {
    let (book, to) = Book::new(0).watches("/a", 0, 5).reconnects().rewatches(5, &["/a"]);
    let all = journals(vec![
        book.told(9, Change::Data, "/a").answered(to, 9).reconnects().closes(12),
        Book::new(1).sees(4).line(Entry::Lost).line(Entry::Expired),
        Book::new(2).sends(Ask::Close).line(Entry::Abandoned),
    ]);
    let figures = Figures::of(&all, &[], BTreeMap::from([(Kind::Gateway, 2)]));
    let expected = Figures {
        sessions: 3,
        requests: 5,
        unknown: 1,
        events: 1,
        shown: 1,
        reconnections: 2,
        moved: 1,
        closed: 1,
        expired: 1,
        abandoned: 1,
        faults: BTreeMap::from([(Kind::Gateway, 2)]),
        ..Figures::default()
    };
    assert_eq!(figures, expected);
}

#[test]
fn a_run_without_much_is_not_enough() {
    let plenty = Figures {
        owned: 1000,
        events: 10_000,
        shown: 1000,
        reconnections: 1000,
        moved: 1000,
        closed: 1000,
        expired: 1000,
        abandoned: 1000,
        writes: 10_000,
        refused: 1000,
        faults: Kind::ALL.into_iter().map(|kind| (kind, 1)).collect(),
        ..Figures::default()
    };
    assert_eq!(plenty.too_few(3, &Kind::ALL), Vec::<String>::new());
    let lacks: [fn(&mut Figures); 11] = [
        |figures| figures.owned = 179,
        |figures| figures.events = 0,
        |figures| figures.shown = 0,
        |figures| figures.reconnections = 0,
        |figures| figures.moved = 0,
        |figures| figures.closed = 0,
        |figures| figures.expired = 0,
        |figures| figures.abandoned = 0,
        |figures| figures.writes = 0,
        |figures| figures.refused = 0,
        |figures| figures.faults.retain(|kind, _| *kind != Kind::Trusted),
    ];
    for lack in lacks {
        let mut few = plenty.clone();
        lack(&mut few);
        assert_eq!(few.too_few(3, &Kind::ALL).len(), 1, "{few:?}");
    }
    assert_eq!(plenty.too_few(1000, &Kind::ALL).len(), 10);
}

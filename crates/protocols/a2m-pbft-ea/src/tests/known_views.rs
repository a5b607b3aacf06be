//! Which starts of views go where there are too many.

use super::craft::Bench;
use super::harness::covers;
use crate::known_views::KnownViews;
use troth_types::View;

/// The starts kept while no view is entered.
const MOST: u64 = 128;

fn offered(rests_on: impl Fn(u64) -> Option<u64>, judged: impl Fn(u64) -> bool) -> KnownViews {
    let mut bench = Bench::new(1);
    let changes = [1, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
    let message = bench.new_view(changes.to_vec(), None);
    let mut known = KnownViews::default();
    for view in 1..=MOST + 1 {
        known.offer(View(view), &message, rests_on(view).map(View));
        if judged(view) {
            known.judged(View(view));
        }
    }
    known
}

fn gone(known: &KnownViews) -> Vec<u64> {
    (1..=MOST + 1).filter(|view| known.get(View(*view)).is_none()).collect()
}

#[test]
fn the_lowest_that_is_judged_goes_unless_one_rests_on_it_that_is_not() {
    assert_eq!(gone(&offered(|_| None, |_| true)), [1]);
    let waiting = offered(|view| (view == MOST).then_some(1), |view| view != MOST);
    assert_eq!(gone(&waiting), [2], "the start of view 128 cannot be judged without that of view 1");
    let decided = offered(|view| (view == MOST).then_some(1), |_| true);
    assert_eq!(gone(&decided), [1], "one that is judged needs nothing any more");
}

#[test]
fn where_none_is_judged_the_highest_but_the_newest_goes() {
    assert_eq!(gone(&offered(|_| None, |_| false)), [MOST]);
}

/// A replica's commitments to starts that are no longer here, kept beside the highest, would fill this one's memory: one
/// message for each, which nothing but its sender's time bounds.
#[test]
fn of_rejected_starts_no_commitment_is_kept_but_the_highest_of_each_replica() {
    covers!("A2MPBFTEA-V21");
    let mut bench = Bench::new(1);
    let changes = [1, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
    let message = bench.new_view(changes.to_vec(), None);
    let accepts: Vec<_> = (1..=100).map(|view| bench.accept_of(2, View(view), message.digest)).collect();
    let mut known = KnownViews::default();
    for accept in accepts.iter().rev() {
        let view = accept.accept().expect("a COMMIT(NEWVIEW)").view;
        known.offer(view, &message, None);
        assert!(known.accept(accept), "{view:?}: its start is here");
        known.reject(view);
        assert_eq!(known.loose(), 1, "{view:?}");
    }
    assert_eq!(known.accepts(View(100)).count(), 1, "the highest stays");
}

#[test]
fn commitments_to_starts_that_are_one_too_many_go_with_them() {
    let mut bench = Bench::new(1);
    let changes = [1, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
    let message = bench.new_view(changes.to_vec(), None);
    let accepts: Vec<_> = (1..=2 * MOST).map(|view| bench.accept_of(2, View(view), message.digest)).collect();
    let mut known = KnownViews::default();
    for accept in accepts.iter().rev() {
        let view = accept.accept().expect("a COMMIT(NEWVIEW)").view;
        known.offer(view, &message, None);
        known.accept(accept);
        assert!(known.loose() <= 1, "{view:?}: {} kept", known.loose());
    }
    known.entered(&bench.group, View(1));
    assert!(known.loose() <= 1, "{} kept", known.loose());
}

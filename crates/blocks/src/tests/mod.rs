//! Each block by itself.

mod favours;
mod history;
mod lacked;
mod lag;
mod places;
mod shown;
mod shown_again;
mod unsigned;

use crate::*;
use troth_trusted::CounterValue;
use troth_types::{ClientId, Digest, ReplicaId, Seq, Time};

/// A time that does not matter.
const T: Time = Time(0);

fn at(count: u64) -> CounterValue {
    CounterValue::new(0, count)
}

#[test]
fn a_gate_releases_in_counter_order_and_once() {
    let mut gate = CounterGate::new(8);
    assert_eq!(gate.offer(at(1), at(2), 'b'), Offered::Held);
    assert_eq!(gate.offer(at(1), at(2), 'b'), Offered::Duplicate);
    assert!(gate.has_gap() && gate.next().is_none());
    assert_eq!(gate.offer(at(0), at(1), 'a'), Offered::Held);
    let mut out = Vec::new();
    while let Some(message) = gate.next() {
        out.push(message);
        gate.advance();
    }
    assert_eq!(out, ['a', 'b']);
    assert_eq!(gate.processed(), at(2));
    assert_eq!(gate.offer(at(0), at(1), 'a'), Offered::Duplicate);
    assert!(!gate.has_gap());
}

#[test]
fn a_gate_follows_predecessors_over_jumps_of_the_view() {
    let mut gate = CounterGate::new(8);
    gate.offer(at(0), at(1), 'a');
    gate.advance();
    assert_eq!(gate.offer(at(2), CounterValue::new(1, 0), 'v'), Offered::Held);
    assert!(gate.next().is_none(), "value 2 is missing before the view change");
    gate.offer(at(1), at(2), 'b');
    gate.advance();
    assert_eq!(gate.next(), Some('v'));
    gate.advance();
    assert_eq!(gate.processed(), CounterValue::new(1, 0));
}

#[test]
fn a_full_gate_keeps_what_is_nearest() {
    let mut gate = CounterGate::new(2);
    assert_eq!(gate.offer(at(5), at(6), 'f'), Offered::Held);
    assert_eq!(gate.offer(at(7), at(8), 'h'), Offered::Held);
    assert_eq!(gate.offer(at(9), at(10), 'x'), Offered::Full);
    assert_eq!(gate.offer(at(0), at(1), 'a'), Offered::Held);
    assert_eq!(gate.held(), 2);
    assert_eq!(gate.next(), Some('a'));
}

#[test]
fn a_gate_jumps_only_to_what_fits() {
    let mut gate = CounterGate::new(8);
    for (count, message) in [(3, 'c'), (5, 'e'), (7, 'g')] {
        gate.offer(at(count), at(count + 1), message);
    }
    assert!(!gate.jump_to(|message| *message == 'z'));
    assert!(gate.jump_to(|message| *message == 'e'));
    assert_eq!((gate.next(), gate.held()), (Some('e'), 2));
}

#[test]
fn voters_are_counted_once() {
    let voters: Voters = [0, 2, 2, 0].map(ReplicaId).into_iter().collect();
    assert_eq!(voters.count(), 2);
    assert!(voters.contains(ReplicaId(2)) && !voters.contains(ReplicaId(1)));
    let mut left = voters;
    left.remove(ReplicaId(2));
    left.remove(ReplicaId(1));
    assert_eq!(
        (left, left.count()),
        ([ReplicaId(0)].into_iter().collect(), 1),
        "who is taken out, and nobody else"
    );
}

#[test]
fn the_pool_keeps_one_request_per_slot_and_the_order_of_arrival() {
    let mut pool = RequestPool::new(4, 100);
    let digest = |n: u8| Digest([n; 32]);
    assert_eq!(pool.admit(ClientId(2), 1, digest(1), 10, T), Admitted::New);
    assert_eq!(pool.admit(ClientId(1), 1, digest(2), 10, T), Admitted::New);
    assert_eq!(
        pool.admit(ClientId(1), 1, digest(3), 10, T),
        Admitted::Pending(digest(2)),
        "whatever its digest"
    );
    assert_eq!(pool.admit(ClientId(1), 5, digest(4), 10, T), Admitted::SlotTaken);
    assert_eq!(pool.oldest().map(|(_, digest)| digest), Some(digest(1)));
    assert_eq!(pool.propose(1, 100), [digest(1)]);
    assert_eq!(pool.propose(9, 100), [digest(2)]);
    assert!(pool.propose(9, 100).is_empty() && !pool.has_unproposed());
    pool.restart(T, |carried| *carried == digest(1));
    assert_eq!(pool.propose(9, 100), [digest(2)]);
    assert_eq!(pool.done(ClientId(2), 1, T, Some(T)), Some(digest(1)));
    assert_eq!(pool.done(ClientId(2), 1, T, Some(T)), None);
    assert_eq!(pool.done(ClientId(1), 5, T, Some(T)), Some(digest(2)), "a later number overtakes the slot");
    assert!(pool.is_empty());
}

#[test]
fn what_is_executed_gives_way_to_a_newer_request_and_counts_for_no_wait() {
    let mut pool = RequestPool::new(4, 100);
    let (client, digest) = (ClientId(1), |number| Digest([number; 32]));
    assert_eq!(pool.admit(client, 1, digest(1), 10, T), Admitted::New);
    assert_eq!(pool.give_way(client, 5), None, "it is not executed");
    pool.is_again(client, 5);
    assert_eq!(pool.give_way(client, 5), None, "it is another number that is");
    pool.is_again(client, 1);
    assert_eq!(pool.propose(9, 100), [digest(1)]);
    assert_eq!(pool.oldest().map(|(_, digest)| digest), Some(digest(1)));
    assert_eq!((pool.oldest_new(), pool.typical_wait(T.after(5), |_| false)), (None, None));
    assert_eq!(pool.give_way(client, 1), None, "it is no newer one");
    assert_eq!(pool.give_way(client, 2), None, "another slot");
    assert!(pool.waits_again(client, 1) && !pool.waits_again(client, 5));
    assert_eq!(pool.give_way(client, 5), Some((0, digest(1))));
    assert!(pool.is_empty() && pool.bytes() == 0 && !pool.has_unproposed());
    assert_eq!(pool.admit(client, 5, digest(2), 10, T), Admitted::New);
    assert!(pool.has(client, 5) && !pool.has(client, 1));
    assert_eq!(pool.oldest_new().map(|(_, digest)| digest), Some(digest(2)));
    pool.is_again(client, 5);
    pool.done(client, 5, T.after(7), Some(T.after(7)));
    assert_eq!(pool.typical_wait(T.after(9), |_| false), None, "nobody had to order it");
}

#[test]
fn many_requests_of_one_kind_keep_none_of_the_other_out_of_sight() {
    let mut pool = RequestPool::new(8, 100);
    let digest = |client: u64| Digest([client as u8; 32]);
    for client in 1..=6 {
        assert_eq!(pool.admit(ClientId(client), 1, digest(client), 1, Time(client)), Admitted::New);
    }
    [1, 2, 4].into_iter().for_each(|client| pool.is_again(ClientId(client), 1));
    let of = |pool: &RequestPool, until, most, bytes| {
        let Waiting { new, again } = pool.waiting_since(Time(until), most, bytes, None);
        let clients = |list: Vec<(u64, Digest, ClientId)>| -> Vec<u8> {
            list.iter().map(|(_, digest, _)| digest.0[0]).collect()
        };
        (clients(new), clients(again))
    };
    assert_eq!(of(&pool, 9, 9, 2), (vec![3, 5], vec![1, 2]), "in bytes");
    assert_eq!(of(&pool, 9, 9, 0), (vec![3], vec![1]), "one however large");
    let seen = |pool: &RequestPool, until, most| of(pool, until, most, 100);
    assert_eq!(seen(&pool, 9, 9), (vec![3, 5, 6], vec![1, 2, 4]));
    assert_eq!(seen(&pool, 9, 2), (vec![3, 5], vec![1, 2]));
    assert_eq!(seen(&pool, 3, 9), (vec![3], vec![1, 2]));
    assert_eq!(pool.oldest_new(), Some((2, digest(3))));
    pool.give_way(ClientId(1), 9).expect("it is executed, and older");
    assert!(pool.give_way(ClientId(3), 9).is_none());
    assert_eq!(seen(&pool, 9, 9), (vec![3, 5, 6], vec![2, 4]));
}

#[test]
fn the_pool_bounds_bytes_of_clients_and_of_batches() {
    let mut pool = RequestPool::new(8, 100);
    let digest = |n: u8| Digest([n; 32]);
    assert_eq!(pool.admit(ClientId(1), 1, digest(1), 1000, T), Admitted::New, "one is taken however large");
    assert_eq!(pool.admit(ClientId(1), 2, digest(2), 1, T), Admitted::Full);
    assert_eq!(
        pool.admit(ClientId(2), 1, digest(3), 60, T),
        Admitted::New,
        "others have budgets of their own"
    );
    assert_eq!(pool.admit(ClientId(2), 2, digest(4), 41, T), Admitted::Full);
    assert_eq!(pool.admit(ClientId(2), 2, digest(5), 40, T), Admitted::New);
    assert_eq!(pool.propose(9, 99), [digest(1)], "the first is taken however large");
    assert_eq!(pool.propose(9, 99), [digest(3)], "a batch ends before it is too large");
    assert_eq!(pool.done(ClientId(2), 1, T, Some(T)), Some(digest(3)));
    assert_eq!(pool.admit(ClientId(2), 3, digest(6), 60, T), Admitted::New, "what is done is given back");
    assert_eq!(pool.retain(|client, _| client == ClientId(2)), [digest(1)]);
    assert_eq!(pool.admit(ClientId(1), 2, digest(2), 100, T), Admitted::New);
    assert_eq!(pool.propose(9, 1000), [digest(5), digest(6), digest(2)]);
}

#[test]
fn only_frames_of_batches_that_are_near_are_wanted() {
    let mut frames = crate::FrameStore::default();
    let digest = |n: u8| Digest([n; 32]);
    frames.name(Seq(3), &[digest(1)]);
    frames.name(Seq(9), &[digest(1), digest(2)]);
    assert_eq!(frames.missing(8, 0, Seq(2)), []);
    assert_eq!(frames.missing(8, 0, Seq(3)), [digest(1)]);
    assert_eq!(frames.missing(8, 0, Seq(9)), [digest(1), digest(2)]);
    assert!(frames.wants(&digest(1), Seq(3)) && !frames.wants(&digest(2), Seq(8)));
    frames.stable(Seq(8));
    assert!(frames.wants(&digest(1), Seq(9)), "a later batch names it too");
}

#[test]
fn a_frame_is_asked_for_again_after_a_while_only() {
    let mut frames = crate::FrameStore::default();
    let digest = |n: u8| Digest([n; 32]);
    frames.name(Seq(2), &[digest(9), digest(1)]);
    frames.name(Seq(1), &[digest(5)]);
    frames.name(Seq(7), &[digest(2)]);
    assert_eq!(
        frames.ask_first(2, Seq(2), Time(100), Time(0)),
        [digest(5), digest(1)],
        "the lowest batch first"
    );
    assert_eq!(frames.ask_first(2, Seq(2), Time(110), Time(10)), [digest(9)], "and then those behind");
    assert_eq!(frames.ask_first(2, Seq(2), Time(120), Time(20)), []);
    assert_eq!(frames.ask_first(9, Seq(2), Time(205), Time(105)), [digest(5), digest(1)]);
    assert_eq!(frames.missing(9, 0, Seq(2)).len(), 3, "who asks everybody asks for all of them");
}

#[test]
fn another_primary_is_asked_first_and_then_the_others() {
    let mut frames = crate::FrameStore::default();
    let digest = Digest([1; 32]);
    frames.name(Seq(1), &[digest]);
    let first = |frames: &mut crate::FrameStore, now| frames.ask_first(9, Seq(1), Time(now), Time(now - 100));
    let next = |frames: &mut crate::FrameStore, now| {
        frames.ask_next(9, Seq(1), Time(now), Time(now - 3), Time(now - 100))
    };
    assert_eq!((first(&mut frames, 100), next(&mut frames, 102)), (vec![digest], vec![]), "too soon");
    assert_eq!((next(&mut frames, 103), next(&mut frames, 110)), (vec![digest], vec![]));
    frames.ask_anew();
    assert_eq!(next(&mut frames, 111), [], "the new one was not asked yet");
    assert_eq!(first(&mut frames, 112), [digest]);
    assert_eq!(next(&mut frames, 115), [digest], "that they were asked before does not count");
}

#[test]
fn the_back_off_doubles_and_takes_one_step_back_per_progress() {
    let mut back_off = BackOff::default();
    back_off.failed();
    back_off.failed();
    assert_eq!(back_off.of(10), 40);
    back_off.progressed();
    assert_eq!(back_off.of(10), 20);
    for _ in 0..100 {
        back_off.failed();
    }
    assert_eq!(back_off.of(1), 64);
}

#[test]
fn a_replica_votes_once_and_none_beyond_the_largest_group() {
    let mut voters = Voters::NONE;
    for replica in [0, 127, 127, 5] {
        voters.insert(ReplicaId(replica));
    }
    assert_eq!(voters.count(), 3);
    let members: Vec<u16> = (0..=300).filter(|replica| voters.contains(ReplicaId(*replica))).collect();
    assert_eq!(members, [0, 5, 127]);
}

#[test]
fn the_typical_wait_is_the_middle_clients_mean() {
    let digest = |n: u8| Digest([n; 32]);
    let mut pool = RequestPool::new(8, 1000);
    assert_eq!(pool.typical_wait(Time(5), |_| false), None, "nothing waited");
    for (client, number, came) in [(1, 1, 100), (1, 2, 200), (2, 1, 100), (3, 1, 100)] {
        pool.admit(ClientId(client), number, digest((client * 8 + number) as u8), 10, Time(came));
    }
    // Client 1 waited 100 and 200, client 2 waits still for 900, client 3's is proposed and not executed yet.
    pool.done(ClientId(1), 1, Time(200), Some(Time(200)));
    pool.done(ClientId(1), 2, Time(400), Some(Time(400)));
    assert_eq!(pool.newest_proposed(), Time(200));
    let proposed = |named: &Digest| *named == digest(25);
    assert_eq!(pool.typical_wait(Time(1000), proposed), Some((150, 2)), "the lower of two middle ones");
    // The next look begins anew; what was proposed counts when it is executed.
    pool.done(ClientId(3), 1, Time(130), Some(Time(130)));
    assert_eq!(pool.typical_wait(Time(2000), proposed), Some((30, 2)));
    assert_eq!(pool.typical_wait(Time(2000), proposed), Some((1900, 1)));
    // Another primary has only just come.
    pool.restart(Time(2000), |_| false);
    assert_eq!(pool.typical_wait(Time(2001), proposed), Some((1, 1)));
    assert_eq!(pool.bytes(), 10);
}

/// MINBFT-P5: few clients that send to backups alone do not become the middle while the primary shows what others send.
#[test]
fn whom_the_primary_shows_keeps_its_say_for_a_while() {
    let mut pool = RequestPool::new(8, 1 << 20);
    let nobody = |_: &Digest| false;
    let (honest, liar) = (1..=5, ClientId(9));
    // Each honest client is measured once.
    for client in honest.clone() {
        pool.admit(ClientId(client), 1, Digest([client as u8; 32]), 10, Time(0));
        pool.done(ClientId(client), 1, Time(100), Some(Time(100)));
    }
    assert_eq!(pool.typical_wait(Time(1_000), nobody), Some((100, 5)));
    let mut look = |number: u64, at: u64| {
        for client in honest.clone() {
            pool.admit(ClientId(client), number, Digest([client as u8; 32]), 10, Time(at));
            pool.came(ClientId(client), number, true, Time(at));
            pool.done(ClientId(client), number, Time(at), Some(Time(at)));
        }
        pool.admit(liar, number, Digest([9; 32]), 10, Time(at));
        pool.done(liar, number, Time(at + 90_000), Some(Time(at + 90_000)));
        pool.typical_wait(Time(at + 100_000), nobody)
    };
    for number in 2..=240 {
        assert_eq!(look(number, number * 1_000_000), Some((100, 6)), "{number}");
    }
    for number in 241..=245 {
        look(number, number * 1_000_000);
    }
    assert_eq!(look(246, 246_000_000), Some((90_000, 1)), "and not for ever");
}

#[test]
fn whoever_blames_more_than_may_be_faulty_doubts() {
    let mut doubt = Doubt::default();
    for _ in 0..9 {
        doubt.blame(ReplicaId(1), 2);
    }
    assert_eq!(doubt.bears(10), 10, "one primary may be faulty as often as it likes");
    doubt.blame(ReplicaId(2), 2);
    assert_eq!(doubt.bears(10), 20);
    // What is forgiven does not add up.
    doubt.blame(ReplicaId(1), 2);
    (0..16).for_each(|_| doubt.good(true));
    doubt.blame(ReplicaId(2), 2);
    assert_eq!(doubt.bears(10), 20);
    // A look that finds nearly as much as is borne hardly says that less would do.
    (0..120).for_each(|_| doubt.good(false));
    assert_eq!(doubt.bears(10), 20);
    (0..40).for_each(|_| doubt.good(true));
    assert_eq!(doubt.bears(10), 10);
    for replica in 0..100 {
        doubt.blame(ReplicaId(replica), 2);
    }
    assert_eq!(doubt.bears(1), 256, "the time-out of a request comes first");
}

#[test]
fn a_batch_that_too_few_vote_for_says_nothing() {
    let mut pace = Pace::default();
    let look = |pace: &mut Pace, now| pace.look(Time(now), Some(1000), 4, 10);
    pace.prepared(Seq(1), Time(0), [].into_iter());
    pace.committed(Seq(1), ReplicaId(2), Time(3), 2);
    pace.committed(Seq(1), ReplicaId(2), Time(4), 2);
    assert_eq!(look(&mut pace, 100), Look::Nothing, "one backup, however often");
    pace.committed(Seq(2), ReplicaId(1), Time(101), 2);
    assert_eq!(look(&mut pace, 200), Look::Nothing, "another batch");
    pace.committed(Seq(1), ReplicaId(1), Time(201), 2);
    assert_eq!((look(&mut pace, 300), pace.agreement()), (Look::Slow, Some(201)));
    assert_eq!(look(&mut pace, 400), Look::TooSlow);
    // Who committed before this replica counts.
    let mut quick = Pace::default();
    quick.prepared(Seq(1), Time(10), [ReplicaId(1)].into_iter());
    quick.committed(Seq(1), ReplicaId(2), Time(12), 2);
    assert_eq!((look(&mut quick, 100), quick.agreement()), (Look::Slow, Some(2)));
    // Every other look is enough.
    assert_eq!(quick.look(Time(200), Some(1), 4, 10), Look::Good);
    assert_eq!(look(&mut quick, 300), Look::TooSlow);
    for now in [400, 500, 600, 700] {
        assert_eq!(quick.look(Time(now), Some(1), 4, 10), Look::Good);
    }
    assert_eq!(look(&mut quick, 800), Look::Slow, "long ago");
    // Both again, and then nobody any more: what was known goes.
    pace.prepared(Seq(3), Time(400), [].into_iter());
    assert_eq!(look(&mut pace, 500), Look::TooSlow);
    assert_eq!(look(&mut pace, 1100), Look::Nothing);
    assert_eq!(pace.agreement(), None);
}

#[test]
fn what_waits_has_gathered_when_it_is_as_much_as_is_proposed_or_fills_a_batch() {
    let mut pool = RequestPool::new(8, 10_000);
    let digest = |n: u64| Digest([n as u8; 32]);
    let admit = |pool: &mut RequestPool, number: u64, bytes: usize| {
        assert_eq!(pool.admit(ClientId(number), 1, digest(number), bytes, T), Admitted::New);
    };
    for number in 1..=4 {
        admit(&mut pool, number, 10);
    }
    assert_eq!(pool.propose(2, 1_000).len(), 2);
    assert!(pool.has_gathered(100, 1_000), "two wait, two are proposed");
    assert_eq!(pool.propose(1, 1_000).len(), 1);
    assert!(!pool.has_gathered(100, 1_000), "one beside three");
    assert!(pool.has_gathered(1, 1_000), "as many as a batch has room for");
    assert!(pool.has_gathered(100, 10), "as many bytes as a batch has room for");
    assert!(!pool.has_gathered(100, 11));
    assert_eq!(pool.done(ClientId(4), 1, T, Some(T)), Some(digest(4)), "by another's proposal");
    assert!(!pool.has_unproposed() && !pool.has_gathered(100, 1));
    pool.restart(T, |other| *other == digest(1));
    assert!(pool.has_gathered(100, 21), "two wait, one is carried over");
    assert!(pool.has_gathered(100, 20));
    assert_eq!(pool.propose(9, 15).len(), 1, "the other exceeds the bytes");
    assert!(!pool.has_gathered(100, 11) && pool.has_gathered(100, 10));
}

#[test]
fn what_is_not_signed_waits_for_a_primary_that_is_known_to_have_it() {
    let mut pool = RequestPool::new(8, 1000);
    let digest = |n: u8| Digest([n; 32]);
    for number in 1..=4 {
        pool.admit_unsigned(ClientId(1), number, digest(number as u8), 10, Time(0));
    }
    // Nobody knows when, or whether, the primary was given the first.
    pool.done(ClientId(1), 1, Time(900), Some(Time(900)));
    assert_eq!(pool.typical_wait(Time(1000), |_| false), None);
    pool.named(ClientId(1), 2, Time(1000));
    pool.named(ClientId(1), 2, Time(1050));
    pool.done(ClientId(1), 2, Time(1100), Some(Time(1100)));
    assert_eq!(pool.typical_wait(Time(1100), |_| false), Some((100, 1)), "since it was named first");
    // One that is signed can be shown to the primary; what it waited before does not count.
    pool.replace_unsigned(ClientId(1), 3, digest(30), 10, Time(1200));
    assert_eq!(pool.typical_wait(Time(1230), |_| false), Some((30, 1)));
    pool.named(ClientId(1), 3, Time(1240));
    pool.done(ClientId(1), 3, Time(1250), Some(Time(1250)));
    assert_eq!(pool.typical_wait(Time(1250), |_| false), Some((50, 1)));
    // A new primary has what its view starts with.
    pool.restart(Time(2000), |named| *named == digest(4));
    pool.done(ClientId(1), 4, Time(2010), Some(Time(2010)));
    assert_eq!(pool.typical_wait(Time(2010), |_| false), Some((10, 1)));
}

#[test]
fn who_commits_before_anything_prepared_says_nothing_of_how_long_it_takes() {
    let mut pace = Pace::default();
    let early = || [ReplicaId(1)].into_iter();
    pace.prepared_alone(Seq(1), Time(10), early(), 3, 2);
    pace.committed(Seq(1), ReplicaId(3), Time(11), 2);
    pace.committed(Seq(1), ReplicaId(1), Time(12), 2);
    assert_eq!(
        (pace.look(Time(13), Some(1), 4, 10), pace.agreement()),
        (Look::Nothing, None),
        "the early one again"
    );
    pace.committed(Seq(1), ReplicaId(2), Time(40), 2);
    pace.look(Time(50), Some(1), 4, 10);
    assert_eq!(pace.agreement(), Some(30));
    // Of three backups one is left, itself.
    pace.prepared_alone(Seq(2), Time(60), [ReplicaId(1), ReplicaId(2)].into_iter(), 3, 2);
    pace.prepared_alone(Seq(3), Time(100), early(), 3, 2);
    for (backup, at) in [(3, 101), (2, 120)] {
        pace.committed(Seq(3), ReplicaId(backup), Time(at), 2);
    }
    pace.look(Time(130), Some(1), 4, 10);
    assert_eq!(pace.agreement(), Some(20), "another one is timed");
}

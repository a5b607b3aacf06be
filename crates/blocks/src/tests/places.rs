//! Places in the order of arrival, and what moves them.

use crate::{RequestPool, Shown};
use troth_types::{ClientId, Digest, Time};

const WINDOW: u64 = 8;

fn digest(client: u64, number: u64) -> Digest {
    Digest([(client * 32 + number) as u8; 32])
}

/// Requests of these clients with these numbers, which came at these times.
fn pool(came: &[(u64, u64, u64)]) -> RequestPool {
    let mut pool = RequestPool::new(WINDOW, 1 << 20);
    for (client, number, at) in came {
        pool.admit(ClientId(*client), *number, digest(*client, *number), 10, Time(*at));
    }
    pool
}

fn since(pool: &RequestPool, until: u64) -> Vec<Digest> {
    pool.waiting_since(Time(until), 64, 1 << 20, None).digests().copied().collect()
}

/// MINBFT-P3: a client that shows backups the number that its slot is for after the next, and the primary those before it,
/// would have it leave out what it had no room for.
#[test]
fn what_had_no_room_at_the_primary_waits_from_then_on() {
    let late = 3 * WINDOW + 1;
    let mut pool = pool(&[(1, late, 0), (2, 1, 10), (3, 1, 20)]);
    assert_eq!(since(&pool, 15), [digest(1, late), digest(2, 1)]);
    assert_eq!(pool.done(ClientId(1), 1, Time(90), Some(Time(100))), None);
    // What an earlier batch had executed says nothing of any room: a primary may name it again and again.
    for at in 101..200 {
        assert_eq!(pool.done(ClientId(1), 1, Time(at), None), None);
    }
    assert_eq!(pool.oldest().map(|(_, digest)| digest), Some(digest(2, 1)));
    assert_eq!(since(&pool, 99), [digest(2, 1), digest(3, 1)]);
    assert_eq!(since(&pool, 100), [digest(2, 1), digest(3, 1), digest(1, late)]);
    // It waits since then for whoever measures that, too, and counts as pending all the while.
    assert_eq!(pool.typical_wait(Time(110), |other| *other != digest(1, late)), Some((10, 1)));
    assert_eq!(pool.done(ClientId(1), late, Time(120), Some(Time(120))), Some(digest(1, late)));
    assert_eq!(pool.len(), 2);
}

/// MINBFT-P5: what begins to wait anew hides nobody that came after it.
#[test]
fn what_the_primary_showed_is_behind_what_came_before_it() {
    let mut pool = pool(&[(1, 1, 0), (2, 1, 10)]);
    pool.came(ClientId(1), 1, true, Time(0));
    assert_eq!(since(&pool, 10), [digest(2, 1), digest(1, 1)], "it is the primary's from then on");
    pool.came(ClientId(1), 1, false, Time(50));
    assert_eq!(since(&pool, 40), [digest(2, 1)]);
    assert_eq!(since(&pool, 50), [digest(2, 1), digest(1, 1)]);
    // Said again it changes nothing.
    pool.came(ClientId(1), 1, false, Time(70));
    assert_eq!(since(&pool, 50), [digest(2, 1), digest(1, 1)]);
}

/// MINBFT-V1: its timer runs by the place, so that what is the last of all has another one, too.
#[test]
fn what_waits_anew_has_another_place_though_nothing_came_after_it() {
    let late = WINDOW + 1;
    let mut pool = pool(&[(1, late, 0)]);
    let before = pool.oldest().map(|(order, _)| order);
    pool.done(ClientId(1), 1, Time(90), Some(Time(100)));
    assert!(pool.oldest().map(|(order, _)| order) > before);
}

#[test]
fn the_signed_form_is_behind_what_came_before_it_unless_the_primary_had_the_other() {
    let unsigned = Digest([200; 32]);
    for named in [false, true] {
        let mut pool = RequestPool::new(WINDOW, 1 << 20);
        pool.admit_unsigned(ClientId(1), 1, unsigned, 10, Time(0));
        pool.admit(ClientId(2), 1, digest(2, 1), 10, Time(10));
        if named {
            pool.named(ClientId(1), 1, Time(5));
        }
        assert_eq!(pool.replace_unsigned(ClientId(1), 1, digest(1, 1), 10, Time(50)), Some(unsigned));
        let first = pool.oldest().map(|(_, digest)| digest);
        assert_eq!(first, Some(if named { digest(1, 1) } else { digest(2, 1) }));
        assert_eq!(since(&pool, 40).len(), if named { 2 } else { 1 });
    }
}

/// MINBFT-N14: one is kept beside what waits in its slot, and the next once that one is named or gone.
#[test]
fn one_request_is_kept_beside_another_until_it_is_named() {
    let mut pool = pool(&[(1, 9, 0)]);
    let mut shows = |number: u64, unnamed: bool| {
        pool.keeps_beside(ClientId(1), number, digest(1, number), |other| {
            assert_eq!(*other, digest(1, 1));
            unnamed
        })
    };
    assert!(shows(1, true));
    assert!(!shows(17, true), "one at a time");
    assert!(shows(1, false));
    assert!(!pool.keeps_beside(ClientId(1), 2, digest(1, 2), |_| false), "nothing waits in its slot");
}

/// MINBFT-P5: whoever was there under the primary before counts as one that does not wait, or a few others would be the middle.
#[test]
fn whom_a_new_primary_shows_has_a_say_from_the_beginning() {
    let mut pool = RequestPool::new(WINDOW, 1 << 20);
    for client in 1..=5 {
        pool.admit(ClientId(client), 1, digest(client, 1), 10, Time(0));
        pool.done(ClientId(client), 1, Time(300), Some(Time(400)));
    }
    assert_eq!(pool.typical_wait(Time(500), |_| false), Some((300, 5)));
    pool.restart(Time(1000), |_| false);
    for client in 1..=5 {
        pool.admit(ClientId(client), 2, digest(client, 2), 10, Time(1000));
        pool.came(ClientId(client), 2, true, Time(1000));
        pool.done(ClientId(client), 2, Time(1900), Some(Time(2000)));
    }
    pool.admit(ClientId(9), 1, Digest([9; 32]), 10, Time(1000));
    assert_eq!(pool.typical_wait(Time(91_000), |_| false), Some((0, 6)));
    assert_eq!(pool.typical_wait(Time(91_000), |_| false), Some((90_000, 1)), "while it shows something");
}

/// MINBFT-P2: what waits at the primary alone, by what it showed; a client counts for no more than its window, and a request
/// once, or few clients would excuse a primary that has the others wait.
#[test]
fn what_waits_where_only_the_primary_sees_it_is_estimated() {
    let mut pool = RequestPool::new(WINDOW, 1 << 20);
    let unseen = |pool: &mut RequestPool, shown: &[u64]| {
        for (client, count) in (1..).zip(shown) {
            for number in 1..=*count {
                pool.admit(ClientId(client), number, digest(client, number), 10, Time(0));
                pool.came(ClientId(client), number, true, Time(0));
                pool.done(ClientId(client), number, Time(0), Some(Time(0)));
                assert_eq!(pool.done(ClientId(client), number, Time(0), None), None, "named again");
            }
        }
        // One that its client sent here waited for a quarter of the time since the last look.
        pool.admit(ClientId(9), 1, Digest([9; 32]), 10, Time(0));
        pool.done(ClientId(9), 1, Time(250), Some(Time(250)));
        pool.stock(Time(0), Time(1000), |_| false).map(|stock| (stock.waited, stock.unseen))
    };
    assert_eq!(unseen(&mut pool, &[]), Some((250, 0)));
    assert_eq!(unseen(&mut pool, &[8, 20]), Some((250, 2 + 5)));
    assert_eq!(unseen(&mut pool, &[400]), Some((250, WINDOW as usize)));
    assert_eq!(unseen(&mut pool, &[]), Some((250, 0)), "it counts once");
    assert_eq!(unseen(&mut pool, &[1; 8]), Some((250, 2)), "a quarter of each");
}

/// MINBFT-P5: after a slow look no few clients judge the primary, whichever are measured first, and none for long.
#[test]
fn what_a_slow_look_counted_is_measured_anew_or_counts_again_after_a_while() {
    let mut pool = RequestPool::new(WINDOW, 1 << 20);
    let mut number = 0;
    let mut look = |pool: &mut RequestPool, measured: u64, wait: u64| {
        number += 1;
        for client in 1..=5 {
            pool.admit(ClientId(client), number, digest(client, number), 10, Time(1000));
            pool.came(ClientId(client), number, client > measured, Time(1000));
            pool.done(ClientId(client), number, Time(1000 + wait), Some(Time(1000 + wait)));
        }
        let stock = pool.stock(Time(0), Time(2000), |_| false).expect("some waited");
        (stock.waited, stock.clients, stock.anew)
    };
    assert_eq!(look(&mut pool, 5, 300), (300, 5, true));
    pool.found_slow(Time(500), 250);
    assert_eq!(look(&mut pool, 2, 10), (0, 5, false), "two of five say nothing");
    assert_eq!(look(&mut pool, 3, 10), (10, 5, true));
    assert_eq!(look(&mut pool, 5, 300), (300, 5, true));
    pool.found_slow(Time(500), 250);
    for _ in 1..8 {
        assert_eq!(look(&mut pool, 2, 300), (0, 5, false));
    }
    assert_eq!(look(&mut pool, 2, 10), (300, 5, true), "what the others waited is not forgotten");
}

/// MINBFT-P3: however many and large the requests of one client are that came before, another's oldest is among those by which
/// the primary is judged.
#[test]
fn one_client_keeps_no_other_out_of_what_is_judged() {
    let mut pool = RequestPool::new(WINDOW, 1 << 30);
    let large = 200 << 10;
    for number in 1..=WINDOW {
        pool.admit(ClientId(1), number, digest(1, number), large, Time(number));
    }
    pool.admit(ClientId(2), 1, digest(2, 1), 10, Time(20));
    pool.admit(ClientId(3), 1, digest(3, 1), large, Time(21));
    pool.admit(ClientId(2), 2, digest(2, 2), 10, Time(22));
    let show = |pool: &RequestPool, before: Option<Shown>, now: u64| {
        let found = pool.waiting_since(Time(now), Shown::MOST, Shown::MOST_BYTES, before.as_ref()).new;
        let digests: Vec<Digest> = found.iter().map(|(_, digest, _)| *digest).collect();
        (Shown::after(before, &found, Time(now)).expect("they wait"), digests)
    };
    let (first, found) = show(&pool, None, 30);
    assert_eq!(found, [digest(1, 1), digest(2, 1), digest(2, 2)], "what does not fit is passed over");
    assert_eq!((first.at, first.again), (Time(30), false));
    // As long as one of them waits, they are what the primary is judged by, since they were shown first.
    pool.done(ClientId(1), 1, Time(31), Some(Time(31)));
    let (second, found) = show(&pool, Some(first.clone()), 40);
    assert_eq!(found, [digest(2, 1), digest(2, 2), digest(3, 1)], "client 1 had its turn");
    assert_eq!((second.requests.clone(), second.at, second.again), (first.requests.clone(), Time(30), true));
    assert_eq!(pool.still_new(&second).collect::<Vec<_>>(), [digest(2, 1), digest(2, 2)]);
    // When all are ordered the next are those of whom nothing was shown, before who had a turn.
    pool.done(ClientId(2), 1, Time(41), Some(Time(41)));
    pool.done(ClientId(2), 2, Time(41), Some(Time(41)));
    assert!(!pool.still_waits(&second));
    let (third, found) = show(&pool, Some(second), 50);
    assert_eq!(found, [digest(3, 1)]);
    assert_eq!((third.at, third.again), (Time(50), false));
    assert!(third.has_of(ClientId(3)) && !third.has_of(ClientId(1)));
}

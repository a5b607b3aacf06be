//! Requests without signature.

use crate::{Admitted, RequestPool};
use troth_types::{ClientId, Digest, Time};

const T: Time = Time(0);

#[test]
fn no_timer_runs_for_what_is_not_signed_until_it_is() {
    let mut pool = RequestPool::new(4, 1000);
    let (client, bare, signed) = (ClientId(1), Digest([1; 32]), Digest([2; 32]));
    assert_eq!(pool.admit_unsigned(client, 1, bare, 30, T), Admitted::New);
    assert_eq!(pool.admit(ClientId(2), 1, Digest([9; 32]), 30, T), Admitted::New);
    assert_eq!(pool.oldest(), Some((1, Digest([9; 32]))), "the one that is signed");
    assert_eq!((pool.len(), pool.bytes()), (2, 60));
    assert_eq!(
        pool.propose(8, 1000),
        [bare, Digest([9; 32])],
        "both may be proposed, in the order they came"
    );
    pool.restart(T, |_| false);
    assert_eq!(pool.replace_unsigned(client, 2, signed, 50, T), None, "another number");
    assert_eq!(pool.replace_unsigned(client, 1, signed, 50, T), Some(bare));
    assert_eq!(pool.replace_unsigned(client, 1, signed, 50, T), None, "signed already");
    assert!(pool.came_unsigned(client, 1, &bare) && !pool.came_unsigned(client, 1, &signed));
    assert_eq!((pool.oldest(), pool.bytes()), (Some((1, Digest([9; 32]))), 80), "it comes last");
    assert_eq!(pool.propose(8, 1000), [Digest([9; 32]), signed]);
    assert_eq!(pool.done(client, 1, T, Some(T)), Some(signed));
    assert_eq!(pool.admit_unsigned(client, 2, bare, 30, T), Admitted::New);
    assert_eq!(pool.admit(client, 3, signed, 30, T), Admitted::New);
    assert_eq!(pool.forget_unsigned(client), [bare]);
    assert_eq!((pool.len(), pool.bytes()), (2, 60));
    assert_eq!(pool.propose(8, 1000), [signed], "what was forgotten is not proposed");
}

#[test]
fn an_older_request_without_signature_gives_way_to_a_signed_one_unless_a_primary_has_it() {
    let mut pool = RequestPool::new(4, 1000);
    let (client, bare) = (ClientId(1), |n: u8| Digest([n; 32]));
    for number in 1..=4 {
        pool.admit_unsigned(client, number, bare(number as u8), 10, T);
    }
    assert_eq!(pool.propose(1, 1000), [bare(1)]);
    pool.named(client, 2, T);
    for (number, gone) in [(5, None), (6, None), (7, Some(bare(3))), (7, None), (4, None)] {
        assert_eq!(pool.give_way_to_signed(client, number), gone, "{number}");
    }
    assert_eq!((pool.len(), pool.bytes()), (3, 30));
    assert_eq!(pool.admit(client, 7, bare(7), 10, T), Admitted::New);
    assert_eq!(pool.give_way_to_signed(client, 11), None, "it is signed");
    pool.restart(T, |_| false);
    assert_eq!(pool.give_way_to_signed(client, 5), Some(bare(1)), "its primary is none any more");
    assert_eq!(pool.propose(8, 1000), [bare(2), bare(4), bare(7)]);
}

#[test]
fn what_does_not_fit_a_batch_without_signature_waits_for_another() {
    let mut pool = RequestPool::new(4, 1000);
    let digest = |n: u8| Digest([n; 32]);
    for client in 1..=3 {
        pool.admit_unsigned(ClientId(client), 1, digest(client as u8), 10, T);
    }
    pool.admit(ClientId(4), 1, digest(4), 10, T);
    assert!(pool.came_unsigned(ClientId(2), 1, &digest(2)));
    assert!(
        !pool.came_unsigned(ClientId(2), 1, &digest(3)) && !pool.came_unsigned(ClientId(2), 5, &digest(2))
    );
    assert!(!pool.came_unsigned(ClientId(4), 1, &digest(4)), "it is signed");
    let odd = |client: ClientId| client.0 % 2 == 1;
    assert_eq!(
        pool.propose_where(8, 1000, odd),
        [digest(1), digest(3), digest(4)],
        "what is signed always fits"
    );
    assert!(pool.has_unproposed());
    assert_eq!(pool.propose(8, 1000), [digest(2)]);
}

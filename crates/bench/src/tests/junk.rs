//! What attacking clients send.

use crate::flood::junk::PartialJunk;
use std::collections::BTreeSet;
use troth_auth::{Authenticators, PairKey};
use troth_types::{ClientId, Group, GroupId, ReplicaId};

#[test]
fn a_partial_client_convinces_the_replica_that_it_speaks_to_and_no_other() {
    let group = Group::general(GroupId([1; 16]), 4).unwrap();
    let keys: Vec<PairKey> = (0..4).map(|replica| PairKey::new(&[replica; 32])).collect();
    let (window, mut contents) = (32, BTreeSet::new());
    for victim in group.all() {
        let mut junk =
            PartialJunk::new(group, ClientId(7), window, Authenticators::new(keys.iter().cloned()), victim);
        for _ in 0..2 * window {
            let frame = junk.frame();
            let right = |replica: ReplicaId| {
                let tag = frame.tag_for(replica).expect("one for each");
                keys[usize::from(replica.0)].verify(frame.signing_digest(), tag)
            };
            assert!(group.all().all(|replica| right(replica) == (replica == victim)));
            assert!((1..=window).contains(&frame.number()), "a number that may still be executed");
            contents.insert(*frame.signing_digest());
        }
    }
    assert_eq!(contents.len() as u64, 2 * window, "each says something else, the same to every replica");
}

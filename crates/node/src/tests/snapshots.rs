//! Snapshots one after the other, of which each is written as what the disk lacks: each comes back whole, full ones
//! between, attempts that failed, and starts from what is there.

use crate::snapshots::{Keep, Keeper};
use bytes::Bytes;
use proptest::prelude::*;
use troth_disk::{FaultyDisk, Identity, MemoryDisk, SnapshotError};
use troth_exec::{MerkleMap, Snapshot};
use troth_types::{Seq, Time};

const OWNER: Identity = Identity { group: [7; 32], replica: 1 };

/// What happens between one snapshot and the next.
#[derive(Clone, Debug)]
enum Then {
    /// Nothing.
    Nothing,
    /// The state becomes what an earlier snapshot had, with that one's own nodes.
    Back,
    /// The log stands on it: those before go.
    Retain,
    /// The process starts again from what the disk has.
    Restart,
    /// The disk has no space for the next attempt.
    Full,
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![
        4 => Just(Then::Nothing),
        2 => Just(Then::Back),
        3 => Just(Then::Retain),
        1 => Just(Then::Restart),
        1 => Just(Then::Full),
    ]
}

fn tree(map: &mut MerkleMap) -> troth_exec::Tree {
    map.seal();
    let mut unbounded = usize::MAX;
    map.poll(&mut unbounded).expect("an unbounded budget finishes a seal").1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_comes_back_whole(
        rounds in proptest::collection::vec((proptest::collection::vec((0_u8..90, 0_u8..4), 0..50), then()), 1..24),
    ) {
        let below = MemoryDisk::default();
        let mut disk = FaultyDisk::new(below.clone()).expect("it is empty");
        let mut keeper = Keeper::open(disk.clone(), OWNER, None).expect("there are none");
        let mut map = MerkleMap::new();
        let mut earlier: Option<Snapshot> = None;
        for (round, (writes, then)) in (1..).zip(&rounds) {
            for (key, kind) in writes {
                let name = format!("key {key}");
                match kind {
                    0 => map.remove(name.as_bytes()),
                    1 => map.insert(name.as_bytes(), Bytes::from(vec![*key; 700])),
                    _ => map.insert(name.as_bytes(), Bytes::from(format!("{round} {key}"))),
                }
            }
            let snapshot = Snapshot::of(Seq(round), Time(round), tree(&mut map));
            if matches!(then, Then::Full) {
                disk.set_capacity(Some(100), false);
                let refused = keeper.write(&snapshot);
                prop_assert!(matches!(refused, Ok(()) | Err(SnapshotError::Full(_))), "{refused:?}");
                disk.set_capacity(None, false);
            }
            keeper.write(&snapshot).expect("there is space");
            if matches!(then, Then::Retain) {
                keeper.retain(snapshot.seq()).expect("it is there");
            }
            // What the disk says alone, as a start would read it.
            let mut again = Keeper::open(below.copy(), OWNER, None).expect("whole");
            let start = again.take_start().expect("one was written");
            prop_assert_eq!((start.seq(), start.encode()), (snapshot.seq(), snapshot.encode()));
            if let (Then::Back, Some(earlier)) = (then, &earlier) {
                map = MerkleMap::from_tree(earlier.tree(), None);
            }
            if earlier.is_none() || round % 4 == 0 {
                earlier = Some(snapshot);
            }
            if matches!(then, Then::Restart) {
                disk = FaultyDisk::new(below.clone()).expect("it is whole");
                keeper = Keeper::open(disk.clone(), OWNER, None).expect("whole");
                map = MerkleMap::from_tree(keeper.take_start().expect("one was written").tree(), None);
            }
        }
    }
}

//! The world itself works.

use super::harness::{SMALL, World};

#[test]
fn orders() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        for number in 1..=20 {
            let frame = world.frame(1, number, &format!("op{number}"));
            world.request_all(&frame);
        }
        for replica in 0..n {
            assert_eq!(world.journal(replica).len(), 20, "replica {replica}");
            assert_eq!(world.stable(replica).0, 20);
            assert!(world.accused_nobody(replica));
        }
    }
}

#[test]
fn changes_view() {
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        let frame = world.frame(1, 1, "a");
        world.request_all(&frame);
        world.crash(0);
        let frame = world.frame(1, 2, "b");
        world.request_all(&frame);
        world.pass(3_000_000);
        for replica in 1..n {
            assert_eq!(world.journal(replica), ["a", "b"], "replica {replica}");
            assert_eq!(world.minbft(replica).view.0, 1);
        }
    }
}

//! When a group is called lost, and when it is called found.

use crate::reach::Reach;
use troth_types::{Group, GroupId, ReplicaId};

#[test]
fn a_lost_group_is_told_of_once_and_again_when_it_is_back() {
    let mut reach = Reach::new(Group::hybrid(GroupId([7; 16]), 5).expect("an odd number"));
    let down = |count: u16| -> Vec<ReplicaId> { (0..count).map(ReplicaId).collect() };
    for count in [0, 2, 1] {
        assert_eq!(reach.news(&down(count)), None, "{count} of 5 may fail");
    }
    let lost = reach.news(&down(3)).expect("three are too many");
    assert!(lost.contains("2 of its 5") && lost.contains("3 are needed"), "{lost}");
    assert_eq!(reach.news(&down(5)), None, "it was said");
    assert_eq!(reach.news(&down(3)), None, "not enough yet");
    let back = reach.news(&down(2)).expect("enough again");
    assert!(back.contains("again"), "{back}");
    assert_eq!(reach.news(&down(0)), None);
}

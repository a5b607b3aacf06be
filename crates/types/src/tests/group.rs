use crate::{ClientId, Group, GroupError, GroupId, ReplicaId, View};

#[test]
fn a_hybrid_group_has_two_f_plus_one_replicas_and_quorums_of_f_plus_one() {
    for (n, f) in [(3, 1), (5, 2), (7, 3), (9, 4)] {
        let group = Group::hybrid(GroupId::default(), n).unwrap();
        assert_eq!((group.n(), group.f(), group.quorum(), group.weak()), (usize::from(n), f, f + 1, f + 1));
        assert!(2 * group.quorum() > group.n(), "two quorums share a replica");
    }
    for n in [0, 1, 2, 4, 6] {
        assert_eq!(Group::hybrid(GroupId::default(), n), Err(GroupError::NotHybrid(n)));
    }
}

#[test]
fn primaries_take_turns() {
    let group = Group::hybrid(GroupId::default(), 3).unwrap();
    let turns: Vec<_> = (0..5).map(|view| group.primary(View(view))).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1].map(ReplicaId));
    assert!(group.contains(ReplicaId(2)) && !group.contains(ReplicaId(3)));
}

#[test]
fn the_full_replier_takes_turns_per_client_and_number() {
    let group = Group::hybrid(GroupId::default(), 3).unwrap();
    let turns: Vec<_> = (0..5).map(|number| group.designated(ClientId(2), number)).collect();
    assert_eq!(turns, [2, 0, 1, 2, 0].map(ReplicaId));
    assert!(group.contains(group.designated(ClientId(u64::MAX), u64::MAX)));
}

#[test]
fn a_group_lists_its_replicas_and_keeps_its_name() {
    let id = GroupId([0xa1, 0xb2, 0xc3, 0xd4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let group = Group::hybrid(id, 5).unwrap();
    assert_eq!(group.all().collect::<Vec<_>>(), [0, 1, 2, 3, 4].map(ReplicaId));
    assert_eq!(group.id(), id);
    assert_eq!(format!("{id:?}"), "g:a1b2c3d4");
}

#[test]
fn a_wrong_size_says_which_sizes_are_right() {
    let text = GroupError::NotHybrid(4).to_string();
    assert!(text.contains("4 replicas") && text.contains("3, 5, 7"), "{text}");
}

//! The network does what its options say.

use crate::world::{Network, Selective};
use crate::{FaultClass, Faulty, FaultyKind, Options, Overrides, Shape};

const SHAPE: Shape = Shape {
    n: 3,
    strategies: 0,
    later: 0,
    replaces: true,
    parrots: false,
    bridges: false,
    faces: false,
    relapses: false,
    heirs: false,
};

fn network(change: impl FnOnce(&mut Options)) -> Network {
    let mut options = Options::draw(5, 1, SHAPE, &Overrides::default());
    change(&mut options);
    Network::new(&options)
}

#[test]
fn nothing_is_lost_or_doubled_without_those_faults() {
    let mut network = network(|options| (options.loss, options.duplication) = (0, 0));
    assert!((0..1000).all(|_| matches!(network.copies(), [Some(_), None])));
}

#[test]
fn everything_is_lost_and_doubled_at_the_limits() {
    let mut lossy = network(|options| options.loss = 1_000_000);
    assert!((0..100).all(|_| lossy.copies() == [None, None]));
    let mut doubling = network(|options| (options.loss, options.duplication) = (0, 1_000_000));
    assert!((0..100).all(|_| matches!(doubling.copies(), [Some(_), Some(_)])));
}

#[test]
fn messages_overtake_each_other() {
    let mut network = network(|options| (options.loss, options.delay_mean) = (0, 500));
    let delays: Vec<u64> = (0..100).filter_map(|_| network.copies()[0]).collect();
    assert!(delays.windows(2).any(|pair| pair[0] > pair[1] + 100));
}

#[test]
fn links_are_deaf_until_their_time_and_healing_ends_it() {
    let mut network = network(|_| {});
    network.confine(0b001, 1000);
    assert!(!network.hears(999, 0, 1) && !network.hears(999, 2, 0), "across the border nothing passes");
    assert!(network.hears(999, 1, 2) && network.hears(1000, 0, 1));
    network.confine(0b001, 1000);
    network.heal();
    assert!(network.hears(0, 0, 1));
}

#[test]
fn a_cut_may_deafen_one_direction_alone() {
    let mut one_way = false;
    for seed in 0..50 {
        let mut options = Options::draw(seed, 1, SHAPE, &Overrides::default());
        options.loss = 0;
        let mut network = Network::new(&options);
        network.cut(1000);
        one_way |= network.hears(0, 0, 1) != network.hears(0, 1, 0);
    }
    assert!(one_way);
}

#[test]
fn nothing_silences_the_links_of_a_bridge() {
    let mut network = network(|options| {
        let faulty = Faulty { replica: 2, kind: FaultyKind::Proxy, reforms: true };
        (options.bridges, options.faulty) = (true, vec![faulty]);
    });
    network.confine(0b001, 1000);
    network.isolate(2, 1000);
    assert!(!network.hears(0, 0, 1) && !network.hears(0, 1, 0), "the correct ones do not hear each other");
    assert!([(0, 2), (2, 0), (1, 2), (2, 1)].iter().all(|(from, to)| network.hears(0, *from, *to)));
}

#[test]
fn one_kind_of_message_is_lost_at_a_time_and_healing_ends_it() {
    let kinds = ["A", "B", "C"];
    let mut lost = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let mut options = Options::draw(seed, 1, SHAPE, &Overrides::default());
        options.classes.insert(FaultClass::Kinds);
        (options.faulty, options.bridges) =
            (vec![Faulty { replica: 2, kind: FaultyKind::Proxy, reforms: true }], true);
        let mut links = Selective::new(&options);
        for now in (0..2_000_000).step_by(1_000) {
            let now_lost: Vec<_> = kinds.into_iter().filter(|kind| !links.passes(now, 0, 1, kind)).collect();
            assert!(now_lost.len() <= 1, "{now_lost:?} at {now}");
            lost.extend(now_lost);
            let bridged =
                |links: &mut Selective, kind| links.passes(now, 2, 0, kind) && links.passes(now, 1, 2, kind);
            assert!(kinds.into_iter().all(|kind| bridged(&mut links, kind)), "nothing silences a bridge");
        }
        links.heal();
        assert!((0..2_000_000).step_by(1_000).all(|now| links.passes(now, 0, 1, "A")));
    }
    assert_eq!(lost.len(), 3, "each kind is lost now and then");
    let mut options = Options::draw(1, 1, SHAPE, &Overrides::default());
    options.classes.remove(&FaultClass::Kinds);
    let mut links = Selective::new(&options);
    assert!((0..2_000_000).step_by(1_000).all(|now| links.passes(now, 0, 1, "A")), "not without that fault");
}

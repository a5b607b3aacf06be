//! Streams: equal where they should be, independent where they should be.

use crate::Rng;

fn first(mut rng: Rng) -> Vec<u64> {
    (0..32).map(|_| rng.next()).collect()
}

#[test]
fn a_stream_is_a_function_of_seed_name_and_index() {
    assert_eq!(first(Rng::stream(7, "network", 0)), first(Rng::stream(7, "network", 0)));
    let all: Vec<Vec<u64>> = [(7, "network", 0), (8, "network", 0), (7, "storage", 0), (7, "network", 1)]
        .into_iter()
        .map(|(seed, name, index)| first(Rng::stream(seed, name, index)))
        .collect();
    for (index, one) in all.iter().enumerate() {
        for other in &all[..index] {
            assert!(one.iter().zip(other).all(|(a, b)| a != b), "streams share no number at a place");
        }
    }
}

#[test]
fn drawing_from_one_stream_does_not_shift_another() {
    let mut network = Rng::stream(3, "network", 0);
    let storage = Rng::stream(3, "storage", 0);
    for _ in 0..1000 {
        network.next();
    }
    assert_eq!(first(storage), first(Rng::stream(3, "storage", 0)));
}

#[test]
fn numbers_stay_within_their_bounds_and_reach_them() {
    let mut rng = Rng::stream(1, "test", 0);
    let mut seen = [0u32; 5];
    for _ in 0..2000 {
        seen[rng.index(5)] += 1;
        let value = rng.range(3, 5);
        assert!((3..=5).contains(&value));
        assert!(rng.exponential(100) <= 1600);
        assert!(rng.subset(3) < 8);
    }
    assert!(seen.iter().all(|count| (300..500).contains(count)), "about evenly: {seen:?}");
    assert!((0..100).all(|_| !rng.chance(0)));
    assert!((0..100).all(|_| rng.chance(1_000_000)));
}

#[test]
fn the_mean_of_the_exponential_is_its_mean() {
    let mut rng = Rng::stream(2, "test", 0);
    let sum: u64 = (0..20_000).map(|_| rng.exponential(1000)).sum();
    assert!((900..1100).contains(&(sum / 20_000)));
}

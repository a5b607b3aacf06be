//! Smaller failures: what can be taken away while a seed still fails.

use crate::{FaultClass, Options, Outcome, Overrides, Protocol, Shape, World};

/// Runs a seed with overrides; keeps the last `traced` lines of what happened.
#[must_use]
pub fn run<P: Protocol>(seed: u64, f: u16, overrides: &Overrides, traced: usize) -> Outcome {
    let options = Options::draw(seed, f, P::shape(f), overrides);
    World::<P>::run(&options, traced)
}

/// Takes away fault classes, adversaries, clients and requests, one by one, while the same property
/// still fails; tells each step.
pub fn shrink<P: Protocol>(seed: u64, f: u16, start: &Overrides, mut tell: impl FnMut(String)) -> Overrides {
    let Some(first) = run::<P>(seed, f, start, 0).violation else { return start.clone() };
    let mut best = start.clone();
    let fails = |overrides: &Overrides| {
        run::<P>(seed, f, overrides, 0).violation.is_some_and(|found| found.property == first.property)
    };
    loop {
        let mut smaller = None;
        for (name, candidate) in candidates(seed, f, P::shape(f), &best) {
            if fails(&candidate) {
                tell(format!("still fails {name}"));
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(candidate) => best = candidate,
            None => return best,
        }
    }
}

fn candidates(seed: u64, f: u16, shape: Shape, now: &Overrides) -> Vec<(String, Overrides)> {
    let options = Options::draw(seed, f, shape, now);
    let all = Options::draw(seed, f, shape, &Overrides { corrected: Default::default(), ..now.clone() });
    let mut list = Vec::new();
    for class in FaultClass::ALL.into_iter().filter(|class| options.has(*class)) {
        let mut next = now.clone();
        next.without.insert(class);
        list.push((format!("without {class:?}"), next));
    }
    for place in (0..all.faulty.len()).filter(|place| !now.corrected.contains(place)) {
        let mut next = now.clone();
        next.corrected.insert(place);
        list.push((format!("with {:?} correct", all.faulty[place]), next));
    }
    if options.clients > 1 {
        list.push((
            format!("with {} clients", options.clients - 1),
            Overrides { clients: Some(options.clients - 1), ..now.clone() },
        ));
    }
    for requests in [options.requests / 2, options.requests.saturating_sub(1)] {
        if requests > 0 && requests < options.requests {
            list.push((
                format!("with {requests} requests per client"),
                Overrides { requests: Some(requests), ..now.clone() },
            ));
        }
    }
    list
}

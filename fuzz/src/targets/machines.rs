//! The agreement machines: each has a target that drives replicas of it, and one that starts a replica from a log that
//! says anything. What both do is the same for all; what faulty replicas of each say is below `world/`.

use super::log_recovery;
use crate::bytes::Steps;
use crate::world::{Fuzzed, World};
use crate::{Bound, Target};

/// An agreement machine and its targets.
pub struct Machine {
    /// The type's whole name.
    pub name: fn() -> &'static str,
    /// Drives replicas among faulty ones.
    pub drives: Target,
    /// Starts a replica from a log.
    pub recovers: Target,
}

/// The replicas, their logs and their components', and every message that was kept.
pub(super) const BOUND: Bound = Bound { fixed: 16 << 20, per_byte: 16 << 10 };
/// The longest input.
pub(super) const LONGEST: usize = 4096;
/// Steps of one input.
const STEPS: usize = 120;

/// The targets of a machine, by their names, with what each search begins with.
pub(super) const fn machine<P: Fuzzed>(
    drives: &'static str,
    recovers: &'static str,
    seeds: fn() -> Vec<Vec<u8>>,
    logs: fn() -> Vec<Vec<u8>>,
) -> Machine {
    Machine {
        name: std::any::type_name::<P>,
        drives: Target { name: drives, run: run::<P>, seeds, bound: BOUND, longest: LONGEST },
        recovers: Target {
            name: recovers,
            run: log_recovery::run::<P>,
            seeds: logs,
            bound: BOUND,
            longest: LONGEST,
        },
    }
}

fn run<P: Fuzzed>(input: &[u8]) {
    drive::<P>(input, |_| {});
}

/// Takes the steps of an input; `each` sees the world behind each of them.
pub(crate) fn drive<P: Fuzzed>(input: &[u8], mut each: impl FnMut(&World<P>)) {
    let mut steps = Steps::new(input);
    let mut world = World::<P>::new(steps.byte());
    for _ in 0..STEPS {
        if steps.is_over() {
            break;
        }
        world.step(&mut steps);
        each(&world);
    }
}

/// A request with an operation that the service knows.
pub(super) const REQUEST: &[u8] = &[0, 0, 0, 0, 8, 0, 3, 0, 0, 0, b'k', b'e', b'y', 0];
/// Another one.
pub(super) const ANOTHER: &[u8] = &[0, 0, 1, 1, 8, 0, 3, 0, 0, 0, b'k', b'e', b'y', 0];
/// And one more.
pub(super) const THIRD: &[u8] = &[0, 0, 2, 2, 8, 0, 3, 0, 0, 0, b'k', b'e', b'y', 0];
/// All that correct replicas said to each other arrives, and no time passes.
pub(super) const ARRIVES: &[u8] = &[248, 2, 0, 0];
/// The same, and six seconds pass in two halves.
pub(super) const LATER: &[u8] = &[248, 2, 255, 255, 248, 2, 255, 255];
/// The correct replica starts again.
pub(super) const RESTART: &[u8] = &[0, 6];

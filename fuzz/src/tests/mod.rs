//! Whether the worlds of the agreement machines are such that something happens in them.

use crate::MACHINES;
use crate::targets::machines::drive;
use crate::world::Fuzzed;
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::A2mPbftEa;
use troth_minbft::MinBft;
use troth_pbft::Pbft;

/// How far the seeds of a machine bring a correct replica: batches executed, the last stable checkpoint, and the
/// highest view that it works in.
fn reached<P: Fuzzed>() -> (u64, u64, u64) {
    let name = std::any::type_name::<P>();
    let machine = MACHINES.iter().find(|machine| (machine.name)() == name).expect("each has targets");
    let mut furthest = (0, 0, 0);
    for seed in (machine.drives.seeds)() {
        drive::<P>(&seed, |world| {
            let status = world.status();
            let view = if status.active { status.view.0 } else { 0 };
            let (executed, stable, highest) = furthest;
            furthest = (executed.max(status.executed.0), stable.max(status.stable.0), highest.max(view));
        });
    }
    furthest
}

#[test]
fn a_search_begins_behind_checkpoints_and_view_changes() {
    for (executed, stable, view) in [reached::<Pbft>(), reached::<A2mPbftE>(), reached::<A2mPbftEa>()] {
        assert!(executed > 4, "no seed executes a batch behind a checkpoint: {executed}");
        assert!(stable >= 4, "no seed makes a checkpoint stable: {stable}");
        assert!(view > 0, "no seed begins another view");
    }
    let (executed, ..) = reached::<MinBft>();
    assert!(executed > 0, "no seed executes anything");
}

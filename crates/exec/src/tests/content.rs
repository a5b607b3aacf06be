//! What of a state goes on in another group.

use super::support::{SMALL, Script, checkpoint, events_after, frame, run, scan};
use crate::state::State;
use crate::{Application, Executor, OpContext, Snapshot, StateView};
use bytes::Bytes;
use troth_core::Execution;
use troth_types::{ClientId, Seq, StateFetch};

fn snapshot(executor: &mut Executor<Script>) -> Snapshot {
    let (seq, _) = checkpoint(executor);
    executor.snapshot(seq).expect("kept")
}

#[test]
fn the_contents_digest_says_nothing_of_clients_numbers_and_batches() {
    let mut one = Executor::new(Script::default(), SMALL);
    run(&mut one, &[frame(1, 1, &["set a 1", "set b 2", "tell 2 hello"])]);
    let mut other = Executor::new(Script::default(), SMALL);
    for number in 1..=9 {
        run(&mut other, &[frame(7, number, &["set b 2", "set c 3"])]);
    }
    run(&mut other, &[frame(8, 4, &["set a 1", "del c"])]);
    let (one, other) = (snapshot(&mut one), snapshot(&mut other));
    assert_ne!(one.digest(), other.digest(), "clients and batches differ");
    let app = Script::default();
    assert_eq!(one.content_digest(&app), other.content_digest(&app));
    assert_eq!(one.content(&app).entries(), 2);

    let mut third = Executor::new(Script::default(), SMALL);
    run(&mut third, &[frame(1, 1, &["set a 1", "set b 3"])]);
    assert_ne!(snapshot(&mut third).content_digest(&app), one.content_digest(&app), "the content differs");
}

#[test]
fn a_group_that_begins_with_content_has_all_of_it_and_no_client() {
    let mut old = Executor::new(Script::default(), SMALL);
    let large = format!("set large {}", "v".repeat(5_000));
    run(&mut old, &[frame(1, 9, &["set a 1", &large]), frame(2, 5, &["tell 1 hello"])]);
    let kept = snapshot(&mut old);
    let content = kept.content(&Script::default());
    assert_eq!((content.seq(), content.time()), (Seq(0), kept.time()));

    let mut new = Executor::new(Script::default(), SMALL);
    new.restore(content.clone());
    assert_eq!((new.executed(), new.last_time()), (Seq(0), kept.time()), "agreed time goes on");
    assert_eq!(scan(&new), scan(&old));
    assert!(events_after(&new, 1, 0).is_empty(), "nobody is told what the old clients were");
    let outcome = run(&mut new, &[frame(1, 1, &["add a 1"])]);
    assert_eq!(outcome.replies.len(), 1, "a new client begins with number 1 whatever the old one had");
    assert_eq!(new.executed(), Seq(1));
    assert_ne!(snapshot(&mut new).content_digest(&Script::default()), content.root());
}

/// Keeps what starts with `keep`.
#[derive(Clone, Debug)]
struct Choosy;

impl Application for Choosy {
    fn execute(&self, state: &mut State<'_>, _cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes {
        state.insert(operation, operation.clone());
        Bytes::new()
    }
    fn query(&self, _state: &StateView<'_>, _client: ClientId, _operation: &Bytes) -> Bytes {
        Bytes::new()
    }
    fn outlives_clients(&self, key: &[u8]) -> bool {
        key.starts_with(b"keep")
    }
}

#[test]
fn what_an_application_keeps_for_its_clients_stays_behind() {
    let mut executor = Executor::new(Choosy, SMALL);
    let frames = [frame(1, 1, &["keep this", "watch of client 1"])];
    executor.execute(&troth_core::Ordered {
        seq: Seq(1),
        time: troth_types::Time(1),
        seed: troth_types::Digest([9; 32]),
        frames: frames.to_vec(),
    });
    executor.checkpoint();
    let (seq, _) = executor.poll_checkpoint(usize::MAX).expect("hashed at once");
    let content = executor.snapshot(seq).expect("kept").content(&Choosy);
    assert_eq!(content.entries(), 1);
    executor.restore(content);
    assert!(executor.state().contains(b"keep this"));
    assert!(!executor.state().contains(b"watch of client 1"));
}

#[test]
fn a_held_snapshot_serves_itself_and_nothing_else() {
    let mut executor = Executor::new(Script::default(), SMALL);
    run(&mut executor, &[frame(1, 1, &["set a 1"])]);
    let kept = snapshot(&mut executor);
    let head = StateFetch { seq: kept.seq(), digest: kept.digest(), path: Bytes::new() };
    assert_eq!(kept.serve(&head), executor.serve(&head));
    assert!(kept.serve(&head).is_some());
    assert_eq!(kept.serve(&StateFetch { seq: Seq(9), ..head.clone() }), None);
    assert_eq!(kept.serve(&StateFetch { path: Bytes::from_static(&[200, 1]), ..head }), None);
}

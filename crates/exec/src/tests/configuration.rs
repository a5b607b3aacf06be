//! What operators' frames cost, and what those of removed clients do.

use super::support::{SMALL, Script, frame, run};
use crate::Executor;
use bytes::Bytes;
use std::sync::Arc;
use troth_core::{Execution, Lookup};
use troth_types::{Change, ClientEntry, ClientId, Configuration, OPERATOR, ReplyBody, Wire};

fn executor() -> Executor<Script> {
    let entry = ClientEntry { key: [1; 32], link: [2; 32], removed: false };
    let clients = [ClientId(5), OPERATOR].map(|client| (client, entry));
    let configuration = Arc::new(Configuration::new(Vec::new(), clients.into()));
    Executor::with_configuration(Script::default(), SMALL, configuration, 8)
}

fn wire(change: &Change) -> Bytes {
    Bytes::from(change.to_wire().to_vec())
}

#[test]
fn an_operators_frame_makes_no_answers_without_end() {
    let show = wire(&Change::Show);
    let bound = SMALL.client_bytes;
    let passes_over = |client, operation: &Bytes, made| {
        crate::frame::passes_over(&Script::default(), &SMALL, client, operation, made)
    };
    assert!(!passes_over(OPERATOR, &show, bound));
    assert!(passes_over(OPERATOR, &show, bound + 1), "each shows the whole configuration");
    assert!(!passes_over(OPERATOR, &wire(&Change::RemoveClient(ClientId(5))), bound + 1));
    assert!(!passes_over(OPERATOR, &Bytes::from_static(b"big 1"), bound + 1), "not a question");
    assert!(passes_over(ClientId(5), &Bytes::from_static(b"big 1"), bound + 1));
}

#[test]
fn a_removed_clients_frame_does_nothing_however_often_it_is_ordered() {
    let mut executor = executor();
    run(&mut executor, &[frame(5, 1, &["add a 1"])]);
    let remove = Change::RemoveClient(ClientId(5)).to_wire();
    let remove = frame(OPERATOR.0, 1, &[std::str::from_utf8(&remove).expect("small numbers")]);
    let removed = run(&mut executor, &[remove]);
    assert!(removed.configuration.is_some_and(|configuration| configuration.is_removed(ClientId(5))));
    for _ in 0..3 {
        let outcome = run(&mut executor, &[frame(5, 2, &["add a 1", "tell 5 hello"])]);
        assert!(outcome.replies.is_empty() && outcome.events.is_empty());
        assert_eq!(outcome.names(), [(ClientId(5), 2)], "it waits no longer");
        assert_eq!(executor.lookup(ClientId(5), 2), Lookup::New, "nothing is kept of it");
    }
    assert_eq!(executor.state().get(b"a"), Some(Bytes::from("1")));
    let reply = run(&mut executor, &[frame(OPERATOR.0, 2, &["\u{4}"])]).replies.remove(0);
    assert!(matches!(reply.body, ReplyBody::Full(_)), "the operator is heard as before");
}

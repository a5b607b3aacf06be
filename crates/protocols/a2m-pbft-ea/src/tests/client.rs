//! What a client believes.

use super::harness::{Net, covers, frame, group, key, r, verifier};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_auth::{ComponentPairs, HISTORY_LOG, History, ModelSigner, Placed, Verified};
use troth_client::{ClientCore, Config, Output, Proven};
use troth_core::Agreement;
use troth_trusted::{Epoch, MacVerifier};
use troth_types::{
    AttestedReply, ClientEntry, ClientId, ComponentKey, Configuration, Place, ReplicaId, Reply, ReplyBody,
    Seq, Time, ToClient, ToReplica, View,
};

/// The rule stands in the client's own crate, whose marks are not counted.
macro_rules! about {
    ($label:literal) => {};
}

fn reply(result: &'static [u8]) -> Reply {
    Reply {
        client: ClientId(1),
        number: 1,
        seq: Seq(2),
        view: View(0),
        events_up_to: 0,
        body: ReplyBody::Full(vec![Bytes::from_static(result)]),
    }
}

/// A client of five replicas with its first frame, a group that executed that frame after another client's, and one that
/// executed it after yet another's.
fn scene() -> (ClientCore, Net, Net) {
    let group = group(2);
    let history =
        History::new(group.id(), HISTORY_LOG, Arc::new(verifier(&group)), group.all().map(|_| Epoch(1)));
    let config =
        Config { history: Some(Proven { history, session: [1; 32] }), ..Config::new(group, ClientId(1)) };
    let mut client = ClientCore::new(config, Arc::new(ModelSigner::new(1)));
    client.submit(Time(1), vec![Bytes::from_static(b"operation")]).expect("taken");
    let mut sent = None;
    while let Some(output) = client.poll() {
        if let Output::Send { message: ToReplica::Request { frame, .. }, .. } = output {
            sent = Some(frame);
        }
    }
    let sent = Verified::made_here(sent.expect("a frame"));
    let after = |other: u64| {
        let mut net = Net::new(2);
        net.order(&frame(other, 1));
        net.order(&sent);
        net
    };
    (client, after(2), after(3))
}

fn place(net: &Net, replica: u16) -> Place {
    net.node(replica).released[&Seq(2)].place_of(ClientId(1), 1).expect("its place")
}

fn done(client: &mut ClientCore) -> Option<Vec<Bytes>> {
    let mut results = None;
    while let Some(output) = client.poll() {
        if let Output::Done { result, .. } = output {
            results = result.ok();
        }
    }
    results
}

fn say(client: &mut ClientCore, from: u16, reply: Reply, place: Place) {
    client.on_message(
        Time(2),
        r(from),
        ToClient::Attested(AttestedReply { reply, place, renewed: Vec::new() }),
    );
}

/// The keys of the client that has these connections with the components of the harness.
struct Links([u8; 32]);

impl ComponentPairs for Links {
    fn with(&self, _: ReplicaId, _: Option<&ComponentKey>) -> Option<MacVerifier> {
        Some(key().verifier().shared_with(&self.0))
    }
}

#[test]
fn places_that_components_show_to_a_client_alone_convince_this_client_alone() {
    covers!("A2MPBFTEA-H8");
    let entry = |link| ClientEntry { key: [0; 32], link: [link; 32], removed: false };
    let clients = BTreeMap::from([(ClientId(1), entry(1)), (ClientId(2), entry(2))]);
    let known = Arc::new(Configuration::new(Vec::new(), clients));
    let mut net = Net::new(1);
    for replica in 0..3 {
        net.step(r(replica), |replica, cx| replica.on_configured(cx, &known));
    }
    net.order(&frame(2, 1));
    net.order(&frame(1, 1));
    let group = group(1);
    let all =
        || History::new(group.id(), HISTORY_LOG, Arc::new(verifier(&group)), group.all().map(|_| Epoch(1)));
    let voted = |history: &History, from| {
        history.vote(
            r(from),
            (&frame(1, 1), &mut Placed::default()),
            &reply(b"right").vote(),
            &place(&net, from),
            &[],
        )
    };
    let (own, other) = (all().of_client(Arc::new(Links([1; 32]))), all().of_client(Arc::new(Links([2; 32]))));
    for from in 0..3 {
        assert!(voted(&own, from).is_some() && voted(&own, from) == voted(&own, 0));
        assert_eq!(voted(&other, from), None, "made for another client");
        assert_eq!(voted(&all(), from), None, "it has no keys");
    }
}

#[test]
fn a_reply_needs_f_plus_1_equal_results_and_histories() {
    about!("A2MPBFTEA-H4");
    let (mut client, net, forked) = scene();
    say(&mut client, 0, reply(b"right"), place(&net, 0));
    say(&mut client, 0, reply(b"right"), place(&net, 0));
    say(&mut client, 1, reply(b"wrong"), place(&net, 1));
    // Another's place, one of another history, and a reply that proves nothing.
    say(&mut client, 2, reply(b"right"), place(&net, 3));
    say(&mut client, 3, reply(b"right"), place(&forked, 3));
    client.on_message(Time(2), r(4), ToClient::Reply(reply(b"right")));
    assert_eq!(done(&mut client), None);
    say(&mut client, 3, reply(b"right"), place(&net, 3));
    assert_eq!(done(&mut client), None, "two agree");
    say(&mut client, 4, reply(b"right"), place(&net, 4));
    assert_eq!(done(&mut client), Some(vec![Bytes::from_static(b"right")]));
}

#[test]
fn f_replicas_that_share_a_history_prove_nothing() {
    about!("A2MPBFTEA-H4");
    let (mut client, net, forked) = scene();
    for from in [0, 1] {
        say(&mut client, from, reply(b"right"), place(&forked, from));
    }
    for from in [2, 3] {
        say(&mut client, from, reply(b"right"), place(&net, from));
    }
    assert_eq!(done(&mut client), None);
    say(&mut client, 4, reply(b"right"), place(&net, 4));
    assert!(done(&mut client).is_some());
}

//! What a client believes.

use super::harness::{Net, covers, frame, group, mac_key, r, renewed_logs, verifier};
use bytes::Bytes;
use std::cell::RefCell;
use std::sync::Arc;
use troth_auth::{ComponentPairs, HISTORY_LOG, History, ModelSigner, Placed, encode_attestation};
use troth_client::{ClientCore, Config, Output, Proven};
use troth_trusted::a2m::{Answer, Operation, slot_nonce};
use troth_trusted::{CounterValue, Epoch, MacVerifier};
use troth_trusted_host::TrustedLogs;
use troth_types::{
    AttestedReply, ClientId, ComponentKey, Digest, Event, Place, Renewed, ReplicaId, Reply, ReplyBody, Seq,
    Time, ToClient, ToReplica, View,
};

/// The rule stands in the client's own crate, whose marks are not counted.
macro_rules! about {
    ($label:literal) => {};
}

pub(super) fn history() -> History {
    History::new(group().id(), HISTORY_LOG, Arc::new(verifier()), [Epoch(1); 4])
}

fn reply(seq: u64, result: &'static [u8]) -> Reply {
    Reply {
        client: ClientId(1),
        number: 1,
        seq: Seq(seq),
        view: View(0),
        events_up_to: 0,
        body: ReplyBody::Full(vec![Bytes::from_static(result)]),
    }
}

/// A client with its first frame, and a group that executed it after another client's.
fn scene() -> (ClientCore, Net) {
    scene_after(None)
}

/// The same, the client having been told of its first event before, by this batch.
fn scene_after(event: Option<u64>) -> (ClientCore, Net) {
    let proven = Proven { history: history(), session: [1; 32] };
    let config = Config { history: Some(proven), ..Config::new(group(), ClientId(1)) };
    let mut client = ClientCore::new(config, Arc::new(ModelSigner::new(1)));
    if let Some(seq) = event {
        tell(&mut client, seq);
    }
    client.submit(Time(1), vec![Bytes::from_static(b"operation")]).expect("taken");
    let mut sent = None;
    while let Some(output) = client.poll() {
        if let Output::Send { message: ToReplica::Request { frame, .. }, .. } = output {
            sent = Some(frame);
        }
    }
    let mut net = Net::new();
    net.order(&frame(2, 1));
    net.order(&troth_auth::Verified::made_here(sent.expect("a frame")));
    (client, net)
}

/// Three replicas tell of the client's first event.
fn tell(client: &mut ClientCore, seq: u64) {
    let event =
        Event { client: ClientId(1), index: 1, seq: Seq(seq), payload: Bytes::from_static(b"changed") };
    for from in 0..3 {
        client.on_message(Time(1), r(from), ToClient::Event(event.clone()));
    }
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

#[test]
fn a_reply_needs_a_quorum_of_equal_results_and_histories() {
    about!("A2MPBFTE-H4");
    let (mut client, net) = scene();
    say(&mut client, 0, reply(2, b"right"), place(&net, 0));
    say(&mut client, 1, reply(2, b"wrong"), place(&net, 1));
    say(&mut client, 2, reply(2, b"right"), place(&net, 2));
    client.on_message(Time(2), r(3), ToClient::Reply(reply(2, b"right")));
    assert_eq!(done(&mut client), None, "two agree, and one that proves nothing");
    say(&mut client, 3, reply(2, b"right"), place(&net, 3));
    assert_eq!(done(&mut client), Some(vec![Bytes::from_static(b"right")]));
}

/// Lets the client send its frame again, as often as it is time for.
fn ask_again(client: &mut ClientCore) {
    let at = client.next_wake().expect("something is under way");
    client.on_timer(at);
    let again = |output| matches!(output, Output::Send { message: ToReplica::Request { .. }, .. });
    assert!(std::iter::from_fn(|| client.poll()).any(again), "the frame is sent again");
}

/// A proof costs a check. Whoever sends one after the other has no more of them checked than a correct replica may have to
/// send, and a correct one is heard whenever it is asked.
#[test]
fn of_each_replica_a_few_proofs_are_checked_each_time_that_it_is_asked() {
    about!("A2MPBFTE-H4");
    let (mut client, net) = scene();
    for from in 0..2 {
        say(&mut client, from, reply(2, b"right"), place(&net, from));
    }
    // Another's place proves nothing of this replica's history.
    let waste = |client: &mut ClientCore, times| {
        (0..times).for_each(|_| say(client, 3, reply(2, b"right"), place(&net, 2)));
    };
    waste(&mut client, 2);
    say(&mut client, 3, reply(2, b"right"), place(&net, 3));
    assert_eq!(done(&mut client), None, "it is the third of this replica");
    ask_again(&mut client);
    waste(&mut client, 2);
    say(&mut client, 3, reply(2, b"right"), place(&net, 3));
    assert_eq!(done(&mut client), None, "two more for each time");
    ask_again(&mut client);
    say(&mut client, 3, reply(2, b"right"), place(&net, 3));
    assert!(done(&mut client).is_some(), "and heard it is");
}

#[test]
fn results_that_are_agreed_on_need_no_further_proof() {
    about!("A2MPBFTE-H4");
    let (mut client, net) = scene();
    let digest = ReplyBody::Digest(Reply::results_digest(&[Bytes::from_static(b"right")]));
    for from in [0, 1, 2, 2] {
        let reply = Reply { body: digest.clone(), ..reply(2, b"right") };
        say(&mut client, from, reply, place(&net, from));
    }
    assert_eq!(done(&mut client), None, "nobody showed the results");
    say(&mut client, 2, reply(2, b"wrong"), place(&net, 2));
    assert_eq!(done(&mut client), None);
    say(&mut client, 2, reply(2, b"right"), place(&net, 2));
    assert!(done(&mut client).is_some(), "no check is needed to know them");
}

/// The keys of the client that has these connections with the components of the harness.
struct Links([u8; 32]);

impl ComponentPairs for Links {
    fn with(&self, _: ReplicaId, _: Option<&ComponentKey>) -> Option<MacVerifier> {
        Some(mac_key().verifier().shared_with(&self.0))
    }
}

#[test]
fn places_that_components_show_to_a_client_alone_convince_this_client_alone() {
    covers!("A2MPBFTE-H8");
    let mut net = Net::new();
    net.configure_clients(&[(ClientId(1), [1; 32]), (ClientId(2), [2; 32])]);
    net.order(&frame(2, 1));
    net.order(&frame(1, 1));
    let (frame, reply) = (frame(1, 1), reply(2, b"right"));
    let voted = |history: &History, from, place: &Place| {
        history.vote(r(from), (&frame, &mut Placed::default()), &reply.vote(), place, &[])
    };
    let own = history().of_client(Arc::new(Links([1; 32])));
    let other = history().of_client(Arc::new(Links([2; 32])));
    let votes: Vec<_> = (0..4).map(|from| voted(&own, from, &place(&net, from))).collect();
    assert!(votes[0].is_some() && votes.iter().all(|vote| *vote == votes[0]), "all are of one history");
    for from in 0..4 {
        let place = place(&net, from);
        assert_eq!(voted(&other, from, &place), None, "made for another client");
        assert_eq!(voted(&history(), from, &place), None, "it has no keys");
        assert_eq!(voted(&own, (from + 1) % 4, &place), None, "another replica's component");
        let late = Place { time: Time(place.time.0 + 1), ..place };
        assert_eq!(voted(&own, from, &late), None, "another batch");
    }
    // Whoever does not know the clients signs, which convinces every client.
    let mut signing = Net::new();
    for frame in [&super::harness::frame(2, 1), &frame] {
        signing.order(frame);
    }
    for history in [own, other, history()] {
        assert_eq!(voted(&history, 1, &place(&signing, 1)), votes[0]);
    }
}

#[test]
fn replies_of_different_histories_do_not_add_up() {
    about!("A2MPBFTE-H4");
    let (mut client, net) = scene();
    // Replica 3 executed another request before it.
    let mut forked = Net::new();
    forked.order(&frame(3, 1));
    let own = net.node(3).executed[1].frames[0].clone();
    forked.order(&own);
    say(&mut client, 3, reply(2, b"right"), place(&forked, 3));
    say(&mut client, 0, reply(2, b"right"), place(&net, 0));
    say(&mut client, 1, reply(2, b"right"), place(&net, 1));
    assert_eq!(done(&mut client), None);
    say(&mut client, 2, reply(2, b"right"), place(&net, 2));
    assert!(done(&mut client).is_some());
}

/// Whether a reply executed at 2 is believed after so many events.
fn believed(mut scene: (ClientCore, Net), events_up_to: u64) -> bool {
    let (client, net) = (&mut scene.0, &scene.1);
    for from in 0..3 {
        say(client, from, Reply { events_up_to, ..reply(2, b"right") }, place(net, from));
    }
    done(client).is_some()
}

#[test]
fn what_is_sent_after_an_event_is_executed_behind_it() {
    about!("A2MPBFTE-E5");
    assert!(believed(scene_after(Some(1)), 1));
    assert!(!believed(scene_after(Some(2)), 1), "nobody had the frame when the event's batch was ordered");
    assert!(!believed(scene_after(Some(1)), 0), "a state in which the event never was");
    let (mut client, net) = scene();
    tell(&mut client, 7);
    assert!(believed((client, net), 0), "it was sent before");
}

#[test]
fn a_place_proves_one_frame_of_one_replicas_history() {
    about!("A2MPBFTE-H4");
    let (_, net) = scene();
    let (history, good) = (history(), place(&net, 1));
    let own = net.node(1).executed[1].frames[0].clone();
    // What was made of one place must not be taken for another.
    let placed = RefCell::new(Placed::default());
    let said = reply(2, b"right").vote();
    let vote = |from: u16, place: &Place| {
        history.vote(ReplicaId(from), (&own, &mut placed.borrow_mut()), &said, place, &[])
    };
    assert!(vote(1, &good).is_some());
    assert_eq!(vote(1, &good), vote(2, &place(&net, 2)), "the same history, the same vote");
    assert_eq!(vote(2, &good), None, "another replica's component");
    let other = history.vote(r(1), (&frame(1, 9), &mut placed.borrow_mut()), &said, &good, &[]);
    assert_eq!(other, None, "another frame");
    assert!(vote(1, &good).is_some(), "the same place as before");
    let other_time = Place { time: Time(good.time.0 + 1), ..good.clone() };
    let elsewhere = Place { index: good.index ^ 1, count: 2, path: vec![Digest([1; 32])], ..good.clone() };
    let mut bytes = good.attestation.to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let forged = Place { attestation: bytes.into(), ..good.clone() };
    let mut bytes = good.attestation.to_vec();
    bytes.push(0);
    let longer = Place { attestation: bytes.into(), ..good };
    for wrong in [other_time, elsewhere, forged, longer] {
        assert_eq!(vote(1, &wrong), None, "{wrong:?}");
    }
}

/// The place at 2 as a component attests it that took the place of replica 2's after the first batch.
fn renewed_place(net: &Net) -> (Place, Renewed) {
    let before = net.node(2).entry(1).expect("attested").digest.0;
    let value = net.node(2).entry(2).expect("attested").value.0;
    let (mut logs, renewed) = renewed_logs(2, 2);
    let slot = CounterValue::new(0, 2);
    let nonce = Some(slot_nonce(slot));
    let advance = Operation::Advance { log: HISTORY_LOG, slot, previous: before, value, nonce };
    let answers = logs.call(&[advance]).expect("the first slot of an empty log");
    let Some(Answer::Attested(attestation)) = answers.first() else { panic!("it is attested") };
    let mut bytes = Vec::new();
    encode_attestation(attestation, &mut bytes);
    (Place { attestation: bytes.into(), ..place(net, 2) }, renewed)
}

#[test]
fn of_each_replica_the_component_counts_that_a_quorum_says() {
    about!("A2MPBFTE-N6");
    let (_, net) = scene();
    let (new, renewed) = renewed_place(&net);
    let old = place(&net, 2);
    // What 0, 1 and 2 say of who was renewed, and what 2 shows; whether the reply is believed.
    let (none, later) = (Vec::new(), vec![Renewed { epoch: 3, ..renewed }]);
    let renewed = vec![renewed];
    let cases = [
        ([&renewed; 3], &new, true),
        ([&renewed; 3], &old, false),
        ([&none; 3], &old, true),
        ([&none; 3], &new, false),
        ([&none, &renewed, &renewed], &new, false),
        ([&later; 3], &new, false),
    ];
    for (index, (said, shown, believed)) in cases.into_iter().enumerate() {
        let (mut client, net) = scene();
        for (from, renewed) in (0..).zip(said) {
            let place = if from == 2 { shown.clone() } else { place(&net, from) };
            let reply = reply(2, b"right");
            let renewed = renewed.clone();
            let message = ToClient::Attested(AttestedReply { reply, place, renewed });
            client.on_message(Time(2), r(from), message);
        }
        assert_eq!(done(&mut client).is_some(), believed, "case {index}");
    }
}

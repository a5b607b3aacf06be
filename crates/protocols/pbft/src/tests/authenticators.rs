//! PBFT-M1 to PBFT-M7: frames with authenticators.

use super::harness::*;
use crate::message::{Message, PrePrepare, Vote};
use crate::{Config, Pbft, Timer};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::Verified;
use troth_core::{Agreement, VerifiedFrame};
use troth_types::{Batch, ClientId, FrameDraft, FrameProof, GroupId, Limits, Seq, Tag, View};

/// A frame without signature; whose tags are right the tests say.
pub(super) fn tagged(client: u64, number: u64) -> VerifiedFrame {
    let draft = FrameDraft {
        group: GroupId(*b"tests-of-pbft---"),
        client: ClientId(client),
        number,
        events_seen: 0,
        operations: vec![Bytes::from_static(b"operation")],
    };
    Verified::made_here(Arc::new(draft.prove(FrameProof::Authenticator([Tag([1; 16]); 4].into()))))
}

fn pre_prepare(seq: u64, batch: &Batch) -> Message {
    Message::PrePrepare(PrePrepare { view: View(0), seq: Seq(seq), batch: batch.clone() })
}

fn prepare(seq: u64, batch: &Batch) -> Message {
    Message::Prepare(Vote { view: View(0), seq: Seq(seq), digest: batch.digest() })
}

fn is_prepare(message: &Message) -> bool {
    matches!(message, Message::Prepare(_))
}

/// A replica is shown frames, by whoever, in which its tag is wrong.
fn show_doubtful(net: &mut Net, to: u16, frames: &[&VerifiedFrame]) {
    let frames = frames.iter().map(|frame| Arc::clone(frame)).collect();
    net.step(r(to), |pbft: &mut Pbft, cx| pbft.on_doubtful_frames(cx, frames));
}

#[test]
fn frames_that_every_replica_finds_authentic_are_ordered() {
    covers!("PBFT-M1");
    let mut net = Net::new(1);
    let one = tagged(1, 1);
    net.order(&one);
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [one.digest()]);
    }
}

#[test]
fn nobody_is_suspected_for_what_is_not_signed() {
    covers!("PBFT-M1");
    let mut net = Net::new(1);
    let one = tagged(1, 1);
    // The primary has it not: its tag may be wrong for it alone.
    net.request(&one, [1, 2, 3]);
    for backup in 1..4 {
        assert!(!net.node(backup).timers.contains_key(&Timer::Request));
    }
    // What is sent again is signed.
    let signed = frame(1, 1);
    net.request(&signed, [1, 2, 3]);
    assert!(net.node(1).timers.contains_key(&Timer::Request));
    net.fire(1, Timer::Forward);
    net.run();
    for replica in 0..4 {
        assert_eq!(net.node(replica).history(), [signed.digest()], "the primary is shown the signed one");
    }
}

#[test]
fn a_wrong_tag_is_made_up_for_by_f_plus_1_votes_and_not_by_fewer() {
    covers!("PBFT-M3");
    let mut net = Net::new(1);
    let one = tagged(1, 1);
    let proposed = batch(&[&one]);
    net.tell(0, 3, pre_prepare(1, &proposed));
    show_doubtful(&mut net, 3, &[&one]);
    net.tell(0, 3, prepare(1, &proposed));
    assert_eq!(net.sent(3, is_prepare), 0, "the primary alone vouches, whatever it repeats");
    net.tell(1, 3, prepare(1, &proposed));
    assert!(net.sent(3, is_prepare) > 0, "two of four do, and one of them is correct");
}

#[test]
fn doubtful_frames_are_kept_only_where_a_proposal_names_them() {
    covers!("PBFT-M2");
    let mut net = Net::new(1);
    let (one, other) = (tagged(1, 1), tagged(2, 1));
    net.tell(0, 3, pre_prepare(1, &batch(&[&one])));
    show_doubtful(&mut net, 3, &[&one, &other]);
    assert_eq!(net.node(3).pbft.doubtful.keys().copied().collect::<Vec<_>>(), [one.digest()]);
    net.node_mut(3).frames_asked.clear();
    net.fire(3, Timer::Status);
    assert!(net.node(3).frames_asked.is_empty(), "nobody has another with this digest");
}

#[test]
fn only_so_much_is_kept_in_doubt_and_nothing_beyond_its_view() {
    covers!("PBFT-M2");
    let limits = Limits { frame_bytes: 400, batch_frames: 4_000, ..SMALL.limits };
    let config = Config { window: 2048, pipeline: 5, limits, ..SMALL };
    let mut net = Net::with(1, config);
    let made_up: Vec<_> = (1..=4_000).map(|client| tagged(client, 1)).collect();
    let all: Vec<&VerifiedFrame> = made_up.iter().collect();
    net.tell(0, 3, pre_prepare(1, &batch(&all)));
    show_doubtful(&mut net, 3, &all);
    let kept = |net: &Net| -> usize { net.node(3).pbft.doubtful.values().map(|frame| frame.size()).sum() };
    let (most, frame) = (5 * config.batch_bytes(), made_up[0].size());
    assert!((most..most + frame).contains(&kept(&net)), "{}", kept(&net));
    net.leave(3);
    assert_eq!(kept(&net), 0, "the next primary may make up as many");
}

#[test]
fn a_complaint_is_made_again_as_long_as_the_doubt_lasts_and_in_every_view() {
    covers!("PBFT-M4");
    let mut net = Net::new(1);
    let frames: Vec<_> = (1..=70).map(|client| tagged(client, 1)).collect();
    let all: Vec<&VerifiedFrame> = frames.iter().collect();
    let proposed = batch(&all);
    net.tell(0, 3, pre_prepare(1, &proposed));
    show_doubtful(&mut net, 3, &all);
    net.wire.clear();
    let mut named = std::collections::BTreeSet::new();
    for _ in 0..2 {
        net.fire(3, Timer::Status);
        let complaints = net.wire.iter().filter(|flight| flight.to == r(0));
        for message in complaints.map(|flight| &flight.message) {
            if let Message::WrongTags(digests) = message {
                named.extend(digests.iter().copied());
            }
        }
    }
    assert_eq!(named.len(), 70, "in turn, as many as one message holds");
    for from in [1, 2] {
        net.tell(from, 3, prepare(1, &proposed));
    }
    net.wire.clear();
    net.fire(3, Timer::Status);
    assert_eq!(net.sent(3, |message| matches!(message, Message::WrongTags(_))), 0, "others know whose it is");
}

#[test]
fn what_2f_plus_1_committed_to_is_executed_though_a_tag_is_wrong() {
    covers!("PBFT-M3");
    let mut net = Net::new(1);
    let one = tagged(1, 1);
    let proposed = batch(&[&one]);
    net.tell(0, 3, pre_prepare(1, &proposed));
    show_doubtful(&mut net, 3, &[&one]);
    for from in [0, 1, 2] {
        let vote = Vote { view: View(0), seq: Seq(1), digest: proposed.digest() };
        net.tell(from, 3, Message::Commit(vote));
    }
    assert_eq!(net.node(3).history(), [one.digest()]);
}

#[test]
fn who_finds_its_tag_wrong_tells_everybody() {
    covers!("PBFT-M4");
    let mut net = Net::new(1);
    let one = tagged(1, 1);
    net.tell(0, 3, pre_prepare(1, &batch(&[&one])));
    show_doubtful(&mut net, 3, &[&one]);
    let told = |message: &Message| matches!(message, Message::WrongTags(named) if *named == [one.digest()]);
    assert_eq!(net.sent(3, told), 3);
    show_doubtful(&mut net, 3, &[&one]);
    assert_eq!(net.sent(3, told), 3, "once");
}

/// The others charge complaints that are no news to whoever makes them.
#[test]
fn of_a_client_that_is_complained_of_the_next_frames_wait_for_a_status() {
    covers!("PBFT-M4");
    let mut net = Net::new(1);
    let frames: Vec<_> = (1..=4).map(|number| tagged(1, number)).collect();
    let all: Vec<&VerifiedFrame> = frames.iter().collect();
    net.tell(0, 3, pre_prepare(1, &batch(&all)));
    let told = |net: &Net| net.sent(3, |message| matches!(message, Message::WrongTags(_))) / 3;
    for frame in &all[..3] {
        show_doubtful(&mut net, 3, &[*frame]);
        assert_eq!(told(&net), 1);
    }
    net.fire(3, Timer::Status);
    assert_eq!(told(&net), 2);
    net.now += SMALL.status_interval;
    show_doubtful(&mut net, 3, &[all[3]]);
    assert_eq!(told(&net), 3, "the last complaint may have come too soon to count, or not at all");
    assert_eq!(net.node(3).pbft.doubtful.len(), 4, "all are kept");
}

#[test]
fn a_client_whose_tags_f_plus_1_found_wrong_is_proposed_with_its_signature_only() {
    covers!("PBFT-M5");
    let mut net = Net::new(1);
    let (one, two) = (tagged(1, 1), tagged(1, 2));
    net.request(&one, [0]);
    net.wire.clear();
    net.tell(2, 0, Message::WrongTags(vec![one.digest()]));
    net.tell(2, 0, Message::WrongTags(vec![one.digest()]));
    net.request(&two, [0]);
    assert_eq!(net.node(0).pbft.pool.len(), 2, "one replica may say what it likes");
    net.tell(3, 0, Message::WrongTags(vec![one.digest()]));
    assert_eq!(net.node(0).pbft.pool.len(), 0);
    net.request(&tagged(1, 3), [0]);
    assert_eq!(net.node(0).pbft.pool.len(), 0);
    net.request(&tagged(2, 1), [0]);
    net.request(&frame(1, 3), [0]);
    assert_eq!(net.node(0).pbft.pool.len(), 2, "other clients' frames, and this one's with its signature");
}

/// The signed form of a frame comes right behind it, before anybody can have complained: each primary that such a client
/// spoilt a batch of would know nothing of it.
#[test]
fn who_signs_what_it_spoilt_has_to_sign_all_the_same() {
    covers!("PBFT-M5");
    let mut net = Net::new(1);
    let (spoilt, signed) = (tagged(1, 1), frame(1, 1));
    net.request(&spoilt, [0]);
    net.request(&signed, [0]);
    for from in [2, 3] {
        assert!(net.node(0).pbft.may_use(&tagged(1, 2)), "one replica may say what it likes");
        net.tell(from, 0, Message::WrongTags(vec![spoilt.digest()]));
    }
    assert!(!net.node(0).pbft.may_use(&tagged(1, 2)));
    assert!(net.node(0).pbft.is_pending(ClientId(1), 1), "what it signed stays");
}

/// A client began anew without what it had not signed yet: nobody is suspected for that, nor for what it leaves no room for.
#[test]
fn what_was_never_signed_keeps_no_signed_request_out() {
    covers!("PBFT-M1");
    let mut net = Net::new(1);
    let later = 1 + SMALL.limits.client_window;
    for number in [1, 2] {
        net.request(&tagged(1, number), [3]);
    }
    net.request(&tagged(1, later), [3]);
    assert!(net.node(3).pbft.is_pending(ClientId(1), 1), "the newer one may be nobody's");
    net.request(&frame(1, later), [3]);
    assert!(net.node(3).pbft.is_pending(ClientId(1), later) && net.node(3).pbft.is_pending(ClientId(1), 2));
    assert!(net.node(3).pbft.frame(&tagged(1, 1).digest()).is_none(), "nothing needs it");
    assert!(net.node(3).timers.contains_key(&Timer::Request), "its primary may not leave it out");
}

#[test]
fn what_somebody_showed_and_may_have_spoilt_says_nothing_of_its_client() {
    covers!("PBFT-M5");
    let mut net = Net::new(1);
    let (spoilt, own) = (tagged(1, 1), tagged(1, 2));
    net.tell(0, 2, pre_prepare(1, &batch(&[&spoilt])));
    net.step(r(2), |pbft: &mut Pbft, cx| pbft.on_known_frames(cx, vec![spoilt.clone()]));
    net.request(&own, [2]);
    for from in [1, 3] {
        net.tell(from, 2, Message::WrongTags(vec![spoilt.digest()]));
    }
    assert_eq!(net.node(2).pbft.pool.len(), 1, "the primary may have changed the tags of others");
}

/// Clients 10 to 13 spoil the tag of one replica each, 0 to 3, and whoever is shown such a frame finds it so.
struct Spoilers {
    net: Net,
    frames: Vec<VerifiedFrame>,
}

impl Spoilers {
    fn new() -> Self {
        let frames: Vec<_> = (10..14).map(|client| tagged(client, 1)).collect();
        let mut net = Net::new(1);
        for replica in 0..4 {
            let all = frames.iter().enumerate();
            let good = all.filter(|(spoilt, _)| *spoilt != replica).map(|(_, frame)| frame.clone());
            net.step(r(replica as u16), |pbft, cx| pbft.on_requests(cx, good.collect()));
        }
        Self { net, frames }
    }

    /// Until nobody has anything to say.
    fn run(&mut self) {
        self.net.run();
        for replica in 0..4 {
            show_doubtful(&mut self.net, replica, &[&self.frames[usize::from(replica)]]);
        }
        self.net.run();
    }

    fn next_view(&mut self) {
        (0..4).for_each(|replica| self.net.leave(replica));
        self.run();
    }
}

#[test]
fn clients_that_spoil_one_replica_s_tags_each_hold_nobody_up_together() {
    covers!("PBFT-M6");
    let mut spoilers = Spoilers::new();
    spoilers.run();
    let honest = frame(1, 1);
    spoilers.net.request(&honest, 0..4);
    spoilers.run();
    assert!(spoilers.net.node(1).executed.is_empty(), "too few can vote for the first batch");
    for client in 11..14 {
        assert!(!spoilers.net.node(0).pbft.distrust.has(ClientId(client)), "one complained of each");
    }
    // One view for each of the primaries is enough: they have heard who complained of whom.
    (1..4).for_each(|_| spoilers.next_view());
    for replica in 0..4 {
        let history = spoilers.net.node(replica).history();
        assert!(history.contains(&honest.digest()), "replica {replica}: {}", history.len());
    }
}

#[test]
fn what_such_a_client_does_not_sign_is_of_no_use_unless_a_proposal_names_it() {
    covers!("PBFT-M7");
    let mut net = Net::new(1);
    let (one, two) = (tagged(1, 1), tagged(1, 2));
    let may = |net: &Net, frame: &VerifiedFrame| net.node(3).pbft.may_use(frame);
    assert!(may(&net, &one) && may(&net, &two));
    net.tell(0, 3, pre_prepare(1, &batch(&[&one])));
    show_doubtful(&mut net, 3, &[&one]);
    assert!(!may(&net, &two));
    assert!(may(&net, &frame(1, 2)) && may(&net, &tagged(2, 1)), "its signature, and another client's tags");
    net.tell(0, 3, pre_prepare(2, &batch(&[&two])));
    assert!(may(&net, &two), "a proposal rests on it");
    net.request(&two, [3]);
    let holds = |net: &Net| net.node(3).pbft.frame(&two.digest()).is_some();
    assert!(holds(&net) && net.node(3).pbft.pool.is_empty(), "kept for that, and not proposed");
}

/// A faulty primary spoils the tags of whatever clients it likes: what it showed tells nothing of them under the next.
#[test]
fn what_one_primary_showed_counts_against_no_client_under_the_next() {
    covers!("PBFT-M4");
    let mut net = Net::new(1);
    let spoilt: Vec<_> = (1..=8).map(|client| tagged(client, 1)).collect();
    let all: Vec<&VerifiedFrame> = spoilt.iter().collect();
    net.request(&tagged(1, 2), [3]);
    net.tell(0, 3, pre_prepare(1, &batch(&all)));
    show_doubtful(&mut net, 3, &all);
    assert!(net.node(3).pbft.pool.is_empty(), "nor what came before");
    let may = |net: &Net, client| net.node(3).pbft.may_use(&tagged(client, 3));
    assert!((1..=8).all(|client| !may(&net, client)));
    net.leave(3);
    assert!((1..=8).all(|client| may(&net, client)));
}

/// What others complained of lasts beyond the view, and until the client has signed for long.
#[test]
fn who_has_to_sign_may_use_tags_again_after_it_has_for_long() {
    covers!("PBFT-M4");
    let mut net = Net::new(1);
    let mut next = 1;
    let complain = |net: &mut Net, number: u64| {
        let one = tagged(1, number);
        net.request(&one, 0..4);
        for from in [2, 3] {
            net.tell(from, 0, Message::WrongTags(vec![one.digest()]));
        }
    };
    let may = |net: &Net| net.node(0).pbft.may_use(&tagged(1, 1 << 40));
    for most in [256, 512] {
        assert!(may(&net));
        complain(&mut net, next);
        // It is proposed already, and ordered without signature.
        net.run();
        next += 1;
        for signed in 0..most {
            assert!(!may(&net), "{signed} of {most}");
            net.order(&frame(1, next));
            next += 1;
        }
        assert!(may(&net), "{most}");
    }
    complain(&mut net, next);
    (0..4).for_each(|replica| net.leave(replica));
    assert!(!may(&net), "another view changes nothing of it");
}

//! The liar to clients: wrong results, wrong places, wrong events, refusals without a reason.

use super::{Hand, Strategy};
use crate::zookeeper;
use crate::{Protocol, ServiceKind};
use bytes::Bytes;
use troth_kv::Answer;
use troth_types::{
    AttestedRead, AttestedReply, ClientId, Digest, Event, HistoryEnd, Refusal, RefusalReason, Reply,
    ReplyBody, Seq, ToClient, View, Wire,
};

/// Tells clients what never happened.
#[derive(Debug, Default)]
pub struct Liar {
    last: Option<(ClientId, u64)>,
    /// An earlier end of a history, to be shown again.
    end: Option<HistoryEnd>,
    /// What clients were told last, for an event that is much like it.
    told: Option<Bytes>,
}

/// A result that was invented, of what it might be.
fn invent<P: Protocol>(hand: &mut Hand<'_, P>, body: &ReplyBody) -> Bytes {
    match (hand.service, body) {
        (ServiceKind::Kv, _) => {
            Answer::Value { version: hand.rng.below(9), value: Bytes::from_static(b"lie") }.to_wire()
        }
        (ServiceKind::ZooKeeper, ReplyBody::Full(results)) => zookeeper::lie_about(hand.rng, results.first()),
        (ServiceKind::ZooKeeper, ReplyBody::Digest(_)) => zookeeper::lie_about(hand.rng, None),
    }
}

/// The payload of an event that did not happen.
fn invent_event<P: Protocol>(hand: &mut Hand<'_, P>, truth: Option<&Bytes>) -> Bytes {
    match hand.service {
        ServiceKind::Kv => Bytes::from_static(b"lie"),
        ServiceKind::ZooKeeper => zookeeper::lie_of_an_event(hand.rng, truth),
    }
}

fn lie_about<P: Protocol>(hand: &mut Hand<'_, P>, body: &ReplyBody) -> ReplyBody {
    let invented = invent(hand, body);
    match (hand.rng.below(4), body) {
        (0, _) => ReplyBody::Digest(Digest([1; 32])),
        (1, ReplyBody::Full(results)) => ReplyBody::Full(vec![invented; results.len()]),
        // The digest of the lie, so that two liars agree.
        (2, _) => ReplyBody::Digest(Reply::results_digest(&[invented])),
        _ => ReplyBody::Full(vec![invented]),
    }
}

impl Liar {
    fn lie_about_reply<P: Protocol>(&mut self, hand: &mut Hand<'_, P>, mut reply: Reply) -> Reply {
        self.last = Some((reply.client, reply.number));
        match hand.rng.below(4) {
            0 => reply.seq = Seq(reply.seq.0 + 1),
            1 => reply.events_up_to += hand.rng.below(3),
            2 => reply.view = View(hand.rng.next()),
            _ => reply.body = lie_about(hand, &reply.body),
        }
        reply
    }
}

impl<P: Protocol> Strategy<P> for Liar {
    fn name(&self) -> &'static str {
        "liar to clients"
    }

    fn client(&mut self, hand: &mut Hand<'_, P>, _: usize, message: ToClient) {
        if hand.rng.one_in(3) {
            return hand.client(message);
        }
        match message {
            ToClient::Reply(reply) => {
                let reply = self.lie_about_reply(hand, reply);
                hand.client_evil(ToClient::Reply(reply));
            }
            ToClient::Tentative(mut reply) => {
                self.last = Some((reply.client, reply.number));
                match hand.rng.below(4) {
                    0 => return hand.client_evil(ToClient::Reply(reply)),
                    1 => reply.events_up_to += hand.rng.below(3),
                    2 => reply.view = View(hand.rng.below(4)),
                    _ => reply.body = lie_about(hand, &reply.body),
                }
                hand.client_evil(ToClient::Tentative(reply));
            }
            ToClient::Attested(AttestedReply { reply, mut place, mut renewed }) => {
                let reply = self.lie_about_reply(hand, reply);
                match hand.rng.below(6) {
                    0 => place.index ^= 1,
                    1 => place.time.0 += 1,
                    2 => drop(renewed.pop()),
                    _ => {}
                }
                hand.client_evil(ToClient::Attested(AttestedReply { reply, place, renewed }));
            }
            ToClient::ReadReply(mut reply) => {
                reply.body = lie_about(hand, &reply.body);
                hand.client_evil(ToClient::ReadReply(reply));
            }
            ToClient::AttestedRead(AttestedRead { mut reply, mut end, mut renewed }) => {
                match hand.rng.below(6) {
                    0 => end.index ^= 1,
                    1 => reply.events_up_to += hand.rng.below(3),
                    2 => return hand.client_evil(ToClient::ReadReply(reply)),
                    // An earlier END, with the answer that went with it or with this one.
                    4 if !renewed.is_empty() => drop(renewed.pop()),
                    3 if self.end.is_some() => end = self.end.clone().unwrap_or(end),
                    _ => reply.body = lie_about(hand, &reply.body),
                }
                if hand.rng.one_in(4) {
                    self.end = Some(end.clone());
                }
                hand.client_evil(ToClient::AttestedRead(AttestedRead { reply, end, renewed }));
            }
            ToClient::Event(mut event) => {
                self.told = Some(event.payload.clone());
                match hand.rng.below(3) {
                    0 => event.index += 1,
                    1 => event.payload = invent_event(hand, Some(&event.payload)),
                    _ => event.seq = Seq(event.seq.0 + 1),
                }
                hand.client_evil(ToClient::Event(event));
            }
            ToClient::Refusal(refusal) => hand.client(ToClient::Refusal(refusal)),
        }
    }

    fn tick(&mut self, hand: &mut Hand<'_, P>) {
        let Some((client, number)) = self.last.filter(|_| hand.rng.one_in(3)) else { return };
        let ahead = number + hand.rng.below(3);
        let reason =
            hand.rng.pick(&[RefusalReason::TooOld, RefusalReason::Unauthorised, RefusalReason::TooLarge]);
        let message = match hand.rng.below(3) {
            0 => ToClient::Refusal(Refusal { client, number: ahead, read: false, reason }),
            1 => {
                let index = hand.rng.below(6) + 1;
                let payload = invent_event(hand, self.told.as_ref());
                ToClient::Event(Event { client, index, seq: Seq(1), payload })
            }
            _ => ToClient::Reply(Reply {
                client,
                number: ahead,
                seq: Seq(1),
                view: View(0),
                events_up_to: 0,
                body: ReplyBody::Digest(Digest([1; 32])),
            }),
        };
        hand.client_evil(message);
    }
}

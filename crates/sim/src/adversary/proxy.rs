//! The general adversary: a proxy before a correct host that withholds, delays, selects, replays and
//! rewrites. It knows no rule of the protocol.

use super::{Hand, Strategy, scramble};
use crate::{Message, Protocol, Rng};
use troth_core::PeerMessage;
use troth_types::{AttestedReply, ReplicaId, Reply, ReplyBody, ToClient};

/// How the proxy treats messages for a while.
#[derive(Clone, Copy, Debug)]
struct Mood {
    until: u64,
    /// Who hears it; the colluders' choice where `together`.
    audience: u64,
    together: bool,
    withhold: u64,
    late: u64,
    late_by: u64,
    replay: u64,
    rewrite: u64,
    lie: u64,
    deaf: u64,
}

/// A withholding, delaying, selecting, replaying, rewriting and distorting proxy.
#[derive(Debug)]
pub struct Proxy {
    mood: Mood,
    pace: u64,
}

impl Proxy {
    /// A proxy whose moods last about `pace` microseconds.
    #[must_use]
    pub fn new(pace: u64) -> Self {
        let mood = Mood {
            until: 0,
            audience: u64::MAX,
            together: false,
            withhold: 0,
            late: 0,
            late_by: 1,
            replay: 0,
            rewrite: 0,
            lie: 0,
            deaf: 0,
        };
        Self { mood, pace }
    }

    fn change_mood(&mut self, rng: &mut Rng, now: u64, n: usize) {
        if now < self.mood.until {
            return;
        }
        let some = |rng: &mut Rng, choices: &[u64]| rng.pick(choices);
        self.mood = Mood {
            until: now + rng.exponential(self.pace).max(1_000),
            audience: if rng.one_in(2) { u64::MAX } else { rng.subset(n) },
            together: rng.one_in(3),
            withhold: some(rng, &[0, 0, 50_000, 300_000]),
            late: some(rng, &[0, 0, 100_000, 600_000]),
            late_by: some(rng, &[500, 5_000, 30_000]),
            replay: some(rng, &[0, 50_000, 200_000]),
            rewrite: some(rng, &[0, 0, 20_000]),
            lie: some(rng, &[0, 0, 300_000]),
            deaf: some(rng, &[0, 0, 0, 200_000]),
        };
    }

    /// What it signs in the place of a message of its own, where it does so now.
    fn distorted<P: Protocol>(hand: &mut Hand<'_, P>, message: &Message<P>) -> Option<Message<P>> {
        let body = P::distort(hand.rng, hand.me, message)?;
        hand.rng.one_in(2).then(|| hand.sign(body))
    }
}

impl<P: Protocol> Strategy<P> for Proxy {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn send(&mut self, hand: &mut Hand<'_, P>, _: usize, to: ReplicaId, message: PeerMessage<Message<P>>) {
        self.change_mood(hand.rng, hand.now, hand.group.n());
        let mood = self.mood;
        let heard = if mood.together { hand.in_audience(to) } else { mood.audience & (1 << to.0) != 0 };
        if !heard || hand.rng.chance(mood.withhold) {
            return hand.acted();
        }
        if hand.rng.chance(mood.rewrite)
            && let Some(changed) = scramble::<P>(hand.rng, &message)
        {
            hand.send_evil(to, changed);
        }
        if let PeerMessage::Protocol(own) = &message
            && let Some(other) = Self::distorted(hand, own)
        {
            return hand.send_evil(to, PeerMessage::Protocol(other));
        }
        if hand.rng.chance(mood.replay)
            && let Some((_, old)) =
                (!hand.heard.is_empty()).then(|| hand.heard[hand.rng.index(hand.heard.len())].clone())
        {
            hand.send_evil(to, old);
        }
        if hand.rng.chance(mood.late) {
            let after = hand.rng.exponential(mood.late_by);
            return hand.send_late(to, message, after);
        }
        hand.send(to, message);
    }

    fn client(&mut self, hand: &mut Hand<'_, P>, _: usize, message: ToClient) {
        if !hand.rng.chance(self.mood.lie) {
            return hand.client(message);
        }
        let other = |mut reply: Reply| {
            reply.body = match reply.body {
                ReplyBody::Full(_) => ReplyBody::Digest(Reply::results_digest(&[])),
                ReplyBody::Digest(_) => ReplyBody::Full(Vec::new()),
            };
            reply
        };
        match message {
            ToClient::Reply(reply) => hand.client_evil(ToClient::Reply(other(reply))),
            ToClient::Tentative(reply) => hand.client_evil(ToClient::Tentative(other(reply))),
            ToClient::Attested(AttestedReply { reply, place, renewed }) => {
                hand.client_evil(ToClient::Attested(AttestedReply { reply: other(reply), place, renewed }));
            }
            ToClient::ReadReply(_)
            | ToClient::AttestedRead(_)
            | ToClient::Event(_)
            | ToClient::Refusal(_) => hand.acted(),
        }
    }

    fn hears(&mut self, hand: &mut Hand<'_, P>, _: usize, _: ReplicaId, _: &PeerMessage<Message<P>>) -> bool {
        !hand.rng.chance(self.mood.deaf)
    }
}

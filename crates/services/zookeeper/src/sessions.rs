//! Sessions: who is there, through which gateway, and until when.

use crate::acl::Id;
use crate::counters::Counters;
use crate::message::Attachment;
use crate::proof::{Carrier, is_proved};
use crate::store::{Changes, Look, beginning};
use crate::tree::{Transaction, find};
use crate::{Code, keys, watches};
use bytes::Bytes;
use troth_auth::PublicKey;
use troth_exec::StateView;
use troth_types::{ClientId, Digest, Malformed, Reader, Signature, Wire};

/// The most identities that a session proves.
pub const MAX_WHO: usize = 64;
/// The most bytes of all of them: a session's entry is read with every request, and with every event for it.
pub const MAX_WHO_BYTES: usize = 8 << 10;
/// The most identities of a session that is kept: releases before took more.
const MAX_WHO_KEPT: usize = 256;
/// Ephemeral nodes that go with a session at once; and what goes in one batch because it is due, each kind by itself.
/// Where it is more, the rest goes in the batches that follow, and nobody's requests wait for all of it.
pub const MAX_GOES: usize = 1 << 10;
/// Microseconds to which the ends of sessions are rounded up, so that signs of life seldom change anything.
const ROUND: u64 = 500_000;

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: i64,
    /// Milliseconds without a sign of life after which it ends.
    pub(crate) timeout: u32,
    /// What checks proofs of its password.
    key: PublicKey,
    /// Through whom the client is there: in the group of a restored backup nobody, until it is attached there.
    pub(crate) carrier: Carrier,
    /// Which of its attachments counts.
    pub(crate) number: u64,
    /// When it ends, unless the service stands still.
    ends: u64,
    /// Paths that it watches.
    pub(crate) watches: u32,
    /// Their bytes.
    pub(crate) watched: u32,
    /// Who the client is.
    pub(crate) who: Vec<Id>,
}

impl Session {
    pub(crate) fn find(store: &mut impl Look, id: i64) -> Option<Self> {
        store.entry::<Kept>(&keys::session(id)).map(|kept| Self { id, ..kept.0 })
    }

    pub(crate) fn keep(&self, changes: &mut Changes<'_, '_>) {
        changes.put_entry(&keys::session(self.id), &Kept(self.clone()));
    }

    /// As it is attached now.
    pub(crate) fn at(&self) -> Attachment {
        Attachment { session: self.id, number: self.number }
    }

    /// The session, if it is attached like this to this gateway. One whose attachment ended has the number that its next
    /// one might have, and is attached to nobody.
    pub(crate) fn attached(store: &mut impl Look, at: Attachment, carrier: Carrier) -> Result<Self, Code> {
        let session = Self::find(store, at.session).ok_or(Code::SessionExpired)?;
        if (session.number, session.carrier) != (at.number, carrier) || session.watches == watches::NOBODYS {
            return Err(Code::SessionMoved);
        }
        Ok(session)
    }

    /// Whether this proves that somebody is to carry it.
    pub(crate) fn is_proved(&self, carrier: Carrier, proof: &Signature) -> bool {
        is_proved(self.key, carrier, self.id, proof)
    }

    /// The client gave a sign of life.
    pub(crate) fn touch(&mut self, changes: &mut Changes<'_, '_>, counters: &Counters, lives: Lives) {
        let patience = (u64::from(self.timeout) + u64::from(lives.grace)) * 1000;
        let end = lives.now.saturating_add(patience).saturating_sub(counters.stood_still);
        let end = end.div_ceil(ROUND).saturating_mul(ROUND);
        if end == self.ends {
            return;
        }
        changes.remove(&keys::ends(self.ends, self.id));
        changes.put(&keys::ends(end, self.id), Bytes::new());
        self.ends = end;
        self.keep(changes);
    }

    /// The client is somebody else too.
    pub(crate) fn identify(&mut self, changes: &mut Changes<'_, '_>, id: Id) -> Result<(), Code> {
        if !self.who.contains(&id) {
            self.who.push(id);
            if !fit(&self.who) {
                return Err(Code::AuthFailed);
            }
            self.keep(changes);
        }
        Ok(())
    }
}

/// Whether a session may be all of these: what is kept of it can be read again.
pub(crate) fn fit(who: &[Id]) -> bool {
    let bytes: usize = who.iter().map(Id::length).sum();
    who.iter().all(Id::fits) && who.len() <= MAX_WHO && bytes <= MAX_WHO_BYTES
}

/// What says until when a session lives that gives a sign of life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    /// The agreed time.
    pub(crate) now: u64,
    /// Milliseconds that it lives on after its time-out.
    pub(crate) grace: u32,
}

/// A client begins a session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) carrier: Carrier,
    pub(crate) timeout: u32,
    pub(crate) who: Vec<Id>,
    pub(crate) lives: Lives,
}

/// Changes how many sessions a gateway has; whether that is within its bound.
fn count(changes: &mut Changes<'_, '_>, gateway: ClientId, more: i64, most: u64) -> bool {
    let before: u64 = changes.entry(&keys::attached(gateway)).unwrap_or(0);
    let after = before.saturating_add_signed(more);
    if more > 0 && after > most {
        return false;
    }
    match after {
        0 => changes.remove(&keys::attached(gateway)),
        after => changes.put_entry(&keys::attached(gateway), &after),
    }
    true
}

/// Opens a session, unless the gateway has too many.
pub(crate) fn open(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    opening: Opening,
    unique: &Digest,
    key: PublicKey,
    most: u64,
) -> Result<Session, Code> {
    if !fit(&opening.who) {
        return Err(Code::AuthFailed);
    }
    if !count(changes, opening.carrier.gateway, 1, most) {
        return Err(Code::QuotaExceeded);
    }
    let mut id = unique.0.first_chunk().map_or(1, |first| i64::from_be_bytes(*first) & i64::MAX);
    while id == 0 || Session::find(changes, id).is_some() || changes.look(&keys::leaving(id)).is_some() {
        id = (id + 1) & i64::MAX;
    }
    counters.attachments += 1;
    let Opening { carrier, timeout, who, lives } = opening;
    if next_end(&changes.state(), counters).is_none() {
        counters.ticked = lives.now;
    }
    let number = counters.attachments;
    let mut session = Session { id, timeout, key, carrier, number, ends: 0, watches: 0, watched: 0, who };
    session.touch(changes, counters, lives);
    Ok(session)
}

/// Attaches a session to a new connection; and says how it was attached before.
pub(crate) fn attach(
    changes: &mut Changes<'_, '_>,
    counters: &mut Counters,
    opening: Opening,
    mut session: Session,
    most: u64,
) -> Result<(Session, (Carrier, Attachment)), Code> {
    let before = (session.carrier, session.at());
    if !fit(&opening.who) {
        return Err(Code::AuthFailed);
    }
    if session.carrier != opening.carrier {
        // Twice as many as it may open: those of another gateway that is gone have nowhere else to go. Not without end: what
        // leaves makes room for more there.
        if !count(changes, opening.carrier.gateway, 1, most.saturating_mul(2)) {
            return Err(Code::QuotaExceeded);
        }
        if session.carrier.group == opening.carrier.group {
            count(changes, session.carrier.gateway, -1, u64::MAX);
        }
    }
    watches::drop_all(changes, counters, &mut session);
    counters.attachments += 1;
    let Opening { carrier, timeout, who, lives } = opening;
    (session.carrier, session.timeout, session.who) = (carrier, timeout, who);
    session.number = counters.attachments;
    session.keep(changes);
    session.touch(changes, counters, lives);
    Ok((session, before))
}

/// Ends a session: its watches go, and its ephemeral nodes, or the first of very many; how many went.
pub(crate) fn close(transaction: &mut Transaction<'_, '_, '_>, mut session: Session) -> usize {
    let dropped = watches::drop_all(transaction.changes, transaction.counters, &mut session);
    let changes = &mut *transaction.changes;
    changes.remove(&keys::ends(session.ends, session.id));
    changes.remove(&keys::session(session.id));
    if session.carrier.group == transaction.events.group() {
        count(changes, session.carrier.gateway, -1, u64::MAX);
    }
    let (taken, left) = take_away(transaction, session.id);
    if left {
        transaction.changes.put(&keys::leaving(session.id), Bytes::new());
        put_off(transaction.changes, transaction.now);
    }
    dropped + taken
}

/// The next ephemeral nodes of a session that is over go; how many.
pub(crate) fn leave(transaction: &mut Transaction<'_, '_, '_>, id: i64) -> usize {
    let (taken, left) = take_away(transaction, id);
    if !left {
        transaction.changes.remove(&keys::leaving(id));
    }
    taken
}

/// Takes away ephemeral nodes of a session; how many, and whether there are more.
fn take_away(transaction: &mut Transaction<'_, '_, '_>, id: i64) -> (usize, bool) {
    let own = beginning(&transaction.changes.state(), &keys::ephemeral(id, ""));
    let mut own: Vec<Vec<u8>> = own.map(<[u8]>::to_vec).take(MAX_GOES + 1).collect();
    let left = own.len() > MAX_GOES;
    own.truncate(MAX_GOES);
    for rest in &own {
        let Ok(path) = std::str::from_utf8(rest) else { continue };
        if let Ok(node) = find(transaction.changes, path) {
            transaction
                .remove(path, &node)
                .unwrap_or_else(|_| unreachable!("ephemeral nodes have no children"));
        }
    }
    (own.len(), left)
}

/// A session that is over and has ephemeral nodes left.
pub(crate) fn next_leaving(view: &StateView<'_>) -> Option<i64> {
    keys::last_number(beginning(view, &[keys::LEAVING]).next()?)
}

/// What is left goes on with the next batch: later than now, or no clock would ever come to it.
pub(crate) fn put_off(changes: &mut Changes<'_, '_>, now: u64) {
    changes.put_entry(keys::GOES_ON, &now.saturating_add(1));
}

/// When what was left goes on.
pub(crate) fn goes_on(store: &mut impl Look) -> Option<u64> {
    store.entry(keys::GOES_ON)
}

/// The session that ends next, and when, if nobody touches one.
pub(crate) fn next_end(view: &StateView<'_>, counters: &Counters) -> Option<(u64, i64)> {
    let rest = beginning(view, &[keys::ENDS]).next()?;
    let at = rest.first_chunk::<8>().map(|at| u64::from_be_bytes(*at))?;
    Some((at.saturating_add(counters.stood_still), keys::last_number(rest)?))
}

/// When something happens to sessions next, if nobody gives a sign of life: one ends, or time goes on for them, each
/// eighth of the grace.
pub(crate) fn next_deadline(view: &StateView<'_>, counters: &Counters, grace: u32) -> Option<u64> {
    let tick = (u64::from(grace) * 1000 / 8).max(1);
    next_end(view, counters).map(|(end, _)| end.min(counters.ticked.saturating_add(tick)))
}

/// Time goes on for sessions, by half of the grace at most. In what passed beyond that nobody could give a sign of
/// life: the service stood still, and every session has so much longer.
pub(crate) fn tick(counters: &mut Counters, lives: Lives) {
    let (step, most) = (lives.now.saturating_sub(counters.ticked), u64::from(lives.grace) * 1000 / 2);
    counters.stood_still = counters.stood_still.saturating_add(step.saturating_sub(most));
    counters.ticked = lives.now;
}

/// A session as it is kept: under its number.
pub(crate) struct Kept(Session);

impl Wire for Kept {
    fn encode(&self, out: &mut Vec<u8>) {
        let Session { timeout, key, carrier, number, ends, watches, watched, who, .. } = &self.0;
        timeout.encode(out);
        out.extend_from_slice(&key.0);
        carrier.group.encode(out);
        carrier.gateway.encode(out);
        number.encode(out);
        ends.encode(out);
        watches.encode(out);
        watched.encode(out);
        troth_types::put_list(out, who);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(Session {
            id: 0,
            timeout: Wire::decode(reader)?,
            key: PublicKey(reader.array()?),
            carrier: Carrier { group: Wire::decode(reader)?, gateway: Wire::decode(reader)? },
            number: Wire::decode(reader)?,
            ends: Wire::decode(reader)?,
            watches: Wire::decode(reader)?,
            watched: Wire::decode(reader)?,
            who: reader.list("who a session is", MAX_WHO_KEPT)?,
        }))
    }
}

//! The model's sessions: whose they are, and when they end.

use super::access::{attestable, may_be};
use super::{Change, Model, Session, Told, Turn};
use std::collections::BTreeMap;
use std::rc::Rc;
use troth_auth::{Check, Ed25519, PublicKey, SignatureScheme};
use troth_types::{ClientId, Hasher, Signature};
use troth_zookeeper::acl::{Id, digest_id};
use troth_zookeeper::{Answer, Attachment, Code, Notice};

/// Microseconds: sessions end at multiples of it.
const GRAIN: u64 = 500_000;

fn may_be_attested(who: &[Id]) -> Result<(), Code> {
    may_be(&who.iter().filter(|id| attestable(id)).cloned().collect::<Vec<_>>())
}

impl Session {
    /// How much it has proved to be.
    #[must_use]
    pub fn identities(&self) -> usize {
        let all = self.who.iter().any(|id| id.scheme == "super");
        if all { usize::MAX } else { self.who.len() }
    }

    /// When it ends, if it is not heard of any more.
    fn end(&self, stood_still: u64) -> u64 {
        self.ends + stood_still
    }
}

impl Model {
    pub(super) fn who(&self, session: i64) -> &[Id] {
        self.sessions.get(&session).map_or(&[], |session| &session.who)
    }

    pub(super) fn session_mut(&mut self, id: i64) -> Result<&mut Session, Code> {
        self.sessions.get_mut(&id).map(Rc::make_mut).ok_or(Code::SessionExpired)
    }

    /// The session's ephemeral nodes.
    pub(super) fn ephemerals(&self, session: i64) -> Vec<&str> {
        let own = self.nodes.iter().filter(|(_, node)| node.session() == Some(session));
        own.map(|(path, _)| &**path).collect()
    }

    /// Whether what is said for an attachment counts.
    pub(super) fn attached(&self, client: ClientId, at: Attachment) -> Result<(), Code> {
        let session = self.sessions.get(&at.session).ok_or(Code::SessionExpired)?;
        let own = session.at == at && session.gateway == client && session.is_attached;
        if own { Ok(()) } else { Err(Code::SessionMoved) }
    }

    /// A session gave a sign of life.
    pub(super) fn hear(&mut self, turn: Turn<'_>, at: Attachment) -> Result<(), Code> {
        self.attached(turn.client, at)?;
        let (stood_still, grace) = (self.stood_still, self.settings.grace);
        let session = self.session_mut(at.session)?;
        (session.heard, session.sent) = (turn.now, turn.sent);
        let end = (turn.now + u64::from(session.timeout + grace) * 1000).saturating_sub(stood_still);
        session.ends = end.next_multiple_of(GRAIN);
        Ok(())
    }

    fn has_room(&self, gateway: ClientId, most: u64) -> Result<(), Code> {
        let own = self.sessions.values().filter(|session| session.gateway == gateway).count() as u64;
        if own < most { Ok(()) } else { Err(Code::QuotaExceeded) }
    }

    fn begin(
        &mut self,
        turn: Turn<'_>,
        session: Session,
        timeout: u32,
        who: Vec<Id>,
    ) -> Result<Answer, Code> {
        let (least, most) = self.settings.timeouts;
        self.attachments += 1;
        self.zxid += 1;
        let at = Attachment { session: session.at.session, number: self.attachments };
        let timeout = timeout.clamp(least, most);
        let who = who.into_iter().filter(attestable).collect();
        let watches = BTreeMap::new();
        let is_attached = true;
        let session = Session { at, gateway: turn.client, is_attached, timeout, who, watches, ..session };
        self.sessions.insert(at.session, Rc::new(session));
        self.hear(turn, at)?;
        Ok(Answer::Attached { at, timeout })
    }

    pub(super) fn open(
        &mut self,
        turn: Turn<'_>,
        timeout: u32,
        key: PublicKey,
        who: Vec<Id>,
    ) -> Result<Answer, Code> {
        may_be_attested(&who)?;
        self.has_room(turn.client, self.settings.sessions)?;
        let first = turn.unique.0[..8].iter().fold(0u64, |id, byte| id << 8 | u64::from(*byte));
        let mut id = (first & (u64::MAX >> 1)).cast_signed();
        while id == 0 || self.sessions.contains_key(&id) {
            id = if id == i64::MAX { 0 } else { id + 1 };
        }
        self.count("sessions opened");
        if self.sessions.is_empty() {
            self.beat = turn.now;
        }
        let session = Session {
            at: Attachment { session: id, number: 0 },
            gateway: turn.client,
            is_attached: true,
            key,
            timeout,
            heard: turn.now,
            sent: turn.sent,
            ends: 0,
            who: Vec::new(),
            watches: BTreeMap::new(),
        };
        self.begin(turn, session, timeout, who)
    }

    pub(super) fn attach(
        &mut self,
        turn: Turn<'_>,
        id: i64,
        proof: &Signature,
        timeout: u32,
        who: Vec<Id>,
        told: &mut Told,
    ) -> Result<Answer, Code> {
        let before = self.sessions.get(&id).ok_or(Code::SessionExpired)?;
        // Who knows the password signed that it is to be attached by this gateway, of this group.
        let mut claim = Hasher::new("troth/zookeeper/attach/v1");
        claim.fixed(&self.settings.group.0).number(turn.client.0).number(id as u64);
        let check = Check { key: before.key, digest: claim.finish(), signature: *proof };
        if !Ed25519.verify(&check) {
            return Err(Code::SessionExpired);
        }
        let before = Session::clone(before);
        may_be_attested(&who)?;
        if before.gateway != turn.client {
            self.has_room(turn.client, 2 * self.settings.sessions)?;
            self.count("sessions attached elsewhere");
        }
        told.push((before.gateway, Notice::Over(before.at)));
        self.begin(turn, before, timeout, who)
    }

    pub(super) fn identify(&mut self, id: i64, somebody: Id) -> Result<(), Code> {
        let session = self.session_mut(id)?;
        if session.who.contains(&somebody) {
            return Ok(());
        }
        let all = session.who.iter().chain([&somebody]).cloned().collect::<Vec<_>>();
        may_be(&all)?;
        session.who = all;
        Ok(())
    }

    pub(super) fn authenticate(&mut self, id: i64, scheme: &str, credentials: &[u8]) -> Result<(), Code> {
        match scheme {
            "ip" => Ok(()),
            "digest" => {
                let name = digest_id(&String::from_utf8_lossy(credentials));
                if self.settings.superuser.as_deref() == Some(&name) {
                    self.identify(id, Id::new("super", ""))?;
                }
                self.identify(id, Id::new("digest", &name))
            }
            _ => Err(Code::AuthFailed),
        }
    }

    /// A session is over, with all that is its own.
    pub(super) fn end(&mut self, id: i64, now: u64, changes: &mut Vec<Change>) {
        let own: Vec<String> = self.ephemerals(id).into_iter().map(str::to_owned).collect();
        self.sessions.remove(&id);
        for path in own {
            self.count("nodes that went with their session");
            if let Err(why) = self.remove(&path, now, changes) {
                self.broken = Some(format!("{path} does not go with its session: {why:?}"));
            }
        }
    }

    fn next_end(&self) -> Option<(u64, i64)> {
        self.sessions.iter().map(|(id, session)| (session.end(self.stood_still), *id)).min()
    }

    /// When something happens by itself next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let ends = self.next_end().map(|(end, _)| end.min(self.beat + u64::from(self.settings.grace) * 125));
        ends.into_iter().chain(self.next_look().map(|(at, _)| at)).min()
    }

    /// What is due by now happens, at this time of the clock that is right.
    pub fn pass(&mut self, now: u64, right: u64, told: &mut Told) {
        if self.next_deadline().is_none_or(|due| due > now) {
            return;
        }
        if !self.sessions.is_empty() {
            let (passed, at_once) = (now.saturating_sub(self.beat), u64::from(self.settings.grace) * 500);
            if passed > at_once {
                // Nobody could be heard for long: everybody gets that time.
                self.count("standstills");
                self.stood_still += passed - at_once;
            }
            self.beat = now;
        }
        while let Some((end, id)) = self.next_end().filter(|(end, _)| *end <= now) {
            let session = Session::clone(&self.sessions[&id]);
            let promised = session.heard + u64::from(session.timeout) * 1000;
            if promised > now || promised > end {
                self.broken =
                    Some(format!("{id:x} ends at {now}, and was promised to live until {promised}"));
            }
            if session.sent + u64::from(session.timeout) * 1000 > right {
                self.broken = Some(format!(
                    "{id:x} ends {} us after its last sign of life was sent, and its time-out is {} ms",
                    right - session.sent,
                    session.timeout
                ));
            }
            self.count("sessions expired");
            let ended = self.transact(told, |model, changes| {
                model.end(id, now, changes);
                Ok(())
            });
            debug_assert!(ended.is_ok());
            told.push((session.gateway, Notice::Over(session.at)));
        }
        while let Some((_, path)) = self.next_look().filter(|(at, _)| *at <= now) {
            self.look_whether_it_goes(&path, now, told);
        }
    }
}

//! How clients come to their sessions, and to what they watched.

use super::{MAX_PROOFS, Work, refused};
use crate::Code;
use crate::events::{Events, MAX_MISSED};
use crate::message::{Answer, Notice};
use crate::request::Rewatch;
use crate::sessions::{self, Opening, Session};
use crate::watches;
use troth_types::Signature;

impl Work<'_, '_, '_, '_> {
    /// Attaches a session to the gateway that has proved that it is to carry it.
    pub(super) fn attach(&mut self, opening: Opening, id: i64, proof: &Signature) -> Result<Session, Code> {
        let session = Session::find(&mut self.changes, id).ok_or(Code::SessionExpired)?;
        // It is not said to be over: who asked for it may ask again.
        if self.spent.proofs == MAX_PROOFS {
            return Err(Code::QuotaExceeded);
        }
        self.spent.proofs += 1;
        if !session.is_proved(opening.carrier, proof) {
            return Err(Code::SessionExpired);
        }
        let (changes, counters) = (&mut self.changes, &mut self.counters);
        let attached = sessions::attach(changes, counters, opening, session, self.service.sessions);
        attached.map(|(session, (carrier, before))| {
            self.end_of(carrier, before);
            session
        })
    }

    pub(super) fn attached(&mut self, session: Result<Session, Code>) -> Answer {
        match session {
            Ok(session) => {
                self.counters.zxid += 1;
                Answer::Attached { at: session.at(), timeout: session.timeout }
            }
            Err(why) => {
                self.changes.forget();
                refused(&self.counters, why)
            }
        }
    }

    /// A client that connected anew says what it watches. Where it cannot watch all of that, or be told all that it missed, its
    /// attachment is over: clients of ZooKeeper pass over an error here, and would believe that they watch.
    pub(super) fn watch_again(&mut self, session: Session, wanted: &Rewatch) {
        let (at, carrier, zxid) = (session.at(), session.carrier, self.counters.zxid);
        let mut events = Events::of(self.service.group);
        let (mut counters, mut watching) = (self.counters, session.clone());
        match watches::again(&mut self.changes, &mut counters, &mut watching, wanted) {
            Ok(told) if told.len() <= MAX_MISSED - self.spent.missed => {
                self.counters = counters;
                watching.keep(&mut self.changes);
                self.spent.missed += told.len();
                for (kind, path) in told {
                    events.tell(carrier, at, Notice::Fired { at, kind: kind as i32, path, zxid });
                }
            }
            _ => {
                // Where one of them is too many, none counts.
                self.changes.forget();
                watches::end_attachment(&mut self.changes, &mut self.counters, session, &mut events);
            }
        }
        self.emit(events);
    }
}

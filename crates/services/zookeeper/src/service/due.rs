//! What happens because its time has come: in bounded steps, of which each batch has one.

use super::Work;
use crate::sessions::{self, MAX_GOES, Session};
use crate::tree::Transaction;
use crate::{goes, keys};

impl<'a, 's> Work<'_, 'a, 's, '_> {
    /// Ends what is over, and removes what goes.
    pub(crate) fn deadlines(&mut self) {
        if sessions::next_end(&self.changes.state(), &self.counters).is_some() {
            let lives = self.lives();
            sessions::tick(&mut self.counters, lives);
        }
        let mut gone = 0;
        while gone < MAX_GOES
            && let Some(id) = self.session_due()
        {
            gone += self.expire(id);
        }
        self.keep();
        let mut gone = 0;
        while gone < MAX_GOES
            && let Some(id) = sessions::next_leaving(&self.changes.state())
        {
            gone += self.go(|transaction| sessions::leave(transaction, id));
        }
        let mut looked = 0;
        while looked < MAX_GOES
            && let Some(key) = goes::due(&self.changes.state(), self.now)
        {
            self.go(|transaction| goes::look(transaction, &key));
            looked += 1;
        }
        let view = self.changes.state();
        let left = sessions::next_leaving(&view).is_some() || goes::due(&view, self.now).is_some();
        if left || self.session_due().is_some() {
            sessions::put_off(&mut self.changes, self.now);
        } else if sessions::goes_on(&mut self.changes).is_some() {
            self.changes.remove(keys::GOES_ON);
        }
        self.count().finish(&mut self.changes);
    }

    /// The session that ends next, if it is due.
    fn session_due(&self) -> Option<i64> {
        let (end, id) = sessions::next_end(&self.changes.state(), &self.counters)?;
        (end <= self.now).then_some(id)
    }

    /// A session's time is over; how much goes with it.
    fn expire(&mut self, id: i64) -> usize {
        let Some(session) = Session::find(&mut self.changes, id) else {
            unreachable!("a session's end goes with it")
        };
        let (carrier, at) = (session.carrier, session.at());
        let gone = self.go(|transaction| sessions::close(transaction, session));
        self.end_of(carrier, at);
        1 + gone
    }

    /// A transaction of the service's own, which nothing can stop.
    fn go<T>(&mut self, run: impl FnOnce(&mut Transaction<'_, 'a, 's>) -> T) -> T {
        self.transact(|transaction| Ok(run(transaction)))
            .unwrap_or_else(|_| unreachable!("it never says that it did not happen"))
    }
}

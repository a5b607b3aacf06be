//! What is left of a connection whose client has gone: what it asked for before is done yet, and nobody is told.

use super::{ConnectionId, Machine};
use troth_types::Time;

impl Machine {
    /// A client has closed its connection, or lost it; or a connection that was closed here has come to its end.
    pub fn closed(&mut self, now: Time, id: ConnectionId) {
        self.closing.ended(id);
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.gone.is_none())
        else {
            return;
        };
        rule!("ZKG-S6");
        let Some(session) = connection.session() else { return self.forget(id) };
        // It gives no sign of life any more.
        session.alive = false;
        connection.gone = Some(now);
        (connection.part, connection.unwritten) = (0, 0);
        connection.held.clear();
        connection.line.tell_nobody();
        self.advance(now, id);
        self.count(id);
    }
}

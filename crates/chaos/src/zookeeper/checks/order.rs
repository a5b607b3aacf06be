//! A session goes forward: what it was shown it is not shown undone, and an event comes before what reveals it.

use crate::zookeeper::journal::{Ask, Entry, Journal};

/// Where a session went back.
pub(crate) fn order(journals: &[Journal]) -> Vec<String> {
    journals.iter().flat_map(of_session).collect()
}

fn of_session(journal: &Journal) -> Vec<String> {
    let (mut wrong, mut shown, mut rewatching) = (Vec::new(), 0, None);
    for (place, line) in journal.lines.iter().enumerate() {
        match &line.entry {
            Entry::Sent(Ask::Rewatch { .. }) => rewatching = Some(place),
            Entry::Lost => rewatching = None,
            Entry::Reply { to, zxid, .. } => {
                if rewatching == Some(*to) {
                    rewatching = None;
                }
                if *zxid < shown {
                    wrong.push(format!(
                        "session {:#x} was shown transaction {shown:#x}, and then a reply that reflects {zxid:#x}",
                        journal.session
                    ));
                }
                shown = shown.max(*zxid);
            }
            // What `setWatches` brings need not say of which transaction it is.
            Entry::Fired { zxid, change, path } if rewatching.is_none() && *zxid > 0 && *zxid <= shown => {
                wrong.push(format!(
                    "session {:#x} was told that {path} was changed ({change:?}) by transaction {zxid:#x} only after a \
                     reply that reflects {shown:#x}",
                    journal.session
                ));
            }
            _ => {}
        }
    }
    wrong
}

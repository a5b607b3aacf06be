//! Journals made wrong on purpose, one wrong at a time: each must be found, or the checks show nothing.

use super::checks;
use super::journal::{Ask, Change, Done, Entry, Journal, Lasts};
use super::layout;

/// What can be made wrong.
type Spoils = fn(&mut [Journal]) -> Option<()>;

const ALL: [(&str, Spoils); 6] = [
    ("an event that comes twice", twice),
    ("an event that never comes", missed),
    ("a reply that goes back", back),
    ("a node that is gone while its session lives", predeceased),
    ("a node that is there after its session", outlived),
    ("a lock that two sessions own", owned_twice),
];

/// The wrongs that the checks do not find, in words, and those for which there was no place.
pub(crate) fn unnoticed(journals: &[Journal]) -> Vec<String> {
    let mut unnoticed = Vec::new();
    for (what, spoils) in ALL {
        let mut wrong = journals.to_vec();
        match spoils(&mut wrong) {
            None => unnoticed.push(format!("{what} could not be made")),
            Some(()) if checks::all(&wrong).is_empty() => {
                unnoticed.push(format!("{what}, made on purpose, was not found"));
            }
            Some(()) => {}
        }
    }
    unnoticed
}

/// The first entry of any journal that this picks: which journal, and where.
fn find(journals: &[Journal], is: impl Fn(&Journal, usize, &Entry) -> bool) -> Option<(usize, usize)> {
    journals.iter().enumerate().find_map(|(number, journal)| {
        let place =
            (0..journal.lines.len()).find(|place| is(journal, *place, &journal.lines[*place].entry))?;
        Some((number, place))
    })
}

fn is_reply(journal: &Journal, place: usize) -> bool {
    matches!(journal.lines.get(place).map(|line| &line.entry), Some(Entry::Reply { .. }))
}

/// An event on a connection that goes on, and behind which the session is answered.
fn event(journals: &[Journal]) -> Option<(usize, usize)> {
    find(journals, |journal, place, entry| {
        let told = matches!(entry, Entry::Fired { change: Change::Data, zxid, .. } if *zxid > 0);
        let next = journal.lines.get(place + 1).map(|line| &line.entry);
        let goes_on = !matches!(next, None | Some(Entry::Lost));
        told && goes_on && (place + 2..journal.lines.len()).any(|later| is_reply(journal, later))
    })
}

fn twice(journals: &mut [Journal]) -> Option<()> {
    let (number, place) = event(journals)?;
    // In the place of what comes next, which is as if it had never been.
    let again = journals[number].lines[place].entry.clone();
    journals[number].lines[place + 1].entry = again;
    Some(())
}

fn missed(journals: &mut [Journal]) -> Option<()> {
    let (number, place) = event(journals)?;
    journals[number].lines[place].entry = Entry::Pong;
    Some(())
}

fn back(journals: &mut [Journal]) -> Option<()> {
    let (number, place) = find(journals, |journal, place, entry| {
        let later = (0..place).filter(|earlier| is_reply(journal, *earlier)).count() > 2;
        later && matches!(entry, Entry::Reply { .. })
    })?;
    if let Entry::Reply { zxid, .. } = &mut journals[number].lines[place].entry {
        *zxid = 1;
    }
    Some(())
}

/// A list of names that shows a node of a session that lives: which journal, where, and which name.
fn shown(journals: &[Journal]) -> Option<(usize, usize, String)> {
    let created = |number: usize, name: &str| {
        journals.get(number).is_some_and(|journal| {
            journal.replies().any(|heard| match (heard.ask, heard.outcome) {
                (Ask::Create { lasts: Lasts::Session, .. }, Ok(Done::Created { path, .. })) => {
                    path.rsplit('/').next() == Some(name)
                }
                _ => false,
            })
        })
    };
    journals.iter().enumerate().find_map(|(number, journal)| {
        journal.replies().find_map(|heard| {
            let Ok(Done::Children { names, .. }) = heard.outcome else { return None };
            let own = names.iter().find(|name| name.parse() == Ok(number) && created(number, name))?;
            Some((number, heard.place, own.clone()))
        })
    })
}

fn names(journal: &mut Journal, place: usize) -> Option<&mut Vec<String>> {
    match &mut journal.lines[place].entry {
        Entry::Reply { outcome: Ok(Done::Children { names, .. }), .. } => Some(names),
        _ => None,
    }
}

fn predeceased(journals: &mut [Journal]) -> Option<()> {
    let (number, place, own) = shown(journals)?;
    names(&mut journals[number], place)?.retain(|name| *name != own);
    Some(())
}

fn outlived(journals: &mut [Journal]) -> Option<()> {
    let (number, _, own) = shown(journals)?;
    let end = journals.iter().find(|journal| journal.number == number)?.closed().map(|heard| heard.zxid);
    let (number, end, own) = match end {
        Some(end) => (number, end, own),
        None => closed(journals)?,
    };
    let path = journals[number].replies().find_map(|heard| match heard.outcome {
        Ok(Done::Created { path, .. }) if path.ends_with(&format!("/{own}")) => Some(path.clone()),
        _ => None,
    })?;
    let directory = super::journal::parent(&path).to_owned();
    let (later, place) = find(journals, |journal, _, entry| match entry {
        Entry::Reply { to, zxid, outcome: Ok(_) } => {
            *zxid > end
                && matches!(journal.asked(*to), Some(Ask::Children { path, .. }) if *path == directory)
        }
        _ => false,
    })?;
    names(&mut journals[later], place)?.push(own);
    Some(())
}

/// A session that was closed and had shown that it was there: its journal, its end, and the node's name.
fn closed(journals: &[Journal]) -> Option<(usize, i64, String)> {
    journals.iter().enumerate().find_map(|(number, journal)| {
        let end = journal.closed()?.zxid;
        let announced = journal.replies().any(|heard| {
            matches!(heard.ask, Ask::Create { lasts: Lasts::Session, .. }) && heard.outcome.is_ok()
        });
        announced.then(|| (number, end, number.to_string()))
    })
}

/// Somebody who waited finds itself to be the first while another is.
fn owned_twice(journals: &mut [Journal]) -> Option<()> {
    let owned = checks::owned(journals);
    let (number, place) = journals.iter().enumerate().find_map(|(number, journal)| {
        journal.replies().find_map(|heard| {
            let (Ask::Children { path, .. }, Ok(Done::Children { names, .. })) = (heard.ask, heard.outcome)
            else {
                return None;
            };
            let contends = names.iter().any(|name| layout::journal_of(name) == Some(number));
            let taken = owned.iter().any(|own| {
                own.lock == *path && own.journal != number && (own.from..=own.until).contains(&heard.zxid)
            });
            (layout::is_lock(path) && contends && taken).then_some((number, heard.place))
        })
    })?;
    names(&mut journals[number], place)?.retain(|name| layout::journal_of(name) == Some(number));
    Some(())
}

//! What a session's client did and heard, in the order in which it did: all that the checks look at.

use std::collections::BTreeSet;
use troth_zookeeper::{Code, Kind};

/// How long a node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// Until somebody deletes it.
    Always,
    /// As long as the session.
    Session,
    /// The same, and its name gets a number.
    SessionNumbered,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Create {
        path: String,
        value: String,
        lasts: Lasts,
    },
    Delete {
        path: String,
    },
    /// With the version that the node must have, where one is given.
    Set {
        path: String,
        value: String,
        expected: Option<i32>,
    },
    Get {
        path: String,
        watch: bool,
    },
    Exists {
        path: String,
        watch: bool,
    },
    Children {
        path: String,
        watch: bool,
    },
    /// `setWatches2`: what is watched, and the last transaction that was seen.
    Rewatch {
        seen: i64,
        data: Vec<String>,
        exists: Vec<String>,
        children: Vec<String>,
    },
    Close,
}

impl Ask {
    /// Whether it is ordered, whoever serves: what only reads and sets no watch need not be.
    pub(crate) fn is_ordered(&self) -> bool {
        let reads = matches!(
            self,
            Self::Get { watch: false, .. }
                | Self::Exists { watch: false, .. }
                | Self::Children { watch: false, .. }
        );
        !reads
    }
}

/// What is known of a node beside its data. Transactions are named by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The transaction that created it (`czxid`).
    pub(crate) created: i64,
    /// The last that set its data (`mzxid`).
    pub(crate) modified: i64,
    pub(crate) version: i32,
    /// The session that it ends with; 0 for none (`ephemeralOwner`).
    pub(crate) owner: i64,
    /// The last that created or deleted a child (`pzxid`).
    pub(crate) children: i64,
}

/// What a request without an error was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Nothing,
    Created { path: String, stat: Stat },
    Stat(Stat),
    Value { value: String, stat: Stat },
    Children { names: Vec<String>, stat: Stat },
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Created,
    Deleted,
    Data,
    Children,
}

impl Change {
    /// By ZooKeeper's number.
    pub(crate) fn of(number: i32) -> Option<Self> {
        Some(match number {
            n if n == Kind::Created as i32 => Self::Created,
            n if n == Kind::Deleted as i32 => Self::Deleted,
            n if n == Kind::DataChanged as i32 => Self::Data,
            n if n == Kind::ChildrenChanged as i32 => Self::Children,
            _ => return None,
        })
    }
}

/// What a watch is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aspect {
    /// A node's data and its end.
    Data,
    /// That a node comes.
    Coming,
    /// A node's children and its end.
    Children,
}

impl Aspect {
    /// Whether a watch on it fires, and so is over, when this happens to its node.
    pub(crate) fn is_told_of(self, change: Change) -> bool {
        match self {
            Self::Data => matches!(change, Change::Data | Change::Deleted),
            Self::Coming => matches!(change, Change::Created | Change::Data | Change::Deleted),
            Self::Children => matches!(change, Change::Children | Change::Deleted),
        }
    }
}

/// The watches of a session, each told once.
pub(crate) type Watches = BTreeSet<(Aspect, String)>;

/// The watch that the answer to a request sets, if any.
pub(crate) fn watch_set(ask: &Ask, outcome: &Result<Done, i32>) -> Option<(Aspect, String)> {
    match (ask, outcome) {
        (Ask::Get { path, watch: true } | Ask::Exists { path, watch: true }, Ok(_)) => {
            Some((Aspect::Data, path.clone()))
        }
        (Ask::Exists { path, watch: true }, Err(code)) if *code == Code::NoNode.number() => {
            Some((Aspect::Coming, path.clone()))
        }
        (Ask::Children { path, watch: true }, Ok(_)) => Some((Aspect::Children, path.clone())),
        _ => None,
    }
}

/// Something that a client did or heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The session is attached to a connection through this gateway.
    Connected {
        gateway: usize,
    },
    /// The connection is over; what was asked on it and has no answer never gets one.
    Lost,
    Sent(Ask),
    /// To the request that stands at `to` in the journal; an error is ZooKeeper's number of it.
    Reply {
        to: usize,
        zxid: i64,
        outcome: Result<Done, i32>,
    },
    Fired {
        zxid: i64,
        change: Change,
        path: String,
    },
    /// The answer to a ping.
    Pong,
    /// The client was told that the session is over.
    Expired,
    /// The client stopped without a word.
    Abandoned,
}

/// An entry, and when: nanoseconds since the run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) entry: Entry,
}

/// All of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Journal {
    /// Which of all; a part of the names of the session's nodes.
    pub(crate) number: usize,
    /// 0 until it is open.
    pub(crate) session: i64,
    /// Milliseconds without a sign of life after which it ends.
    pub(crate) timeout: u32,
    pub(crate) lines: Vec<Line>,
}

impl Journal {
    pub(crate) fn new(number: usize, timeout: u32) -> Self {
        Self { number, session: 0, timeout, lines: Vec::new() }
    }

    /// The request that stands at this place.
    pub(crate) fn asked(&self, place: usize) -> Option<&Ask> {
        match &self.lines.get(place)?.entry {
            Entry::Sent(ask) => Some(ask),
            _ => None,
        }
    }

    /// All replies: when they came, their requests, when those were sent, and what they say.
    pub(crate) fn replies(&self) -> impl Iterator<Item = Heard<'_>> {
        self.lines.iter().enumerate().filter_map(|(place, line)| {
            let Entry::Reply { to, zxid, outcome } = &line.entry else { return None };
            let (ask, called) = (self.asked(*to)?, self.lines[*to].at);
            Some(Heard { place, ask, sent: *to, called, at: line.at, zxid: *zxid, outcome })
        })
    }

    /// Requests that never got an answer: where they stand, and what they are.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = (usize, &Ask)> {
        let answered: BTreeSet<usize> = self.replies().map(|heard| heard.sent).collect();
        (0..self.lines.len())
            .filter_map(|place| Some((place, self.asked(place)?)))
            .filter(move |(place, _)| !answered.contains(place))
    }

    /// Whether the client closed the session, as was acknowledged.
    pub(crate) fn closed(&self) -> Option<Heard<'_>> {
        self.replies().find(|heard| matches!(heard.ask, Ask::Close) && heard.outcome.is_ok())
    }

    /// Whether something of this kind is in it.
    pub(crate) fn has(&self, what: &Entry) -> bool {
        self.lines.iter().any(|line| line.entry == *what)
    }
}

/// A reply with its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard<'a> {
    /// Where the reply stands.
    pub(crate) place: usize,
    pub(crate) ask: &'a Ask,
    /// Where the request stands.
    pub(crate) sent: usize,
    /// When it was sent.
    pub(crate) called: u64,
    /// When the reply came.
    pub(crate) at: u64,
    /// The last transaction that it reflects.
    pub(crate) zxid: i64,
    pub(crate) outcome: &'a Result<Done, i32>,
}

/// The directory of a node.
pub(crate) fn parent(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(at) => &path[..at],
    }
}

/// A child's path.
pub(crate) fn child(directory: &str, name: &str) -> String {
    if directory == "/" { format!("/{name}") } else { format!("{directory}/{name}") }
}

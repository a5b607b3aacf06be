//! What a client must know before it speaks.

use troth_auth::{Authenticators, History};
use troth_types::{ClientId, Group, Limits};

/// A client's identity, its group and its patience.
#[derive(Clone, Debug)]
pub struct Config {
    /// The group it speaks to.
    pub group: Group,
    /// Its own number.
    pub client: ClientId,
    /// Which answers its protocol makes it believe.
    pub acceptance: Acceptance,
    /// The group's limits; they must be the replicas' own, since the window rule rests on them.
    pub limits: Limits,
    /// When it loses patience.
    pub timing: Timing,
    /// What it keeps in memory at most.
    pub bounds: Bounds,
    /// The number of its first frame and first read, at least 1. Replicas execute a number once,
    /// so a client that starts again must start above every number it ever used; microseconds of
    /// the wall clock serve where none are stored.
    pub first_number: u64,
    /// The last event that earlier sessions of this client delivered; events continue after it.
    /// `None` where that is not known: the session's first frame then carries one submission
    /// alone, nothing else is sent before its outcome is known, and events up to that outcome
    /// count as an earlier session's and are skipped.
    pub events_seen: Option<u64>,
    /// Whether [`ClientCore::acknowledge_events`](crate::ClientCore::acknowledge_events) decides
    /// what frames acknowledge. Otherwise an event counts as seen when
    /// [`ClientCore::poll`](crate::ClientCore::poll) has handed it out.
    pub hold_acknowledgements: bool,
    /// The keys that it shares with the replicas, where the group takes authenticators: what it sends first is then not
    /// signed, what it sends again is.
    pub authenticators: Option<Authenticators>,
    /// Whether a primary shows the others what it alone was sent: small frames then go to it alone, as long as it does.
    pub primary_shows: bool,
    /// Where replies prove the place of their request in the replicas' histories: how to check it. Then as many replicas
    /// must agree as make a quorum.
    pub history: Option<Proven>,
}

impl Config {
    /// A first session of `client` in a group with trusted components, with default limits, timing and bounds.
    #[must_use]
    pub fn new(group: Group, client: ClientId) -> Self {
        Self {
            group,
            client,
            acceptance: Acceptance::hybrid(&group),
            limits: Limits::DEFAULT,
            timing: Timing::DEFAULT,
            bounds: Bounds::DEFAULT,
            first_number: 1,
            events_seen: Some(0),
            hold_acknowledgements: false,
            authenticators: None,
            primary_shows: false,
            history: None,
        }
    }

    /// How many equal answers a read needs that is not ordered: where they prove the ends of histories, as many as prove a
    /// reply; one that need only be `recent`, as many as are believed.
    #[must_use]
    pub fn read_quorum(&self, recent: bool) -> usize {
        if recent {
            return self.believed();
        }
        if self.history.is_some() { self.believed() } else { self.acceptance.reads }
    }

    /// How many answers to a frame are enough where all of them are right: where they may be tentative, a quorum's.
    #[must_use]
    pub fn answers(&self) -> usize {
        if self.acceptance.tentative { self.group.quorum() } else { self.believed() }
    }

    /// How many replicas must say the same to be believed: enough for one of them to be correct, also where only histories
    /// hold more than f faulty ones to their word.
    #[must_use]
    pub fn believed(&self) -> usize {
        believed(&self.group, self.history.is_some())
    }
}

/// How many replicas of a group must say the same to be believed, see [`Config::believed`].
#[must_use]
pub fn believed(group: &Group, proves_histories: bool) -> usize {
    if proves_histories { group.quorum() } else { group.weak() }
}

/// What a session needs where histories are proven.
#[derive(Clone, Debug)]
pub struct Proven {
    /// How it checks them.
    pub history: History,
    /// What no other session of this client has had, from the operating system's randomness. What the replicas'
    /// components attest under the nonces of a session proves the present to its reads alone, so that a session which
    /// made those of an earlier one again would take for the present what was attested to that one (footnote 4 of §4.2).
    pub session: [u8; 32],
}

/// Which answers prove an outcome, beside f+1 equal final replies, which always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// Equal answers that a fast read needs, where they prove nothing.
    pub reads: usize,
    /// Whether a quorum of equal replies of one view counts though their places were not final: right where a
    /// quorum's preparing binds every later view, and wrong where more than f replicas may be faulty.
    pub tentative: bool,
}

impl Acceptance {
    /// Of a group of 2f+1 replicas with trusted components: a fast read needs all of them.
    #[must_use]
    pub fn hybrid(group: &Group) -> Self {
        Self { reads: group.n(), tentative: false }
    }

    /// Of PBFT (§5.1): a quorum of 2f+1 for fast reads and for tentative replies.
    #[must_use]
    pub fn pbft(group: &Group) -> Self {
        Self { reads: group.quorum(), tentative: true }
    }
}

/// How long a client waits, all in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From sending a frame to sending it again; doubles with every further time.
    pub resend_first: u64,
    /// The longest pause between two sendings of a frame.
    pub resend_longest: u64,
    /// From f+1 equal digests, or a reply that waits for events, to asking for what is missing.
    pub full_wait: u64,
    /// From sending a fast read to having it ordered instead.
    pub read_wait: u64,
    /// From a submission to giving it up.
    pub deadline: u64,
    /// How long fewer replicas than are believed must be connected before the client calls the group
    /// unavailable.
    pub unavailable_after: u64,
}

impl Timing {
    /// The defaults, meant for a local network.
    pub const DEFAULT: Self = Self {
        resend_first: 200_000,
        resend_longest: 5_000_000,
        full_wait: 20_000,
        read_wait: 20_000,
        deadline: 30_000_000,
        unavailable_after: 5_000_000,
    };
}

impl Default for Timing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a client keeps in memory at most, beyond the frames of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Operations that wait for a frame. Reads that turn out to need ordering may come on top.
    pub queue_operations: usize,
    /// Bytes of operations that wait for a frame.
    pub queue_bytes: usize,
    /// Fast reads outstanding; a read beyond is ordered at once.
    pub reads: usize,
    /// Bytes of unconfirmed results kept per replica. A result beyond counts as its digest and is
    /// asked for again once f+1 replicas agree on it.
    pub reply_bytes: usize,
    /// Bytes of undelivered events kept per replica; beyond, those with the highest index go.
    pub event_bytes: usize,
}

impl Bounds {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        queue_operations: 1 << 16,
        queue_bytes: 64 << 20,
        reads: 1024,
        reply_bytes: 32 << 20,
        event_bytes: 8 << 20,
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

//! What the async front must be told.

use crate::{Acceptance, Bounds, Config, Proven, Timing};
use core::fmt;
use std::time::{Duration, SystemTime};
use thiserror::Error;
use troth_auth::{Authenticators, History, PairKey};
use troth_link::{FRAME_TAGS, Identity, LinkKey, PeerId, Settings};
use troth_types::{ClientId, Group, Limits, ReplicaId};

/// Room for a message's fields beside the results or operations it carries.
const MESSAGE_OVERHEAD: usize = 64 << 10;

/// Where a replica listens and which key it holds there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaAddress {
    /// Host and port, as in `10.0.0.1:7000`.
    pub address: String,
    /// The replica's public link key.
    pub key: LinkKey,
}

/// How this session relates to earlier ones of the same client. Two sessions of one client must
/// never run at the same time: they would overtake each other's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// Nothing is remembered: request numbers start at the wall clock's microseconds, so the clock
    /// must have moved on since the last session, and events up to the first answer are skipped.
    Fresh,
    /// The application remembers.
    Continue {
        /// A number above every one used before.
        first_number: u64,
        /// The last event that was delivered.
        events_seen: u64,
    },
}

/// Everything that [`Client::connect`](super::Client::connect) needs.
#[derive(Clone)]
pub struct ClientConfig {
    /// The client's number in the group's configuration.
    pub client: ClientId,
    /// The group.
    pub group: Group,
    /// The secret seed of the key with which the client signs.
    pub signing_seed: [u8; 32],
    /// The client's private link key.
    pub link_secret: [u8; 32],
    /// The replicas, by number; all n of them.
    pub replicas: Vec<ReplicaAddress>,
    /// Which answers the group's protocol makes it believe.
    pub acceptance: Acceptance,
    /// The group's limits.
    pub limits: Limits,
    /// The client's patience.
    pub timing: Timing,
    /// What the client keeps in memory.
    pub bounds: Bounds,
    /// What came before.
    pub session: Session,
    /// Whether the group takes authenticators in the place of signatures (`auth = "mac"`).
    pub authenticators: bool,
    /// Whether a primary of the group's protocol shows the others what it alone was sent.
    pub primary_shows: bool,
    /// How to check the places of requests in the replicas' histories, where replies prove them.
    pub history: Option<History>,
    /// The pause before the second attempt to reach a replica; doubles up to
    /// [`ClientConfig::reconnect_longest`].
    pub reconnect_first: Duration,
    /// The longest pause between attempts to reach a replica.
    pub reconnect_longest: Duration,
}

impl ClientConfig {
    /// A fresh session with defaults for all that can have one.
    #[must_use]
    pub fn new(
        client: ClientId,
        group: Group,
        signing_seed: [u8; 32],
        link_secret: [u8; 32],
        replicas: Vec<ReplicaAddress>,
    ) -> Self {
        Self {
            client,
            group,
            signing_seed,
            link_secret,
            replicas,
            acceptance: Acceptance::hybrid(&group),
            limits: Limits::DEFAULT,
            timing: Timing::DEFAULT,
            bounds: Bounds::DEFAULT,
            session: Session::Fresh,
            authenticators: false,
            primary_shows: false,
            history: None,
            reconnect_first: Duration::from_millis(50),
            reconnect_longest: Duration::from_secs(2),
        }
    }

    /// The keys that this client shares with the replicas. One with which it cannot share any gets tags that are wrong,
    /// and takes what is signed.
    fn keys(&self) -> Authenticators {
        let identity = Identity::new(PeerId::Client(self.client), self.link_secret);
        let key = |replica: &ReplicaAddress| identity.shared_with(FRAME_TAGS, &replica.key);
        Authenticators::new(
            self.replicas.iter().map(|replica| PairKey::new(&key(replica).unwrap_or_default())),
        )
    }

    pub(super) fn link_settings(&self) -> Settings {
        let mut settings = Settings::new(self.group.id());
        let largest = self.limits.frame_bytes.max(self.limits.client_bytes).max(self.limits.result_bytes);
        settings.max_message = settings.max_message.max(largest + MESSAGE_OVERHEAD);
        settings
    }

    #[expect(clippy::disallowed_methods, reason = "a fresh session's numbers come from the wall clock")]
    pub(crate) fn core(&self) -> Result<Config, ConnectError> {
        let (first_number, events_seen) = match self.session {
            Session::Continue { first_number, events_seen } => (first_number.max(1), Some(events_seen)),
            Session::Fresh => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                (u64::try_from(since.as_micros()).unwrap_or(u64::MAX >> 1).max(1), None)
            }
        };
        let mut session = [0; 32];
        if self.history.is_some() {
            getrandom::fill(&mut session).map_err(|_| ConnectError::Random)?;
        }
        Ok(Config {
            group: self.group,
            client: self.client,
            acceptance: self.acceptance,
            limits: self.limits,
            timing: self.timing,
            bounds: self.bounds,
            history: self.history.clone().map(|history| Proven { history, session }),
            first_number,
            events_seen,
            hold_acknowledgements: true,
            primary_shows: self.primary_shows,
            authenticators: self.authenticators.then(|| self.keys()),
        })
    }
}

impl fmt::Debug for ClientConfig {
    /// Leaves the secrets out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("client", &self.client)
            .field("group", &self.group)
            .field("replicas", &self.replicas)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Why a client could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The configuration does not list every replica of the group.
    #[error("the group has {expected} replicas, the configuration lists {listed}")]
    Replicas {
        /// How many there are.
        expected: usize,
        /// How many are listed.
        listed: usize,
    },
    /// The group's limits leave a client no window.
    #[error("the group's limits allow a client no outstanding frame")]
    NoWindow,
    /// The operating system gives no randomness, which the nonces of reads need.
    #[error("the operating system gives no randomness")]
    Random,
    /// Fewer replicas could be reached in time than must say the same to be believed.
    #[error("too few replicas are reachable, missing {unreachable:?}")]
    Unavailable {
        /// Those that could not.
        unreachable: Vec<ReplicaId>,
    },
}

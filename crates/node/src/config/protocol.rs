//! Which agreement protocol a group runs, and what that asks of the rest of its configuration.

use super::names::{UnknownName, named};
use super::{Auth, TrustedHome, TrustedKind};
use std::fmt;
use std::str::FromStr;
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::A2mPbftEa;
use troth_core::Agreement;
use troth_minbft::MinBft;
use troth_pbft::Pbft;
use troth_types::{Group, GroupError, GroupId, ReplicaId};

/// The agreement protocol of a group: part of its name, so that nobody takes part under another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// MinBFT: 2f+1 replicas, each with a trusted component.
    #[default]
    MinBft,
    /// PBFT: 3f+1 replicas, nothing trusted.
    Pbft,
    /// A2M-PBFT-E: 3f+1 replicas, each of which attests the history that it executed.
    A2mPbftE,
    /// A2M-PBFT-EA: 2f+1 replicas, each of which attests everything that it says.
    A2mPbftEa,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::MinBft, Self::Pbft, Self::A2mPbftE, Self::A2mPbftEa];

    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MinBft => MinBft::NAME,
            Self::Pbft => Pbft::NAME,
            Self::A2mPbftE => A2mPbftE::NAME,
            Self::A2mPbftEa => A2mPbftEa::NAME,
        }
    }

    /// Whether each of its replicas has a trusted component.
    #[must_use]
    pub fn has_components(self) -> bool {
        match self {
            Self::MinBft | Self::A2mPbftE | Self::A2mPbftEa => true,
            Self::Pbft => false,
        }
    }

    /// Whether those attest every promise that a replica makes, so that they show when its log is not the last.
    #[must_use]
    pub fn attests_votes(self) -> bool {
        match self {
            Self::MinBft | Self::A2mPbftEa => true,
            Self::Pbft | Self::A2mPbftE => false,
        }
    }

    /// Whether those keep attested logs beside counters.
    #[must_use]
    pub fn uses_logs(self) -> bool {
        match self {
            Self::MinBft | Self::Pbft => false,
            Self::A2mPbftE | Self::A2mPbftEa => true,
        }
    }

    /// How a component at this home certifies where nothing else is asked for. HMACs isolate nothing from a replica that
    /// holds the same key, so a process of its own has a key of its own; and where clients check attestations, they have
    /// public keys only.
    #[must_use]
    pub fn usual_kind(self, home: TrustedHome) -> TrustedKind {
        match home {
            _ if !self.has_components() => TrustedKind::Nothing,
            TrustedHome::Nowhere => TrustedKind::Nothing,
            TrustedHome::InProcess if !self.uses_logs() => TrustedKind::Hmac,
            TrustedHome::InProcess | TrustedHome::Process => TrustedKind::Ed25519,
        }
    }

    /// Whether its clients may send authenticators in the place of signatures.
    #[must_use]
    pub fn takes_authenticators(self) -> bool {
        match self {
            Self::MinBft | Self::A2mPbftE | Self::A2mPbftEa => false,
            Self::Pbft => true,
        }
    }

    /// Whether its groups may show in this way who says what.
    #[must_use]
    pub fn takes(self, auth: Auth) -> bool {
        match auth {
            Auth::Signed => true,
            Auth::Mac => self.takes_authenticators(),
            Auth::AllSigned => self == Self::Pbft,
        }
    }

    /// Whether a replica that lost what it kept comes back under the operator's word.
    #[must_use]
    pub fn readmits(self) -> bool {
        match self {
            Self::MinBft => true,
            Self::Pbft | Self::A2mPbftE | Self::A2mPbftEa => false,
        }
    }

    /// Whether a replica that kept its log goes on with another component where it lost the one it had, or the one it had
    /// cannot follow the group any more. What it promised does not rest on the component.
    #[must_use]
    pub fn renews_components(self) -> bool {
        match self {
            Self::A2mPbftE => true,
            Self::MinBft | Self::Pbft | Self::A2mPbftEa => false,
        }
    }

    /// How many replicas bear this many faulty ones.
    #[must_use]
    pub fn replicas(self, faults: u16) -> u16 {
        match self {
            Self::MinBft | Self::A2mPbftEa => faults.saturating_mul(2).saturating_add(1),
            Self::Pbft | Self::A2mPbftE => faults.saturating_mul(3).saturating_add(1),
        }
    }

    /// The most faulty replicas that a group of at most `replicas` bears.
    #[must_use]
    pub fn most_faults(self, replicas: u16) -> u16 {
        (replicas.saturating_sub(1)) / (self.replicas(1) - 1)
    }

    /// Components of this kind at this home, where it has any; else none, whatever was asked for.
    #[must_use]
    pub fn components(self, kind: TrustedKind, home: TrustedHome) -> (TrustedKind, TrustedHome) {
        if self.has_components() { (kind, home) } else { (TrustedKind::Nothing, TrustedHome::Nowhere) }
    }

    /// What brings a replica back that lost its component and nothing else; nothing where nothing does.
    #[must_use]
    pub fn way_back_without_component(self, replica: ReplicaId) -> Option<String> {
        (self.readmits() || self.renews_components())
            .then(|| format!("`troth admin readmit --replica {}` (docs/operating/readmission.md)", replica.0))
    }

    /// What to do with a replica that must not vote any more, to be said behind "mend:".
    #[must_use]
    pub fn way_back(self) -> String {
        match self.no_way_back() {
            None => "have it readmitted with a new component; until then leave it stopped".to_owned(),
            Some(why) => format!("leave it stopped for good: {why}"),
        }
    }

    /// Why such a replica never comes back, and what does; nothing where it can be readmitted.
    #[must_use]
    pub fn no_way_back(self) -> Option<String> {
        (!self.readmits()).then(|| {
            let which = if self.renews_components() { " that has not the whole of its log" } else { "" };
            format!(
                "this version brings back no replica of protocol = \"{self}\"{which}, and the group bears that much less; a \
                 new group bears f again, by `troth backup` and `troth restore`"
            )
        })
    }

    /// Whether a primary shows the others what its clients sent to it alone.
    #[must_use]
    pub fn primary_shows(self) -> bool {
        self == Self::MinBft
    }

    /// A group of this many replicas.
    pub(super) fn group(self, id: GroupId, replicas: u16) -> Result<Group, GroupError> {
        match self {
            Self::MinBft | Self::A2mPbftEa => Group::hybrid(id, replicas),
            Self::Pbft | Self::A2mPbftE => Group::general(id, replicas),
        }
    }

    /// How many replicas there may be, in words.
    pub(super) fn sizes(self) -> &'static str {
        match self {
            Self::MinBft | Self::A2mPbftEa => "an odd number of [[replica]] tables, three or more",
            Self::Pbft | Self::A2mPbftE => "3f+1 [[replica]] tables: 4, 7, 10, …",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        named(name, &Self::ALL, Self::name)
    }
}

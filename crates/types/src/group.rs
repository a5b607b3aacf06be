//! A replica group: who belongs to it and how large its quorums are.

use crate::{ClientId, Malformed, Reader, ReplicaId, View, Wire};
use core::fmt;

/// Names a group: the first 16 bytes of its configuration's digest. Every signature and every
/// certificate binds it, so nothing said in one group counts in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupId(pub [u8; 16]);

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g:{:02x}{:02x}{:02x}{:02x}", self.0[0], self.0[1], self.0[2], self.0[3])
    }
}

impl Wire for GroupId {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(reader.array()?))
    }
}

/// Why a group cannot be formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// A hybrid group needs an odd number of replicas, three or more.
    NotHybrid(u16),
    /// A group without trusted components needs one more than three times as many replicas as may be faulty.
    NotGeneral(u16),
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHybrid(n) => {
                write!(
                    f,
                    "{n} replicas cannot form a group with trusted components: take 2f+1 for f >= 1, that is 3, 5, 7, …"
                )
            }
            Self::NotGeneral(n) => {
                write!(
                    f,
                    "{n} replicas cannot form a group without trusted components: take 3f+1 for f >= 1, that is 4, 7, 10, …"
                )
            }
        }
    }
}

impl std::error::Error for GroupError {}

/// A group's size, fault bound and quorums. Built only by the constructors, so n, f and the quorum
/// always fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    id: GroupId,
    replicas: u16,
    faults: u16,
    quorum: u16,
}

impl Group {
    /// A hybrid group: n = 2f+1 replicas with a trusted component each, quorums of f+1 (MinBFT §3).
    pub fn hybrid(id: GroupId, replicas: u16) -> Result<Self, GroupError> {
        if replicas < 3 || replicas.is_multiple_of(2) {
            return Err(GroupError::NotHybrid(replicas));
        }
        // n is odd, so half of it, rounded down, is f.
        let faults = replicas / 2;
        Ok(Self { id, replicas, faults, quorum: faults + 1 })
    }

    /// A group without trusted components: n = 3f+1 replicas, quorums of 2f+1 (PBFT §3).
    pub fn general(id: GroupId, replicas: u16) -> Result<Self, GroupError> {
        if replicas < 4 || replicas % 3 != 1 {
            return Err(GroupError::NotGeneral(replicas));
        }
        let faults = replicas / 3;
        Ok(Self { id, replicas, faults, quorum: 2 * faults + 1 })
    }

    /// The group's name.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.id
    }

    /// The number of replicas, n.
    #[must_use]
    pub fn n(&self) -> usize {
        usize::from(self.replicas)
    }

    /// The number of faulty replicas that change nothing, f.
    #[must_use]
    pub fn f(&self) -> usize {
        usize::from(self.faults)
    }

    /// The size of a quorum. Any two share a replica: of a hybrid group one whose trusted component binds it, of a
    /// general group a correct one.
    #[must_use]
    pub fn quorum(&self) -> usize {
        usize::from(self.quorum)
    }

    /// The size of a set that must hold a correct replica, f+1.
    #[must_use]
    pub fn weak(&self) -> usize {
        self.f() + 1
    }

    /// The primary of a view: view mod n.
    #[must_use]
    pub fn primary(&self, view: View) -> ReplicaId {
        let index = view.0 % u64::from(self.replicas);
        ReplicaId(u16::try_from(index).expect("a remainder of a u16 fits a u16"))
    }

    /// The replica that answers this frame or read in full while the others send a digest. It
    /// takes turns and depends on (client, number) alone, never on load (guide.md §1.1), so
    /// every replica and the client name the same one.
    #[must_use]
    pub fn designated(&self, client: ClientId, number: u64) -> ReplicaId {
        let index = client.0.wrapping_add(number) % u64::from(self.replicas);
        ReplicaId(u16::try_from(index).expect("a remainder of a u16 fits a u16"))
    }

    /// The replicas in the order in which they are asked for the outcome of a client's frame: the designated one first.
    pub fn turns(&self, client: ClientId, number: u64) -> impl Iterator<Item = ReplicaId> + use<> {
        let (first, n) = (self.designated(client, number).0, self.n() as u16);
        (0..n).map(move |step| ReplicaId((first + step) % n))
    }

    /// Whether the group has this replica.
    #[must_use]
    pub fn contains(&self, replica: ReplicaId) -> bool {
        replica.0 < self.replicas
    }

    /// All replicas, in order.
    pub fn all(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        (0..self.replicas).map(ReplicaId)
    }
}

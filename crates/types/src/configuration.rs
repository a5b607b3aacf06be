//! Who the replicas and clients of a group are, as a part of the replicated state: an operator changes it
//! by an ordered request, so every replica changes it at the same place in the order (guide.md §7.3).

use crate::{
    Change, ClientId, Digest, Hasher, Malformed, Reader, Refused, ReplicaId, Seq, Wire, put_bytes, put_list,
};
use std::collections::BTreeMap;

/// Marks the place that implements a rule of `docs/protocols/a2m-pbft-e.md`, for `cargo xtask paper`.
macro_rules! rule {
    ($label:literal) => {};
}

/// The client by whose frames operators change the configuration. Its key is configured like any client's.
pub const OPERATOR: ClientId = ClientId(u64::MAX);

/// Replicas that any configuration may have; a bound for the decoder.
pub(crate) const MAX_REPLICAS: usize = 128;
/// Admissions and sets of host keys remembered of one replica: logs may still refer to earlier ones.
const REMEMBERED: usize = 8;
/// The most clients that a group may have had.
pub(crate) const MAX_CLIENTS: usize = 1 << 14;
/// The longest address, in bytes.
pub(crate) const MAX_ADDRESS: usize = 256;

/// What checks the certificates of a trusted component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKey {
    /// The group's HMAC key, which only components hold.
    Group,
    /// The component's own Ed25519 public key.
    Ed25519([u8; 32]),
}

impl Wire for ComponentKey {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Group => out.push(0),
            Self::Ed25519(key) => {
                out.push(1);
                out.extend_from_slice(key);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::decode(reader)? {
            0 => Ok(Self::Group),
            1 => Ok(Self::Ed25519(reader.array()?)),
            other => Err(Malformed::Tag("a component's key", u64::from(other))),
        }
    }
}

/// One trusted component of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The component's epoch; higher than that of every component of the replica before it.
    pub epoch: u64,
    /// The batch that admitted it; 0 for what the group began with. What the replica's earlier components
    /// certified for batches above this one is void.
    pub at: Seq,
    /// What checks its certificates.
    pub component: ComponentKey,
}

impl Wire for Admission {
    fn encode(&self, out: &mut Vec<u8>) {
        self.epoch.encode(out);
        self.at.encode(out);
        self.component.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { epoch: Wire::decode(reader)?, at: Wire::decode(reader)?, component: Wire::decode(reader)? })
    }
}

/// Where a replica's host is and how others know it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostKeys {
    /// Its public key for signatures.
    pub signing: [u8; 32],
    /// Its public key for links.
    pub link: [u8; 32],
    /// Where it listens, as `host:port`.
    pub address: String,
}

impl Wire for HostKeys {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.signing);
        out.extend_from_slice(&self.link);
        put_bytes(out, self.address.as_bytes());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            signing: reader.array()?,
            link: reader.array()?,
            address: text(reader, "an address", MAX_ADDRESS)?,
        })
    }
}

pub(crate) fn text(reader: &mut Reader<'_>, field: &'static str, max: usize) -> Result<String, Malformed> {
    let bytes = reader.bytes(field, max)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::Invalid("a text that is not UTF-8"))
}

/// A replica: its components and its hosts, oldest first, as far as they are remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    admissions: Vec<Admission>,
    hosts: Vec<HostKeys>,
}

impl Member {
    /// A replica as the group begins with it.
    #[must_use]
    pub fn new(epoch: u64, component: ComponentKey, host: HostKeys) -> Self {
        Self { admissions: vec![Admission { epoch, at: Seq(0), component }], hosts: vec![host] }
    }

    /// The present component.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        self.admissions.last().expect("a member has a component")
    }

    /// The present host.
    #[must_use]
    pub fn host(&self) -> &HostKeys {
        self.hosts.last().expect("a member has a host")
    }

    /// Whether another host than the present one, with another key, signed for this replica, as far as that is
    /// remembered.
    #[must_use]
    pub fn has_changed_host(&self) -> bool {
        self.hosts.iter().any(|host| host.signing != self.host().signing)
    }

    /// All remembered components, oldest first.
    #[must_use]
    pub fn admissions(&self) -> &[Admission] {
        &self.admissions
    }

    /// All remembered hosts, oldest first.
    #[must_use]
    pub fn hosts(&self) -> &[HostKeys] {
        &self.hosts
    }
}

impl Wire for Member {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.admissions);
        put_list(out, &self.hosts);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let member = Self {
            admissions: reader.list("a member's components", REMEMBERED)?,
            hosts: reader.list("a member's hosts", REMEMBERED)?,
        };
        let ascending = member.admissions.windows(2).all(|pair| pair[0].epoch < pair[1].epoch);
        if member.admissions.is_empty() || member.hosts.is_empty() || !ascending {
            return Err(Malformed::Invalid("a member has a host and components of ascending epochs"));
        }
        Ok(member)
    }
}

/// Who the replicas and clients of a group are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Configuration {
    /// How many changes led to it.
    pub number: u64,
    members: Vec<Member>,
    clients: BTreeMap<ClientId, ClientEntry>,
}

/// A client. Its key never changes, so what was ordered can be checked by everybody at any time; what is
/// removed stays known for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientEntry {
    /// Its public key for signatures.
    pub key: [u8; 32],
    /// Its public key for links.
    pub link: [u8; 32],
    /// Whether what is ordered of it does nothing any more.
    pub removed: bool,
}

impl Wire for ClientEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.link);
        self.removed.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { key: reader.array()?, link: reader.array()?, removed: Wire::decode(reader)? })
    }
}

impl Configuration {
    /// What a group begins with: its replicas, by number, and its clients.
    #[must_use]
    pub fn new(members: Vec<Member>, clients: BTreeMap<ClientId, ClientEntry>) -> Self {
        Self { number: 0, members, clients }
    }

    /// A replica.
    #[must_use]
    pub fn member(&self, replica: ReplicaId) -> Option<&Member> {
        self.members.get(usize::from(replica.0))
    }

    /// All replicas, by number.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// A client, removed or not.
    #[must_use]
    pub fn client(&self, client: ClientId) -> Option<&ClientEntry> {
        self.clients.get(&client)
    }

    /// All clients, removed or not.
    pub fn clients(&self) -> impl Iterator<Item = (ClientId, &ClientEntry)> {
        self.clients.iter().map(|(client, entry)| (*client, entry))
    }

    /// Whether a client was removed.
    #[must_use]
    pub fn is_removed(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(|entry| entry.removed)
    }

    /// The component of a replica with this epoch, if it is remembered.
    #[must_use]
    pub fn admission(&self, replica: ReplicaId, epoch: u64) -> Option<&Admission> {
        self.member(replica)?.admissions.iter().find(|admission| admission.epoch == epoch)
    }

    /// The replicas whose component at a batch is not the one that the group began with, by number.
    #[must_use]
    pub fn epochs_at(&self, seq: Seq) -> Vec<(ReplicaId, u64)> {
        let present =
            |member: &Member| member.admissions.iter().rev().find(|admission| admission.at <= seq).copied();
        let numbered = (0..).map(ReplicaId).zip(&self.members);
        numbered
            .filter_map(|(replica, member)| Some((replica, present(member)?)))
            .filter(|(_, admission)| admission.at > Seq(0))
            .map(|(replica, admission)| (replica, admission.epoch))
            .collect()
    }

    /// Names this configuration: equal names are equal configurations.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new("troth/configuration/v1");
        hasher.bytes(&self.to_wire());
        hasher.finish()
    }

    /// Makes a change in the batch `at`. Replicas admitted less than `settling` batches ago may not vote
    /// yet; there are never more of them than `faults`, or nobody could order what brings them back.
    pub fn apply(&mut self, change: &Change, at: Seq, settling: u64, faults: usize) -> Result<(), Refused> {
        match change {
            Change::Admit { replica, epoch, component, host } => {
                let present = self.member_mut(*replica)?.admission().epoch;
                if *epoch <= present {
                    return Err(Refused::OldEpoch { present });
                }
                self.check_room(*replica, at, settling, faults)?;
                let member = self.member_mut(*replica)?;
                if let Some(host) = host {
                    set_host(member, host)?;
                }
                admit(member, Admission { epoch: *epoch, at, component: *component });
            }
            Change::Renew { replica, epoch, component, shown } => {
                rule!("A2MPBFTE-N5");
                if *shown != self.digest() {
                    return Err(Refused::Changed);
                }
                let present = self.member_mut(*replica)?.admission().epoch;
                if *epoch <= present {
                    return Err(Refused::OldEpoch { present });
                }
                // Of groups of 3f+1 replicas, whose clients need the attestations of all but f.
                let spare = self.members.len().saturating_sub(1) / 3;
                self.check_room(*replica, at, settling, spare)?;
                let member = self.member_mut(*replica)?;
                check_memory(member, at, settling)?;
                admit(member, Admission { epoch: *epoch, at, component: *component });
            }
            Change::Rekey { replica, host } => set_host(self.member_mut(*replica)?, host)?,
            Change::AddClient { client, key, link } => self.add_client(*client, *key, *link)?,
            Change::RemoveClient(OPERATOR) => return Err(Refused::Operator),
            Change::RemoveClient(client) => {
                self.clients.get_mut(client).ok_or(Refused::NoSuchClient(*client))?.removed = true;
            }
            Change::Show => return Ok(()),
            Change::Announce { replica } => {
                rule!("A2MPBFTE-N5");
                // Nothing but the number, by which renewals that were signed before are told.
                self.member_mut(*replica)?;
            }
        }
        self.number += 1;
        Ok(())
    }

    fn check_room(&self, replica: ReplicaId, at: Seq, settling: u64, faults: usize) -> Result<(), Refused> {
        let settled = |member: &Member| {
            let admission = member.admission();
            (admission.at > Seq(0)).then(|| Seq(admission.at.0.saturating_add(settling)))
        };
        let others = (0..).map(ReplicaId).zip(&self.members).filter(|(other, _)| *other != replica);
        let mut until: Vec<Seq> =
            others.filter_map(|(_, member)| settled(member)).filter(|until| *until > at).collect();
        until.sort_unstable();
        match until.len() >= faults {
            true => Err(Refused::TooMany { until: until[until.len() - faults] }),
            false => Ok(()),
        }
    }

    fn member_mut(&mut self, replica: ReplicaId) -> Result<&mut Member, Refused> {
        self.members.get_mut(usize::from(replica.0)).ok_or(Refused::NoSuchReplica(replica))
    }

    fn add_client(&mut self, client: ClientId, key: [u8; 32], link: [u8; 32]) -> Result<(), Refused> {
        if self.clients.contains_key(&client) {
            return Err(Refused::TakenClient(client));
        }
        if self.clients.len() >= MAX_CLIENTS {
            return Err(Refused::TooManyClients);
        }
        self.clients.insert(client, ClientEntry { key, link, removed: false });
        Ok(())
    }
}

/// Refuses one more component where the oldest, which is forgotten then, attested slots that may still be shown.
fn check_memory(member: &Member, at: Seq, settling: u64) -> Result<(), Refused> {
    rule!("A2MPBFTE-N6");
    let [_, second, ..] = &member.admissions[..] else { return Ok(()) };
    let until = Seq(second.at.0.saturating_add(settling));
    match member.admissions.len() == REMEMBERED && until > at {
        true => Err(Refused::TooMany { until }),
        false => Ok(()),
    }
}

fn admit(member: &mut Member, admission: Admission) {
    member.admissions.push(admission);
    forget_oldest(&mut member.admissions);
}

fn set_host(member: &mut Member, host: &HostKeys) -> Result<(), Refused> {
    if host.address.len() > MAX_ADDRESS {
        return Err(Refused::Address);
    }
    member.hosts.push(host.clone());
    forget_oldest(&mut member.hosts);
    Ok(())
}

fn forget_oldest<T>(list: &mut Vec<T>) {
    if list.len() > REMEMBERED {
        list.remove(0);
    }
}

impl Wire for Configuration {
    fn encode(&self, out: &mut Vec<u8>) {
        self.number.encode(out);
        put_list(out, &self.members);
        let clients: Vec<(ClientId, ClientEntry)> =
            self.clients.iter().map(|(client, entry)| (*client, *entry)).collect();
        put_list(out, &clients);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = Wire::decode(reader)?;
        let members = reader.list("a configuration's replicas", MAX_REPLICAS)?;
        let listed: Vec<(ClientId, ClientEntry)> = reader.list("a configuration's clients", MAX_CLIENTS)?;
        if !listed.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(Malformed::Invalid("a configuration's clients stand in order"));
        }
        Ok(Self { number, members, clients: listed.into_iter().collect() })
    }
}

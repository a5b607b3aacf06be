//! Components that count in the place of those that a group began with, as whoever shows a place in a history tells them
//! (`docs/protocols/a2m-pbft-e.md`, "New logs").

use crate::configuration::MAX_REPLICAS;
use crate::{ComponentKey, Configuration, Malformed, Reader, ReplicaId, Seq, Wire, put_list};

/// The component of a replica that counts, where it is another one than the group began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Whose it is.
    pub replica: ReplicaId,
    /// Its epoch.
    pub epoch: u64,
    /// What checks what it attests.
    pub component: ComponentKey,
}

impl Wire for Renewed {
    fn encode(&self, out: &mut Vec<u8>) {
        self.replica.encode(out);
        self.epoch.encode(out);
        self.component.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            replica: Wire::decode(reader)?,
            epoch: Wire::decode(reader)?,
            component: Wire::decode(reader)?,
        })
    }
}

impl Renewed {
    /// Appends the encoding of those of a group.
    pub(crate) fn encode_all(renewed: &[Self], out: &mut Vec<u8>) {
        put_list(out, renewed);
    }

    /// Reads those of a group: some, by ascending replica.
    pub(crate) fn decode_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let renewed: Vec<Self> = reader.list("components that were renewed", MAX_REPLICAS)?;
        let ascending = renewed.windows(2).all(|pair| pair[0].replica < pair[1].replica);
        if renewed.is_empty() || !ascending {
            return Err(Malformed::Invalid("components that were renewed stand in order, one at least"));
        }
        Ok(renewed)
    }
}

impl Configuration {
    /// Which components count for a slot of the histories in the place of those that the group began with, by ascending
    /// replica. What admits a component is still the earlier one's to attest. This configuration must be that of the slot or
    /// a later one; what attested slots of the last window and interval is not forgotten (`Configuration::apply`).
    #[must_use]
    pub fn renewed_at(&self, slot: Seq) -> Vec<Renewed> {
        let numbered = (0..).map(ReplicaId).zip(self.members());
        let counting = numbered.filter_map(|(replica, member)| {
            let admitted = member.admissions().iter().rev().find(|admission| admission.at < slot)?;
            let renewed = Renewed { replica, epoch: admitted.epoch, component: admitted.component };
            (admitted.at > Seq(0)).then_some(renewed)
        });
        counting.collect()
    }
}

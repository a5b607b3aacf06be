//! What the runtime needs of an agreement protocol beyond the contract: how one begins from a cluster's files, and
//! what proves its stable checkpoints to whoever takes a backup. Everything else that serves is the same for all.

mod a2m_pbft_e;
mod a2m_pbft_ea;
mod minbft;
mod pbft;

use crate::backup::BackupError;
use crate::config::{Cluster, Protocol, ReplicaSecret};
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::A2mPbftEa;
use troth_core::Agreement;
use troth_minbft::MinBft;
use troth_pbft::Pbft;
use troth_trusted_host::store::Room;
use troth_types::{Configuration, Digest, Seq};
#[cfg(feature = "demo-adversary")]
use {crate::liar::Liar, bytes::Bytes, troth_types::ReplicaId};

/// An agreement protocol that replicas serve.
pub(crate) trait Served: Agreement<Message: Send> + 'static {
    /// The agreement of a replica that has not stepped yet.
    fn of(cluster: &Cluster, secret: &ReplicaSecret) -> Self;

    /// The last stable checkpoint and the message that proves it; none before the first.
    fn stable(&self) -> Option<(Seq, Self::Message)>;

    /// The checkpoint that a quorum of the group vouches for, as the message says, before any signature or
    /// certificate in it is looked at.
    ///
    /// # Errors
    /// [`BackupError`]: it proves no checkpoint, or one that is not to be taken.
    fn vouched(
        cluster: &Cluster,
        configuration: &Configuration,
        proof: &Self::Message,
    ) -> Result<(Seq, Digest), BackupError>;

    /// What a lying replica sends to another one instead of this message.
    #[cfg(feature = "demo-adversary")]
    fn lies(liar: &mut Liar, to: ReplicaId, message: Self::Message, honest: Bytes) -> Vec<Bytes>;

    /// Whether this is a proposal of this replica.
    #[cfg(feature = "demo-adversary")]
    fn is_proposal(message: &Self::Message, me: ReplicaId) -> bool;

    /// Whether a primary that leaves a replica out keeps this message of its own from it: proposals, and what else that
    /// replica would need of the primary to follow the others.
    #[cfg(feature = "demo-adversary")]
    fn is_kept_back(message: &Self::Message, me: ReplicaId) -> bool {
        Self::is_proposal(message, me)
    }
}

/// Bytes of about the largest message that correct replicas send.
pub(crate) fn largest_message(cluster: &Cluster) -> usize {
    match cluster.protocol {
        Protocol::MinBft => minbft::largest_message(cluster),
        Protocol::Pbft => pbft::largest_message(cluster),
        Protocol::A2mPbftE => a2m_pbft_e::largest_message(cluster),
        Protocol::A2mPbftEa => a2m_pbft_ea::largest_message(cluster),
    }
}

/// Batches that may have their frames kept for each number of the window.
pub(crate) fn batches_per_number(cluster: &Cluster) -> usize {
    match cluster.protocol {
        Protocol::MinBft => 1,
        Protocol::Pbft | Protocol::A2mPbftE => pbft::PER_NUMBER,
        Protocol::A2mPbftEa => a2m_pbft_ea::PER_NUMBER,
    }
}

/// Entries that each log of a component has room for; nothing where the protocol uses no logs.
pub(crate) fn log_room(cluster: &Cluster) -> Option<Room> {
    match cluster.protocol {
        Protocol::MinBft | Protocol::Pbft => None,
        Protocol::A2mPbftE => Some(a2m_pbft_e::log_room(cluster)),
        Protocol::A2mPbftEa => Some(a2m_pbft_ea::log_room(cluster)),
    }
}

/// Whether replies show the place of their request in the replica's history.
pub(crate) fn proves_replies(protocol: Protocol) -> bool {
    match protocol {
        Protocol::MinBft => MinBft::PROVES_REPLIES,
        Protocol::Pbft => Pbft::PROVES_REPLIES,
        Protocol::A2mPbftE => A2mPbftE::PROVES_REPLIES,
        Protocol::A2mPbftEa => A2mPbftEa::PROVES_REPLIES,
    }
}

/// An error of [`Served::vouched`].
fn uncertified(why: &str) -> BackupError {
    BackupError::Uncertified(why.to_owned())
}

/// Refuses a checkpoint from before the newest of the configuration's changes of replicas: in whose hands what
/// vouched for it has been since nobody knows.
fn not_before_a_change(configuration: &Configuration, seq: Seq) -> Result<(), BackupError> {
    let newest = configuration.members().iter().map(|member| member.admission().at).max();
    if newest.is_some_and(|at| seq < at) {
        let why = "its last checkpoint is from before a replica was readmitted or replaced";
        return Err(BackupError::Refused(why.to_owned()));
    }
    Ok(())
}

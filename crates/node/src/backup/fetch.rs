//! The operator's side: certificates first, then the state they certify, piece by piece.

use super::BackupError;
use super::wire::{Greeting, MAX_ANSWER, receive, send};
use crate::config::{Cluster, Protocol, ReplicaSecret, TrustedKind};
use crate::keys::Keys;
use crate::served::Served;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use troth_a2m_pbft_e::A2mPbftE;
use troth_a2m_pbft_ea::A2mPbftEa;
use troth_core::{Execution, Installing};
use troth_exec::{Executor, Snapshot as State};
use troth_minbft::MinBft;
use troth_pbft::Pbft;
use troth_trusted::MacKey;
use troth_types::{Configuration, Digest, Seq, StateFetch, StatePiece, Wire};

/// How long the replica may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Questions under way at once: few enough to fit a socket's buffer, so that neither end ever waits for
/// the other to take what it does not read.
const UNDER_WAY: usize = 16;

/// How far a backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pieces of the state that have come and are verified.
    pub pieces: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Pieces that are asked for, as far as is known yet.
    pub wanted: u64,
}

/// A replica that serves its last stable checkpoint, which a quorum of replicas has certified.
pub struct Source {
    stream: UnixStream,
    limits: troth_types::Limits,
    /// The replicas and their components by which the certificates were judged.
    pub configuration: Arc<Configuration>,
    /// The checkpoint.
    pub seq: Seq,
    /// Its certified digest.
    pub digest: Digest,
    /// The last batch that the replica had executed when it was asked.
    pub executed: Seq,
    /// The certificates: an encoded message of the group's protocol.
    pub proof: Bytes,
}

impl Source {
    /// Asks a replica of this machine and checks its certificates, by what is known here of who the replicas
    /// are ([`Known`](crate::config::Known)).
    ///
    /// # Errors
    /// [`BackupError`]: it cannot be reached, will not, or what it shows is not certified.
    pub fn open(
        cluster: &Cluster,
        configuration: &Arc<Configuration>,
        secret: &ReplicaSecret,
        socket: &Path,
    ) -> Result<Self, BackupError> {
        let stream =
            UnixStream::connect(socket).map_err(|why| BackupError::Unreachable(socket.to_path_buf(), why))?;
        Self::over(stream, cluster, configuration, secret.mac.as_ref())
    }

    pub(crate) fn over(
        mut stream: UnixStream,
        cluster: &Cluster,
        configuration: &Arc<Configuration>,
        mac: Option<&MacKey>,
    ) -> Result<Self, BackupError> {
        stream.set_read_timeout(Some(PATIENCE)).map_err(BackupError::Lost)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(BackupError::Lost)?;
        let greeting = answer(&mut stream)?;
        let (executed, proof) = match cluster.protocol {
            Protocol::MinBft => offered::<MinBft>(&greeting),
            Protocol::Pbft => offered::<Pbft>(&greeting),
            Protocol::A2mPbftE => offered::<A2mPbftE>(&greeting),
            Protocol::A2mPbftEa => offered::<A2mPbftEa>(&greeting),
        }?;
        let (seq, digest) = certified(cluster, configuration, mac, &proof)?;
        let configuration = Arc::clone(configuration);
        Ok(Self { stream, limits: cluster.limits, configuration, seq, digest, executed, proof })
    }

    /// Fetches the state. Every piece is verified against the certified digest as it comes, so nothing is
    /// held that is not part of that state.
    ///
    /// # Errors
    /// [`BackupError`]: the replica went away, or serves what it must not.
    pub fn fetch(&mut self, mut progress: impl FnMut(Progress)) -> Result<State, BackupError> {
        // What the state means is of no concern here: any application's executor installs it.
        let mut executor = Executor::new(troth_kv::Null::default(), self.limits);
        let mut wants: VecDeque<StateFetch> = executor.begin_install(self.seq, self.digest).into();
        let mut so_far = Progress { pieces: 0, bytes: 0, wanted: wants.len() as u64 };
        let mut under_way = 0;
        loop {
            while under_way < UNDER_WAY
                && let Some(fetch) = wants.pop_front()
            {
                send(&mut self.stream, &fetch.to_wire()).map_err(BackupError::Lost)?;
                under_way += 1;
            }
            let piece = answer(&mut self.stream)?;
            under_way -= 1;
            so_far.pieces += 1;
            so_far.bytes += piece.len() as u64;
            let piece = StatePiece::from_wire(&piece).map_err(|why| BackupError::Foreign(why.to_string()))?;
            match executor.on_piece(&piece) {
                Installing::Wants(more) => {
                    so_far.wanted += more.len() as u64;
                    wants.extend(more);
                    progress(so_far);
                }
                Installing::Done => {
                    progress(so_far);
                    return Ok(executor.snapshot(self.seq).expect("an installed state is kept"));
                }
                Installing::Rejected | Installing::NotWanted => {
                    return Err(BackupError::Foreign("a piece of state does not verify".to_owned()));
                }
            }
        }
    }
}

fn answer(stream: &mut UnixStream) -> Result<bytes::Bytes, BackupError> {
    let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up");
    receive(stream, MAX_ANSWER).map_err(BackupError::Lost)?.ok_or_else(|| BackupError::Lost(gone()))
}

/// The last batch that a replica had executed and the encoded proof of its checkpoint, as it greets.
fn offered<A: Served>(greeting: &Bytes) -> Result<(Seq, Bytes), BackupError> {
    let greeting = Greeting::<A::Message>::from_wire(greeting);
    match greeting.map_err(|why| BackupError::Foreign(why.to_string()))? {
        Greeting::Offer(offer) => Ok((offer.executed, offer.proof.to_wire())),
        Greeting::Refused(why) => Err(BackupError::Refused(why)),
    }
}

/// What a quorum of the group's replicas has certified, where the encoded message proves that it has: by the keys of
/// the replicas in this configuration, present and earlier ones.
///
/// # Errors
/// [`BackupError::Uncertified`].
pub(super) fn certified(
    cluster: &Cluster,
    configuration: &Arc<Configuration>,
    mac: Option<&MacKey>,
    proof: &Bytes,
) -> Result<(Seq, Digest), BackupError> {
    match cluster.protocol {
        Protocol::MinBft => certified_by::<MinBft>(cluster, configuration, mac, proof),
        Protocol::Pbft => certified_by::<Pbft>(cluster, configuration, mac, proof),
        Protocol::A2mPbftE => certified_by::<A2mPbftE>(cluster, configuration, mac, proof),
        Protocol::A2mPbftEa => certified_by::<A2mPbftEa>(cluster, configuration, mac, proof),
    }
}

fn certified_by<A: Served>(
    cluster: &Cluster,
    configuration: &Arc<Configuration>,
    mac: Option<&MacKey>,
    proof: &Bytes,
) -> Result<(Seq, Digest), BackupError> {
    let bad = |why: String| BackupError::Uncertified(why);
    let proof = A::Message::from_wire(proof).map_err(|why| bad(why.to_string()))?;
    let target = A::vouched(cluster, configuration, &proof)?;
    if cluster.trusted == TrustedKind::Hmac && mac.is_none() {
        return Err(bad("the key that checks HMAC certificates is not here".to_owned()));
    }
    let keys = Keys {
        group: cluster.group.id(),
        mac: mac.map(MacKey::verifier),
        limits: cluster.limits,
        pairs: None,
    };
    keys.messages(configuration).verify(proof).map_err(|why| bad(why.to_string()))?;
    Ok(target)
}

/// What the encoded message says that a quorum of replicas says, before any certificate is looked at.
pub(super) fn vouched(
    cluster: &Cluster,
    configuration: &Configuration,
    proof: &Bytes,
) -> Result<(Seq, Digest), BackupError> {
    let bad = |why: troth_types::Malformed| BackupError::Uncertified(why.to_string());
    match cluster.protocol {
        Protocol::MinBft => MinBft::vouched(cluster, configuration, &Wire::from_wire(proof).map_err(bad)?),
        Protocol::Pbft => Pbft::vouched(cluster, configuration, &Wire::from_wire(proof).map_err(bad)?),
        Protocol::A2mPbftE => {
            A2mPbftE::vouched(cluster, configuration, &Wire::from_wire(proof).map_err(bad)?)
        }
        Protocol::A2mPbftEa => {
            A2mPbftEa::vouched(cluster, configuration, &Wire::from_wire(proof).map_err(bad)?)
        }
    }
}

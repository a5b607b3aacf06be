//! From a TCP connection to two ends that know each other.

use crate::{Identity, LinkError, LinkKey, LinkReader, LinkWriter, PeerId, RECORD, TAG, WIRE_VERSION};
use bytes::Bytes;
use snow::{Builder, HandshakeState, StatelessTransportState};
use socket2::{SockRef, TcpKeepalive};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, ToSocketAddrs};
use troth_types::{GroupId, Wire};

const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
/// The most bytes of a handshake message: two keys, two tags, a name and room to spare.
const HANDSHAKE_MESSAGE: usize = 256;

/// How long a connection is silent before its peer is asked for a sign of life.
const PROBE_AFTER: Duration = Duration::from_secs(5);
/// Between two such questions.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// How long what was sent may stay unacknowledged.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// What both ends of a group's connections agree on, and the bounds of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The group. Ends of different groups do not connect.
    pub group: GroupId,
    /// The most bytes of one message, in either direction.
    pub max_message: usize,
    /// The most bytes that a writer holds unwritten; one message always fits.
    pub max_unsent: usize,
    /// How long connecting and the handshake may take together.
    pub handshake_timeout: Duration,
}

impl Settings {
    /// Settings of a group: messages up to 16 MiB, 64 MiB unsent, five seconds for a handshake.
    #[must_use]
    pub fn new(group: GroupId) -> Self {
        Self { group, max_message: 16 << 20, max_unsent: 64 << 20, handshake_timeout: Duration::from_secs(5) }
    }

    /// What both ends mix into their keys without sending it.
    fn prologue(&self) -> Vec<u8> {
        let mut prologue = b"troth/link".to_vec();
        prologue.push(WIRE_VERSION);
        prologue.extend_from_slice(&self.group.0);
        prologue
    }
}

/// Connects to `address` and makes sure that whoever answers there holds `remote`'s key.
///
/// # Errors
/// The connection or the handshake failed; see [`LinkError`].
pub async fn connect(
    address: impl ToSocketAddrs,
    identity: &Identity,
    remote: &LinkKey,
    settings: &Settings,
) -> Result<(LinkReader, LinkWriter), LinkError> {
    in_time(settings, async {
        let stream = TcpStream::connect(address).await?;
        initiator(stream, identity, remote, settings).await
    })
    .await
}

/// As [`connect`], on a TCP connection that stands already.
///
/// # Errors
/// As [`connect`].
pub async fn initiate(
    stream: TcpStream,
    identity: &Identity,
    remote: &LinkKey,
    settings: &Settings,
) -> Result<(LinkReader, LinkWriter), LinkError> {
    in_time(settings, initiator(stream, identity, remote, settings)).await
}

/// Answers a caller. `lookup` gives the key that the configuration has for whom the caller says it
/// is. The caller's presence is proved when this returns: it is no replay.
///
/// # Errors
/// The handshake failed or the caller is not who it says it is; see [`LinkError`].
pub async fn accept(
    stream: TcpStream,
    identity: &Identity,
    settings: &Settings,
    lookup: impl FnOnce(PeerId) -> Option<LinkKey>,
) -> Result<(PeerId, LinkReader, LinkWriter), LinkError> {
    accept_when(stream, identity, settings, std::future::ready(()), lookup).await
}

/// As [`accept`]; nothing is computed for the caller before its first message is there and then `turn` is over.
///
/// # Errors
/// As [`accept`].
pub async fn accept_when(
    stream: TcpStream,
    identity: &Identity,
    settings: &Settings,
    turn: impl Future<Output = ()>,
    lookup: impl FnOnce(PeerId) -> Option<LinkKey>,
) -> Result<(PeerId, LinkReader, LinkWriter), LinkError> {
    in_time(settings, responder(stream, identity, settings, turn, lookup)).await
}

async fn in_time<T>(
    settings: &Settings,
    work: impl Future<Output = Result<T, LinkError>>,
) -> Result<T, LinkError> {
    tokio::time::timeout(settings.handshake_timeout, work).await.unwrap_or(Err(LinkError::TimedOut))
}

async fn initiator(
    mut stream: TcpStream,
    identity: &Identity,
    remote: &LinkKey,
    settings: &Settings,
) -> Result<(LinkReader, LinkWriter), LinkError> {
    prepare(&stream)?;
    let prologue = settings.prologue();
    let mut state = builder(identity, &prologue)?
        .remote_public_key(&remote.0)
        .and_then(Builder::build_initiator)
        .map_err(|_| LinkError::Handshake)?;
    send(&mut stream, &mut state, &identity.peer.to_wire()).await?;
    let message = receive(&mut stream).await?;
    let payload = open(&mut state, &message)?;
    if !payload.is_empty() {
        return Err(LinkError::Handshake);
    }
    let cipher = finish(state)?;
    let mut sealed = [0; TAG];
    cipher.write_message(0, &[], &mut sealed).map_err(|_| LinkError::Handshake)?;
    stream.write_all(&record(&sealed)).await?;
    Ok(halves(stream, cipher, settings, 1, 0))
}

async fn responder(
    mut stream: TcpStream,
    identity: &Identity,
    settings: &Settings,
    turn: impl Future<Output = ()>,
    lookup: impl FnOnce(PeerId) -> Option<LinkKey>,
) -> Result<(PeerId, LinkReader, LinkWriter), LinkError> {
    prepare(&stream)?;
    let message = receive(&mut stream).await?;
    turn.await;
    let prologue = settings.prologue();
    let mut state = builder(identity, &prologue)?.build_responder().map_err(|_| LinkError::Handshake)?;
    let payload = open(&mut state, &message)?;
    let peer = PeerId::from_wire(&payload).map_err(|_| LinkError::Handshake)?;
    let expected = lookup(peer).ok_or(LinkError::UnknownPeer(peer))?;
    if state.get_remote_static() != Some(expected.0.as_slice()) {
        return Err(LinkError::WrongKey(peer));
    }
    send(&mut stream, &mut state, &[]).await?;
    let cipher = finish(state)?;
    let mut header = [0; 2];
    read_exact(&mut stream, &mut header).await?;
    let mut sealed = [0; TAG];
    if usize::from(u16::from_le_bytes(header)) != sealed.len() {
        return Err(LinkError::Handshake);
    }
    read_exact(&mut stream, &mut sealed).await?;
    cipher.read_message(0, &sealed, &mut []).map_err(|_| LinkError::Handshake)?;
    let (reader, writer) = halves(stream, cipher, settings, 0, 1);
    Ok((peer, reader, writer))
}

/// Sets a socket up. Small messages leave at once. A peer that is gone without a word (power, cable,
/// a firewall that forgot) is noticed: with nothing under way by probes, else by what is not
/// acknowledged. The connection then ends with an error, and whoever owns it dials anew.
///
/// A peer that is there and takes nothing for all of [`GIVE_UP_AFTER`] counts as gone too.
fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_INTERVAL);
    socket.set_tcp_keepalive(&probes)?;
    // Where it exists it bounds the probes as well.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(GIVE_UP_AFTER))?;
    Ok(())
}

fn builder<'a>(identity: &'a Identity, prologue: &'a [u8]) -> Result<Builder<'a>, LinkError> {
    let parameters = PATTERN.parse().expect("the pattern is a constant");
    Builder::new(parameters)
        .local_private_key(&identity.secret)
        .and_then(|builder| builder.prologue(prologue))
        .map_err(|_| LinkError::Handshake)
}

fn finish(state: HandshakeState) -> Result<Arc<StatelessTransportState>, LinkError> {
    state.into_stateless_transport_mode().map(Arc::new).map_err(|_| LinkError::Handshake)
}

fn halves(
    stream: TcpStream,
    cipher: Arc<StatelessTransportState>,
    settings: &Settings,
    written: u64,
    read: u64,
) -> (LinkReader, LinkWriter) {
    let (input, output) = stream.into_split();
    let reader = LinkReader::new(input, Arc::clone(&cipher), read, settings.max_message);
    (reader, LinkWriter::new(output, cipher, written, settings.max_message, settings.max_unsent))
}

/// A record around ciphertext.
fn record(sealed: &[u8]) -> Vec<u8> {
    assert!(sealed.len() <= RECORD, "records are cut to size before");
    let length = u16::try_from(sealed.len()).expect("RECORD fits a u16");
    let mut record = length.to_le_bytes().to_vec();
    record.extend_from_slice(sealed);
    record
}

async fn send(stream: &mut TcpStream, state: &mut HandshakeState, payload: &[u8]) -> Result<(), LinkError> {
    let mut message = [0; HANDSHAKE_MESSAGE];
    let length = state.write_message(payload, &mut message).map_err(|_| LinkError::Handshake)?;
    let mut bytes = vec![WIRE_VERSION];
    bytes.extend_from_slice(&record(&message[..length]));
    stream.write_all(&bytes).await?;
    Ok(())
}

async fn receive(stream: &mut TcpStream) -> Result<Vec<u8>, LinkError> {
    let mut header = [0; 3];
    read_exact(stream, &mut header[..1]).await?;
    if header[0] != WIRE_VERSION {
        return Err(LinkError::Version(header[0]));
    }
    read_exact(stream, &mut header[1..]).await?;
    let length = usize::from(u16::from_le_bytes([header[1], header[2]]));
    if length > HANDSHAKE_MESSAGE {
        return Err(LinkError::Handshake);
    }
    let mut message = vec![0; length];
    read_exact(stream, &mut message).await?;
    Ok(message)
}

fn open(state: &mut HandshakeState, message: &[u8]) -> Result<Bytes, LinkError> {
    let mut payload = vec![0; HANDSHAKE_MESSAGE];
    let length = state.read_message(message, &mut payload).map_err(|_| LinkError::Handshake)?;
    payload.truncate(length);
    Ok(Bytes::from(payload))
}

/// Like the stream's own, but says plainly that the peer hung up.
async fn read_exact(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), LinkError> {
    match stream.read_exact(buffer).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(LinkError::Truncated),
        Err(error) => Err(error.into()),
    }
}

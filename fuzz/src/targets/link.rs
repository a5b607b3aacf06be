//! The links between machines: handshakes with anybody, first messages, and records of a peer who holds the keys
//! and seals what it likes. Messages come out whole and in order, or the connection ends; at a record that brings none
//! it does.

use crate::bytes::Steps;
use crate::{Bound, Target};
use snow::Builder;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use troth_link::{
    Identity, LinkError, LinkKey, LinkReader, PeerId, Settings, Versions, WIRE_VERSION, accept, initiate,
};
use troth_types::{ClientId, GroupId, ReplicaId, Wire};

pub(super) const TARGET: Target = Target {
    name: "link",
    run,
    seeds,
    // Buffers of two records in each direction.
    bound: Bound { fixed: 1 << 20, per_byte: 64 },
    longest: 4096,
};

const GROUP: GroupId = GroupId([5; 16]);
const PEER: PeerId = PeerId::Client(ClientId(7));
const MAX_MESSAGE: usize = 300;

fn settings() -> Settings {
    let handshake_timeout = Duration::from_secs(5);
    Settings { max_message: MAX_MESSAGE, handshake_timeout, ..Settings::new(GROUP) }
}

fn own() -> Identity {
    Identity::new(PeerId::Replica(ReplicaId(0)), [3; 32])
}

fn other() -> Identity {
    Identity::new(PEER, [4; 32])
}

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let which = steps.byte() % 8;
    if which == 7 {
        return first_message(steps.rest());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let (theirs, ours) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut theirs, ours) = (theirs.expect("it listens"), ours.expect("one calls").0);
        // No port may be left waiting by thousands of short connections.
        socket2::SockRef::from(&theirs).set_linger(Some(Duration::ZERO)).expect("it is open");
        match which {
            0 => called(&mut theirs, ours, steps.rest()).await,
            1 => calls(&mut theirs, ours, steps.rest()).await,
            2 => named(&mut theirs, ours, &mut steps).await,
            _ => sealed(&mut theirs, ours, &mut steps).await,
        }
    });
}

fn first_message(message: &[u8]) {
    if let Some(versions) = Versions::of_first_message(message) {
        let _ = Versions::SPOKEN.common(versions);
        assert!(Versions::of_first_message(&versions.first_message()) == Some(versions));
    }
}

/// Somebody without keys calls.
async fn called(theirs: &mut TcpStream, ours: TcpStream, said: &[u8]) {
    theirs.write_all(said).await.expect("short");
    theirs.shutdown().await.expect("it is open");
    let met = accept(ours, &own(), &settings(), |_| Some(other().public_key())).await;
    assert!(met.is_err(), "a caller without keys was let in");
}

/// Somebody without keys is called.
async fn calls(theirs: &mut TcpStream, ours: TcpStream, said: &[u8]) {
    theirs.write_all(said).await.expect("short");
    theirs.shutdown().await.expect("it is open");
    let met = initiate(ours, &own(), &other().public_key(), &settings()).await;
    assert!(met.is_err(), "one without keys was believed");
}

/// The caller's side of a handshake, with any name.
async fn shake(theirs: &mut TcpStream, name: &[u8]) -> Option<snow::StatelessTransportState> {
    let prologue = [&b"troth/link"[..], &[WIRE_VERSION], &GROUP.0].concat();
    let pattern = "Noise_IK_25519_ChaChaPoly_BLAKE2s".parse().expect("a pattern");
    let LinkKey(remote) = own().public_key();
    let mut state = Builder::new(pattern)
        .local_private_key(&[4; 32])
        .and_then(|builder| builder.prologue(&prologue))
        .and_then(|builder| builder.remote_public_key(&remote))
        .and_then(Builder::build_initiator)
        .expect("keys that are right");
    let mut message = [0; 512];
    let length = state.write_message(name, &mut message).expect("a short name");
    theirs.write_all(&[WIRE_VERSION]).await.ok()?;
    theirs.write_all(&u16::try_from(length).expect("short").to_le_bytes()).await.ok()?;
    theirs.write_all(&message[..length]).await.ok()?;
    let mut header = [0; 3];
    theirs.read_exact(&mut header).await.ok()?;
    let mut answer = vec![0; usize::from(u16::from_le_bytes([header[1], header[2]]))];
    theirs.read_exact(&mut answer).await.ok()?;
    state.read_message(&answer, &mut message).ok()?;
    state.into_stateless_transport_mode().ok()
}

async fn named(theirs: &mut TcpStream, ours: TcpStream, steps: &mut Steps<'_>) {
    let name = steps.chunk();
    let (own, settings) = (own(), settings());
    let met = accept(ours, &own, &settings, |_| Some(other().public_key()));
    let caller = async {
        let _ = shake(theirs, &name[..name.len().min(200)]).await;
        let _ = theirs.shutdown().await;
    };
    let (met, ()) = tokio::join!(met, caller);
    assert!(met.is_err(), "a caller was let in before its presence was proved");
}

/// A peer with keys seals any bytes, and in the end sends some that it did not seal.
async fn sealed(theirs: &mut TcpStream, ours: TcpStream, steps: &mut Steps<'_>) {
    let mut records: Vec<&[u8]> = Vec::new();
    for _ in 0..1 + steps.byte() % 6 {
        records.push(steps.chunk());
    }
    let caller = async {
        let cipher = shake(theirs, &PEER.to_wire()).await.expect("keys that are right");
        for (number, record) in (0..).zip(std::iter::once(&&b""[..]).chain(&records)) {
            let mut sealed = vec![0; record.len() + 16];
            cipher.write_message(number, record, &mut sealed).expect("short");
            let length = u16::try_from(sealed.len()).expect("short").to_le_bytes();
            theirs.write_all(&[&length[..], &sealed].concat()).await.expect("short");
        }
        theirs.write_all(steps.rest()).await.expect("short");
        theirs.shutdown().await.expect("it is open");
    };
    let (own, settings) = (own(), settings());
    let (met, ()) = tokio::join!(accept(ours, &own, &settings, |_| Some(other().public_key())), caller);
    let (peer, mut reader, _writer) = met.expect("keys that are right");
    assert_eq!(peer, PEER);
    let (messages, ended) = all(&mut reader).await;
    let (wanted, end) = split(&records);
    assert_eq!(messages, wanted, "other messages than were sent");
    assert_eq!(matches!(ended, Err(LinkError::TooLarge { .. })), end == End::TooLarge, "{ended:?}");
    assert!(end != End::Unfilled || matches!(ended, Err(LinkError::Unfilled)), "{ended:?}");
}

async fn all(reader: &mut LinkReader) -> (Vec<Vec<u8>>, Result<(), LinkError>) {
    let mut messages = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(message)) => messages.push(message.to_vec()),
            Ok(None) => return (messages, Ok(())),
            Err(why) => return (messages, Err(why)),
        }
    }
}

/// Why nothing is taken of what was sealed any more.
#[derive(PartialEq, Eq)]
enum End {
    /// It is over.
    Over,
    TooLarge,
    Unfilled,
}

/// The messages in what was sealed, and what ends them. No record is full here.
fn split(records: &[&[u8]]) -> (Vec<Vec<u8>>, End) {
    let mut messages = Vec::new();
    for record in records {
        let mut plain = *record;
        while let Some((header, rest)) = plain.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*header) as usize;
            if length > MAX_MESSAGE {
                return (messages, End::TooLarge);
            }
            let Some((message, rest)) = rest.split_at_checked(length) else { break };
            messages.push(message.to_vec());
            plain = rest;
        }
        if record.is_empty() || !plain.is_empty() {
            return (messages, End::Unfilled);
        }
    }
    (messages, End::Over)
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        [&[0, WIRE_VERSION, 96, 0][..], &[1; 96]].concat(),
        [&[1, WIRE_VERSION, 48, 0][..], &[1; 48]].concat(),
        [&[2, 3][..], &PEER.to_wire()].concat(),
        [&[3, 1, 7, 3, 0, 0, 0][..], b"one", &[10, 2, 0, 0, 0], b"ab", &[0, 0, 0, 0]].concat(),
        // A message that is cut at a record with room left, one in records of a byte, and nothing at all.
        [&[3, 1, 9, 3, 0, 0, 0][..], b"one", &[0, 0, 4, 0, 0, 0, 0]].concat(),
        vec![3, 4, 1, 1, 1, 0, 1, 0, 1, 0, 1, 7],
        [&[3, 2, 7, 3, 0, 0, 0][..], b"one", &[0, 4, 0, 0, 0, 0]].concat(),
        [&[3, 0, 4, 255, 255, 0, 0, 20, 0][..], &[9; 20]].concat(),
        [&[7][..], &Versions::SPOKEN.first_message()].concat(),
    ]
}

use super::{client, directory, link_with, replica, settings, shake, sockets};
use crate::handshake::GIVE_UP_AFTER;
use crate::{Identity, LinkError, LinkKey, PeerId, Settings, WIRE_VERSION, accept, connect, generate_secret};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;
use troth_types::{ClientId, GroupId, ReplicaId, Wire};

#[tokio::test]
async fn a_caller_with_another_key_or_name_is_refused() {
    let stranger = Identity::new(client().peer(), [9; 32]);
    let (near, far) = shake(&stranger, replica().public_key(), settings(), settings()).await;
    assert!(matches!(far, Err(LinkError::WrongKey(peer)) if peer == client().peer()));
    assert!(near.is_err());
    let unknown = Identity::new(PeerId::Replica(ReplicaId(1)), [1; 32]);
    let (near, far) = shake(&unknown, replica().public_key(), settings(), settings()).await;
    assert!(matches!(far, Err(LinkError::UnknownPeer(PeerId::Replica(ReplicaId(1))))));
    assert!(near.is_err());
}

#[tokio::test]
async fn a_responder_with_another_key_is_refused() {
    let other = Identity::new(replica().peer(), [8; 32]).public_key();
    let (near, far) = shake(&client(), other, settings(), settings()).await;
    assert!(near.is_err());
    assert!(matches!(far, Err(LinkError::Handshake)));
}

#[tokio::test]
async fn groups_do_not_connect() {
    let elsewhere = Settings { group: GroupId([4; 16]), ..settings() };
    let (near, far) = shake(&client(), replica().public_key(), elsewhere, settings()).await;
    assert!(near.is_err());
    assert!(matches!(far, Err(LinkError::Handshake)));
}

#[tokio::test]
async fn garbage_and_silence_end_in_an_error_in_bounded_time() {
    for garbage in [
        &[][..],
        &[WIRE_VERSION],
        &[WIRE_VERSION, 255, 255],
        &[WIRE_VERSION, 0, 0],
        &[WIRE_VERSION, 96, 0],
        &[WIRE_VERSION; 300],
        &[0; 300],
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let (mut near, far) = sockets().await;
        near.write_all(garbage).await.unwrap();
        let started = Instant::now();
        let answer = accept(far, &replica(), &settings(), directory).await;
        assert!(answer.is_err(), "{garbage:?}");
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn another_version_is_named() {
    let (mut near, far) = sockets().await;
    near.write_all(&[9, 0, 0]).await.unwrap();
    assert!(matches!(accept(far, &replica(), &settings(), directory).await, Err(LinkError::Version(9))));
}

#[tokio::test]
async fn a_silent_responder_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = connect(address, &client(), &replica().public_key(), &settings()).await;
    assert!(matches!(answer, Err(LinkError::TimedOut)));
}

#[tokio::test]
async fn a_replayed_first_message_does_not_connect() {
    // Records the first message of a good handshake on its way through.
    let (near, mut middle) = sockets().await;
    let connecting =
        tokio::spawn(
            async move { crate::initiate(near, &client(), &replica().public_key(), &settings()).await },
        );
    let mut first = vec![0; 3];
    middle.read_exact(&mut first).await.unwrap();
    let mut body = vec![0; usize::from(u16::from_le_bytes([first[1], first[2]]))];
    middle.read_exact(&mut body).await.unwrap();
    first.extend(body);
    let (mut replayer, far) = sockets().await;
    replayer.write_all(&first).await.unwrap();
    replayer.write_all(&[16, 0]).await.unwrap();
    replayer.write_all(&[0; 16]).await.unwrap();
    assert!(matches!(accept(far, &replica(), &settings(), directory).await, Err(LinkError::Handshake)));
    drop(middle);
    assert!(connecting.await.unwrap().is_err());
}

#[tokio::test]
async fn both_ends_notice_a_peer_that_is_gone() {
    let ((near, _), (far, _)) = link_with(settings()).await;
    for end in [near.socket(), far.socket()] {
        let socket = socket2::SockRef::from(end);
        assert!(socket.keepalive().unwrap());
        assert!(socket.tcp_keepalive_time().unwrap() < GIVE_UP_AFTER);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(GIVE_UP_AFTER));
        assert!(socket.tcp_nodelay().unwrap());
    }
}

#[test]
fn public_keys_are_the_curve_s_and_fresh_secrets_differ() {
    // RFC 7748, §6.1: Alice's key pair.
    let secret = [
        0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2, 0x66, 0x45, 0xdf,
        0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9, 0x2c, 0x2a,
    ];
    let public = [
        0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d, 0xdc, 0xb4, 0x3e, 0xf7, 0x5a, 0x0d,
        0xbf, 0x3a, 0x0d, 0x26, 0x38, 0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b, 0x4e, 0x6a,
    ];
    assert_eq!(Identity::new(client().peer(), secret).public_key(), LinkKey(public));
    let identity = Identity::new(PeerId::Client(ClientId(0)), generate_secret().unwrap());
    assert_ne!(identity.public_key(), LinkKey([0; 32]));
    assert_ne!(generate_secret().unwrap(), generate_secret().unwrap());
}

#[test]
fn names_of_peers_have_one_encoding() {
    for peer in [PeerId::Replica(ReplicaId(300)), PeerId::Client(ClientId(1 << 40))] {
        assert_eq!(PeerId::from_wire(&peer.to_wire()), Ok(peer));
    }
    assert!(PeerId::from_wire(&bytes::Bytes::from_static(&[2, 0, 0])).is_err());
}

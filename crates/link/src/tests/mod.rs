//! Connections on the loopback interface.

mod handshake;
mod messages;
mod records;
mod versions;

use crate::{Identity, LinkError, LinkKey, LinkReader, LinkWriter, PeerId, Settings, accept, initiate};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use troth_types::{ClientId, GroupId, ReplicaId};

type Ends =
    (Result<(LinkReader, LinkWriter), LinkError>, Result<(PeerId, LinkReader, LinkWriter), LinkError>);

fn settings() -> Settings {
    Settings { handshake_timeout: Duration::from_millis(500), ..Settings::new(GroupId([3; 16])) }
}

fn client() -> Identity {
    Identity::new(PeerId::Client(ClientId(7)), [1; 32])
}

fn replica() -> Identity {
    Identity::new(PeerId::Replica(ReplicaId(2)), [2; 32])
}

fn directory(peer: PeerId) -> Option<LinkKey> {
    (peer == client().peer()).then(|| client().public_key())
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let caller = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (caller, listener.accept().await.unwrap().0)
}

/// As [`sockets`], with so many bytes of the kernel's on either side, about.
async fn narrow_sockets(bytes: u32) -> (TcpStream, TcpStream) {
    let listening = TcpSocket::new_v4().unwrap();
    listening.set_recv_buffer_size(bytes).unwrap();
    listening.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listening.listen(1).unwrap();
    let calling = TcpSocket::new_v4().unwrap();
    calling.set_send_buffer_size(bytes).unwrap();
    let caller = calling.connect(listener.local_addr().unwrap()).await.unwrap();
    (caller, listener.accept().await.unwrap().0)
}

/// A handshake between a caller and `replica()`, each with its own idea of the settings.
async fn shake(caller: &Identity, expects: LinkKey, theirs: Settings, ours: Settings) -> Ends {
    let (near, far) = sockets().await;
    let answering = replica();
    tokio::join!(initiate(near, caller, &expects, &theirs), accept(far, &answering, &ours, directory))
}

/// Two ends of a good connection: the client's and the replica's.
async fn link_with(settings: Settings) -> ((LinkReader, LinkWriter), (LinkReader, LinkWriter)) {
    let (near, far) = shake(&client(), replica().public_key(), settings, settings).await;
    let (peer, reader, writer) = far.unwrap();
    assert_eq!(peer, client().peer());
    (near.unwrap(), (reader, writer))
}

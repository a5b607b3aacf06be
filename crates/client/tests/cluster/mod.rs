//! Fake replicas: one shared service that executes each frame once, and per replica a server that
//! answers from it, honestly or not.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use troth_auth::{Directory, Ed25519, Ed25519Signer, FrameVerifier, Signer};
use troth_client::front::{ClientConfig, ReplicaAddress};
use troth_link::{Identity, LinkReader, LinkWriter, PeerId, Settings};
use troth_types::{
    ClientId, Event, Group, GroupId, Limits, ReadReply, ReplicaId, Reply, ReplyBody, Seq, ToClient,
    ToReplica, View, Wire, Wish,
};

const CLIENT: ClientId = ClientId(5);

/// How a fake replica treats its client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Honest,
    /// False results, events and views.
    Lying,
    /// Connects and never says anything.
    Silent,
    /// Does not listen.
    Dead,
}

/// The ordered service: `add x` answers the length of the list, `list` the list, `tell x` causes
/// an event.
#[derive(Default)]
struct Service {
    list: Vec<String>,
    events: Vec<Event>,
    /// Outcome of every frame by number: results and the events there were then.
    done: BTreeMap<u64, (Seq, Vec<Bytes>, u64)>,
}

impl Service {
    fn apply(&mut self, seq: Seq, operation: &[u8]) -> Bytes {
        let operation = String::from_utf8(operation.to_vec()).unwrap();
        match operation.split_once(' ') {
            Some(("add", item)) => {
                self.list.push(item.to_owned());
                self.list.len().to_string().into()
            }
            Some(("tell", payload)) => {
                let index = self.events.len() as u64 + 1;
                let payload = Bytes::copy_from_slice(payload.as_bytes());
                self.events.push(Event { client: CLIENT, index, seq, payload });
                Bytes::new()
            }
            _ => self.list.join(",").into(),
        }
    }

    fn order(&mut self, number: u64, operations: &[Bytes]) -> (Seq, Vec<Bytes>, u64) {
        if let Some(done) = self.done.get(&number) {
            return done.clone();
        }
        let seq = Seq(self.done.len() as u64 + 1);
        let results = operations.iter().map(|operation| self.apply(seq, operation)).collect();
        let done = (seq, results, self.events.len() as u64);
        self.done.insert(number, done.clone());
        done
    }
}

struct Replica {
    address: SocketAddr,
    identity: Identity,
    serving: Option<JoinHandle<()>>,
}

pub struct Cluster {
    group: Group,
    service: Arc<Mutex<Service>>,
    replicas: Vec<Replica>,
}

impl Cluster {
    pub async fn start(behaviours: &[Behaviour]) -> Self {
        let group = Group::hybrid(GroupId([6; 16]), u16::try_from(behaviours.len()).unwrap()).unwrap();
        let mut cluster = Self { group, service: Arc::default(), replicas: Vec::new() };
        for (replica, behaviour) in group.all().zip(behaviours) {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let secret = [10 + u8::try_from(replica.0).unwrap(); 32];
            let identity = Identity::new(PeerId::Replica(replica), secret);
            let mut member = Replica { address, identity, serving: None };
            if *behaviour != Behaviour::Dead {
                member.serving = Some(cluster.serve(replica, &member.identity, listener, *behaviour));
            }
            cluster.replicas.push(member);
        }
        cluster
    }

    fn serve(
        &self,
        replica: ReplicaId,
        identity: &Identity,
        listener: TcpListener,
        behaviour: Behaviour,
    ) -> JoinHandle<()> {
        let (group, service, identity) = (self.group, Arc::clone(&self.service), identity.clone());
        tokio::spawn(async move {
            let mut sessions = JoinSet::new();
            let client_key = Identity::new(PeerId::Client(CLIENT), [1; 32]).public_key();
            while let Ok((stream, _)) = listener.accept().await {
                let accepted = troth_link::accept(stream, &identity, &Settings::new(group.id()), |peer| {
                    (peer == PeerId::Client(CLIENT)).then_some(client_key)
                })
                .await;
                if let Ok((_, reader, writer)) = accepted {
                    sessions.spawn(session(group, replica, behaviour, Arc::clone(&service), reader, writer));
                }
            }
        })
    }

    /// Ends a replica and its connections.
    pub fn stop(&mut self, replica: usize) {
        if let Some(serving) = self.replicas[replica].serving.take() {
            serving.abort();
        }
    }

    /// Starts a dead replica where the clients look for it.
    pub async fn revive(&mut self, replica: usize) {
        let listener = TcpListener::bind(self.replicas[replica].address).await.unwrap();
        let id = ReplicaId(u16::try_from(replica).unwrap());
        let serving = self.serve(id, &self.replicas[replica].identity, listener, Behaviour::Honest);
        self.replicas[replica].serving = Some(serving);
    }

    pub fn config(&self) -> ClientConfig {
        let replicas = self
            .replicas
            .iter()
            .map(|replica| ReplicaAddress {
                address: replica.address.to_string(),
                key: replica.identity.public_key(),
            })
            .collect();
        ClientConfig::new(CLIENT, self.group, [2; 32], [1; 32], replicas)
    }

    /// Frames executed.
    pub fn frames(&self) -> usize {
        self.service.lock().unwrap().done.len()
    }
}

async fn session(
    group: Group,
    replica: ReplicaId,
    behaviour: Behaviour,
    service: Arc<Mutex<Service>>,
    mut reader: LinkReader,
    mut writer: LinkWriter,
) {
    let key = Ed25519Signer::from_seed([2; 32]).public_key();
    let directory = Directory::of_clients(group.id(), [(CLIENT, key)]);
    let verifier = FrameVerifier::new(Arc::new(directory), Arc::new(Ed25519), Limits::DEFAULT);
    let mut told = 0;
    while let Ok(Some(bytes)) = reader.next().await {
        let answers = {
            let mut service = service.lock().unwrap();
            let message = ToReplica::from_wire(&bytes).unwrap();
            if let ToReplica::Request { frame, .. } = &message {
                verifier.verify(Arc::clone(frame)).unwrap();
            }
            answer(&mut service, group, replica, &mut told, message)
        };
        for answer in answers {
            let answer = if behaviour == Behaviour::Lying { lie(answer) } else { answer };
            writer.queue_value(&answer).unwrap();
        }
        if behaviour != Behaviour::Silent && writer.flush().await.is_err() {
            return;
        }
    }
}

fn answer(
    service: &mut Service,
    group: Group,
    replica: ReplicaId,
    told: &mut u64,
    message: ToReplica,
) -> Vec<ToClient> {
    let shape = |number, full, results: Vec<Bytes>| {
        if full || group.designated(CLIENT, number) == replica {
            ReplyBody::Full(results)
        } else {
            ReplyBody::Digest(Reply::results_digest(&results))
        }
    };
    match message {
        ToReplica::Request { frame, wish } => {
            let (number, full) = (frame.number(), wish == Wish::Full);
            let (seq, results, events_up_to) = service.order(number, &frame.draft().operations);
            let from = if full { frame.events_seen() } else { *told };
            let mut answers: Vec<_> = service
                .events
                .iter()
                .filter(|event| event.index > from)
                .cloned()
                .map(ToClient::Event)
                .collect();
            *told = service.events.len() as u64;
            let body = shape(number, full, results);
            answers.push(ToClient::Reply(Reply {
                client: CLIENT,
                number,
                seq,
                view: View(1),
                events_up_to,
                body,
            }));
            answers
        }
        ToReplica::Read(read) => {
            let body = shape(read.number, false, vec![service.apply(Seq(0), &read.operation)]);
            let events_up_to = service.events.len() as u64;
            vec![ToClient::ReadReply(ReadReply { client: CLIENT, number: read.number, events_up_to, body })]
        }
    }
}

fn lie(truth: ToClient) -> ToClient {
    let false_body = ReplyBody::Full(vec![Bytes::from_static(b"a lie")]);
    match truth {
        ToClient::Reply(reply) => ToClient::Reply(Reply { view: View(1 << 40), body: false_body, ..reply }),
        ToClient::ReadReply(reply) => ToClient::ReadReply(ReadReply { body: false_body, ..reply }),
        ToClient::Event(event) => ToClient::Event(Event { payload: Bytes::from_static(b"a lie"), ..event }),
        ToClient::Attested(_) | ToClient::AttestedRead(_) => unreachable!("these replicas prove nothing"),
        ToClient::Refusal(refusal) => ToClient::Refusal(refusal),
        ToClient::Tentative(_) => unreachable!("nothing is tentative here"),
    }
}

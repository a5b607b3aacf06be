//! What an operator believes of a replica that serves a backup, and what a state's file withstands.

use super::config::{Scratch, plan};
use crate::assembly::{engine, executor};
use crate::backup::serve::give;
use crate::backup::wire::Offer;
use crate::backup::{BackupError, Source, file};
use crate::clock::Clock;
use crate::config::{Cluster, Layout, ReplicaSecret, TrustedKind, make};
use crate::delayed::TrustedDelay;
use crate::durable::Footing;
use crate::engine::Engine;
use crate::inbox::{Inbox, Party};
use bytes::Bytes;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use troth_auth::{Seal, Ui};
use troth_core::{Agreement, PeerMessage};
use troth_exec::{MerkleMap, Snapshot};
use troth_kv::Null;
use troth_minbft::{Body, COUNTER, Certified, Checkpoint, Message, MinBft, StableProof, place::Place};
use troth_trusted::{CounterValue, Epoch, TrustedCore, VolatileStore};
use troth_types::{Change, Configuration, Digest, ReplicaId, Seq, Time, View, Wire};

const SEQ: Seq = Seq(64);

/// A state of so many entries, some of them large.
fn state(entries: u16) -> Snapshot {
    let mut map = MerkleMap::new();
    for number in 0..entries {
        let length = if number % 10 == 0 { 2_000 } else { 20 };
        // Distinct, so that no part stands in a file twice.
        let value: Vec<u8> = number.to_be_bytes().into_iter().cycle().take(length).collect();
        map.insert(&[&[1, b'k'], &number.to_be_bytes()[..]].concat(), Bytes::from(value));
    }
    Snapshot::of(SEQ, Time(5), map.tree_now())
}

struct Group {
    _scratch: Scratch,
    cluster: Cluster,
    configuration: Arc<Configuration>,
    secrets: Vec<ReplicaSecret>,
}

fn group(name: &str, trusted: TrustedKind) -> Group {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(trusted)).expect("a fresh directory");
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let load = |id| ReplicaSecret::load(&layout.replica_secret(id), &cluster).expect("just made");
    let secrets = cluster.group.all().map(load).collect();
    Group { _scratch: scratch, configuration: cluster.configuration(), cluster, secrets }
}

impl Group {
    /// Replaces a replica's component: the group knows it by the same key, and by the next epoch.
    fn readmit(&mut self, replica: ReplicaId, at: Seq) {
        let component = self.configuration.member(replica).expect("one of the group").admission().component;
        let change = Change::Admit { replica, epoch: 2, component, host: None };
        let mut next = (*self.configuration).clone();
        next.apply(&change, at, 0, 1).expect("nothing settles");
        self.configuration = Arc::new(next);
    }

    /// The CHECKPOINTs of some replicas, each certified by its first component.
    fn proof(&self, voters: &[u16], digest: Digest) -> StableProof {
        let votes: Vec<_> = voters.iter().map(|voter| (*voter, 1)).collect();
        self.proof_naming(&votes, digest, Vec::new())
    }

    /// The CHECKPOINTs of the components of these epochs of some replicas, naming these epochs.
    fn proof_naming(
        &self,
        voters: &[(u16, u64)],
        digest: Digest,
        epochs: Vec<(ReplicaId, u64)>,
    ) -> StableProof {
        let votes = voters.iter().map(|(voter, epoch)| {
            let me = ReplicaId(*voter);
            let secret = &self.secrets[usize::from(*voter)];
            let body =
                Body::Checkpoint(Checkpoint { seq: SEQ, digest, epochs: epochs.clone(), given: false });
            let covered = MinBft::digest(&body, self.cluster.group.id(), me);
            let key = secret.trusted.clone().expect("it lives in this process");
            let mut component =
                TrustedCore::start(self.cluster.identity(me, Epoch(*epoch)), key, VolatileStore);
            let new = Place::of_checkpoint(View(0), SEQ).expect("a checkpoint has a place");
            let certificate =
                component.attest(COUNTER, CounterValue(0), new, &covered.0).expect("it was just started");
            match MinBft::seal(body, covered, me, Seal::Ui(Ui { certificate, run: None })) {
                Message::Certified(vote) => vote,
                other => panic!("a CHECKPOINT is certified: {other:?}"),
            }
        });
        StableProof { votes: votes.collect() }
    }

    /// Asks a replica that shows this proof and serves this state.
    fn ask(&self, proof: StableProof, serves: &Snapshot) -> Result<Snapshot, BackupError> {
        let (theirs, ours) = UnixStream::pair().expect("a pair of sockets");
        let offer = Offer { executed: Seq(70), proof: Message::Stable(Arc::new(proof)) };
        let serves = serves.clone();
        let replica = thread::spawn(move || give(theirs, offer, &serves));
        let got = Source::over(ours, &self.cluster, &self.configuration, self.secrets[0].mac.as_ref())
            .and_then(|mut source| {
                assert_eq!((source.seq, source.executed), (SEQ, Seq(70)));
                source.fetch(|_| {})
            });
        drop(replica.join().expect("the replica does not panic"));
        got
    }
}

#[test]
fn who_only_looks_whether_somebody_listens_is_no_backup_that_failed() {
    let group = group("backup-look", TrustedKind::Ed25519);
    let state = state(10);
    let (theirs, ours) = UnixStream::pair().expect("a pair of sockets");
    drop(ours);
    let proof = group.proof(&[0, 2], state.digest());
    let offer = Offer { executed: Seq(70), proof: Message::Stable(Arc::new(proof)) };
    assert_eq!(give(theirs, offer, &state).expect("nothing went wrong"), 0);
}

#[test]
fn what_a_quorum_certified_is_fetched_whole() {
    for trusted in [TrustedKind::Hmac, TrustedKind::Ed25519] {
        let group = group(&format!("backup-{}", trusted.name()), trusted);
        for entries in [0, 1, 3_000] {
            let state = state(entries);
            let got = group.ask(group.proof(&[0, 2], state.digest()), &state).expect("it is certified");
            assert_eq!(got, state);
            assert_eq!(got.entries(), u64::from(entries));
        }
    }
}

#[test]
fn what_too_few_replicas_certified_is_refused() {
    let group = group("backup-few", TrustedKind::Ed25519);
    let state = state(10);
    let uncertified = |proof: StableProof| match group.ask(proof, &state) {
        Err(BackupError::Uncertified(why)) => why,
        other => panic!("it is believed, or refused for another reason: {other:?}"),
    };
    assert!(uncertified(StableProof::default()).contains("nobody vouches"));
    assert!(uncertified(group.proof(&[1], state.digest())).contains("below quorum"));
    assert!(uncertified(group.proof(&[1, 1, 1], state.digest())).contains("below quorum"));
    let mut mixed = group.proof(&[0], state.digest());
    mixed.votes.extend(group.proof(&[1], Digest([9; 32])).votes);
    assert!(uncertified(mixed).contains("differ"));
}

#[test]
fn a_readmitted_component_vouches_and_the_one_that_it_replaced_does_not() {
    for trusted in [TrustedKind::Hmac, TrustedKind::Ed25519] {
        let mut group = group(&format!("backup-readmitted-{}", trusted.name()), trusted);
        let state = state(10);
        let new = group.proof_naming(&[(0, 1), (1, 2)], state.digest(), vec![(ReplicaId(1), 2)]);
        // Whoever does not know of the readmission has no key of the component.
        let got = group.ask(new.clone(), &state);
        assert!(matches!(got, Err(BackupError::Uncertified(_))), "{got:?}");

        group.readmit(ReplicaId(1), Seq(10));
        assert_eq!(group.ask(new, &state).expect("the components of now"), state);
        // The replaced one may be in anybody's hands, and one faulty replica helps it.
        let old = group.proof_naming(&[(0, 1), (1, 1)], state.digest(), Vec::new());
        assert!(
            matches!(group.ask(old, &state), Err(BackupError::Uncertified(why)) if why.contains("replaced"))
        );
        let mixed = group.proof_naming(&[(0, 1), (1, 1)], state.digest(), vec![(ReplicaId(1), 2)]);
        assert!(matches!(group.ask(mixed, &state), Err(BackupError::Uncertified(_))));
        // One that names both, so that each reader may find what it looks for.
        let both = vec![(ReplicaId(1), 1), (ReplicaId(1), 2)];
        let both = group.proof_naming(&[(0, 1), (1, 1)], state.digest(), both);
        assert!(group.ask(both, &state).is_err());
    }
}

#[test]
fn a_checkpoint_from_before_a_readmission_is_waited_out() {
    let mut group = group("backup-before", TrustedKind::Ed25519);
    group.readmit(ReplicaId(1), SEQ.next());
    let state = state(10);
    // The replaced component may certify anything for numbers below its end even now.
    let got = group.ask(group.proof(&[0, 1], state.digest()), &state);
    assert!(
        matches!(&got, Err(BackupError::Refused(why)) if why.contains("before a replica was readmitted")),
        "{got:?}"
    );
}

#[test]
fn a_certificate_that_is_not_its_senders_is_refused() {
    for trusted in [TrustedKind::Hmac, TrustedKind::Ed25519] {
        let group = group(&format!("backup-forged-{}", trusted.name()), trusted);
        let state = state(10);
        // One replica's own certificate and, in another's name, one that its component never gave.
        let mut proof = group.proof(&[0, 1], state.digest());
        let other = group.proof(&[0, 1], Digest([9; 32]));
        let mut forged = (*proof.votes[1]).clone();
        forged.ui = other.votes[1].ui.clone();
        proof.votes[1] = Arc::new(forged);
        let got = group.ask(proof, &state);
        assert!(matches!(got, Err(BackupError::Uncertified(_))), "{got:?}");
    }
}

#[test]
fn in_a_batch_of_checks_a_forged_certificate_is_refused_each_time_and_the_others_are_not() {
    let mut group = group("turn-forged", TrustedKind::Ed25519);
    let [good, other] =
        [Digest([1; 32]), Digest([2; 32])].map(|digest| group.proof(&[1], digest).votes[0].clone());
    let forged = Arc::new(Certified { ui: other.ui.clone(), ..(*good).clone() });
    let (cluster, secret) = (group.cluster.clone(), group.secrets.swap_remove(0));
    let executor = executor(&cluster, Null::new(0));
    let mut engine: Engine<MinBft, _> =
        engine(&cluster, secret, executor, Clock::new(), Footing::Volatile(TrustedDelay::default()))
            .expect("a fresh replica starts");
    let inbox = Inbox::new();
    let lane = inbox.lane(Party::Replica(ReplicaId(1)));
    for round in 1..=3 {
        for message in [&forged, &good] {
            inbox.push(&lane, PeerMessage::Protocol(Message::Certified(Arc::clone(message))).to_wire());
        }
        engine.turn(&inbox).expect("goes on");
        assert_eq!((engine.counters.messages_verified, engine.counters.messages_refused), (round, round));
    }
}

#[test]
fn a_state_that_is_not_the_certified_one_is_refused() {
    let group = group("backup-another", TrustedKind::Hmac);
    let (certified, served) = (state(300), state(299));
    // It does not even answer, as nobody may ask it for another state than the one it holds.
    let got = group.ask(group.proof(&[0, 1], certified.digest()), &served);
    assert!(matches!(got, Err(BackupError::Lost(_) | BackupError::Foreign(_))), "{got:?}");
}

fn damaged(path: &Path, bytes: &[u8]) -> bool {
    std::fs::write(path, bytes).expect("our own directory");
    let read = file::read(path);
    matches!(read, Err(BackupError::Damaged { .. } | BackupError::Version { .. }))
        || matches!(read, Ok(other) if other.digest() != state(30).digest())
}

#[test]
fn a_states_file_that_is_not_what_was_written_is_never_taken_for_it() {
    let scratch = Scratch::new("state-file");
    std::fs::create_dir_all(&scratch.0).expect("a fresh directory");
    let path = scratch.0.join("state");
    let state = state(30);
    let length = file::write(&path, &state).expect("a fresh file");
    let whole = std::fs::read(&path).expect("just written");
    assert_eq!(length, whole.len() as u64);
    assert_eq!(file::read(&path).expect("it is whole"), state);
    assert!(matches!(file::write(&path, &state), Err(BackupError::File { .. })), "it overwrites nothing");
    let steps = whole.len().min(1_500);
    for at in (0..steps).chain((steps..whole.len()).step_by(37)).chain(whole.len() - 60..whole.len()) {
        assert!(damaged(&path, &whole[..at]), "cut at {at}");
        for bit in [1, 0x80] {
            let mut flipped = whole.clone();
            flipped[at] ^= bit;
            assert!(damaged(&path, &flipped), "bit {bit} of byte {at}");
        }
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(damaged(&path, &longer), "something behind its end");
}

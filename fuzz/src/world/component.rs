//! The trusted component of a replica, correct or not: its counters and its logs.

use bytes::Bytes;
use troth_core::{Machine, settle_slots};
use troth_trusted::a2m::{
    A2m, Answer as LogAnswer, Attestation, Content, LOGS, LogId, LogRefusal, Nonce, Operation, Slot,
    slot_nonce,
};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, Resumed, TrustedCore, VolatileStore,
};
use troth_trusted_host::{
    Answer, Call, GroupVerifier, InProcess, InProcessLogs, MemberKey, TrustedComponent as _,
    TrustedLogs as _, log_room,
};
use troth_types::{Group, GroupId, ReplicaId};

fn key() -> MacKey {
    MacKey::new(&[9; 32])
}

fn identity(group: &Group, replica: ReplicaId) -> Identity {
    Identity { group: group.id().0, replica: replica.0, epoch: Epoch(1) }
}

/// Who checks the components of a group.
pub(super) fn verifier(group: &Group) -> GroupVerifier {
    let members = group.all().map(|replica| (identity(group, replica), MemberKey::Mac(key().verifier())));
    GroupVerifier::new(members).expect("named once")
}

/// A component.
pub(super) struct Component {
    counters: InProcess<VolatileStore>,
    logs: InProcessLogs<VolatileStore>,
}

impl Component {
    /// A replica's, with room for so many entries in each log.
    pub(super) fn new(group: &Group, replica: ReplicaId, room: Option<[usize; LOGS]>) -> Self {
        let identity = identity(group, replica);
        let room = log_room(room.unwrap_or([0; LOGS]));
        Self {
            counters: InProcess::new(TrustedCore::start(identity, Certifier::Mac(key()), VolatileStore)),
            logs: InProcessLogs::new(A2m::start(identity, Certifier::Mac(key()), VolatileStore, room)),
        }
    }

    /// Does what it is asked with its counters.
    pub(super) fn call(&mut self, call: Call) -> Answer {
        self.counters.call(&[call]).pop().expect("one answer")
    }

    /// What it certified last with a counter.
    pub(super) fn resume(&mut self, counter: CounterId) -> Resumed {
        match self.call(Call::Resume { counter }) {
            Answer::Resumed(resumed) => *resumed,
            other => panic!("the component answers: {other:?}"),
        }
    }

    /// Where a counter stands.
    pub(super) fn counter(&mut self, counter: CounterId) -> CounterValue {
        match self.call(Call::Read { counter }) {
            Answer::Value(value) => value,
            other => panic!("the component answers: {other:?}"),
        }
    }

    /// Does what it is asked with its logs.
    pub(super) fn logs(&mut self, operations: &[Operation]) -> Result<Vec<LogAnswer>, LogRefusal> {
        self.logs.call(operations)
    }

    /// Settles what became of the slots that bodies in a log were to fill.
    pub(super) fn settle<M: Machine>(
        &mut self,
        log: &[Bytes],
        me: ReplicaId,
        group: GroupId,
    ) -> Result<Vec<Attestation>, String> {
        settle_slots::<M>(log, me, group, |operations| self.logs.call(operations))
            .map_err(|why| format!("{why:?}"))
    }

    /// The attestation that one operation gives; nothing where it is refused.
    fn one(&mut self, operation: Operation) -> Option<Attestation> {
        match self.logs.call(&[operation]).ok()?.pop() {
            Some(LogAnswer::Attested(attestation)) => Some(attestation),
            Some(LogAnswer::Done) | None => None,
        }
    }

    /// What a log says of a slot.
    pub(super) fn look_up(&mut self, log: LogId, slot: Slot, nonce: Nonce) -> Option<Attestation> {
        self.one(Operation::Lookup { log, slot, nonce })
    }

    /// What fills a slot of a log, if anything does.
    pub(super) fn value(&mut self, log: LogId, slot: Slot) -> Option<[u8; 32]> {
        match self.look_up(log, slot, slot_nonce(slot))?.claim.content {
            Content::Assigned { value, .. } => Some(value),
            Content::Skipped { .. } | Content::Unassigned { .. } | Content::Forgotten { .. } => None,
        }
    }

    /// Has a slot filled, and those before it skipped.
    pub(super) fn advance(&mut self, log: LogId, slot: Slot, value: [u8; 32]) -> Option<Attestation> {
        self.one(Operation::Advance { log, slot, previous: [0; 32], value, nonce: Some(slot_nonce(slot)) })
    }

    /// Has the next slot filled.
    pub(super) fn append(&mut self, log: LogId, slot: Slot, value: [u8; 32]) -> Option<Attestation> {
        self.one(Operation::Append { log, slot, value, nonce: Some(slot_nonce(slot)) })
    }
}

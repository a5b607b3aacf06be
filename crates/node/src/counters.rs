//! Plain counters of one replica's loop: added to without locks, read when somebody asks.

use serde::Serialize;

/// What happened since the replica started. All are counts except where the name says bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Turns of the loop that had something to do.
    pub turns: u64,
    /// Inputs given to the machine.
    pub inputs: u64,
    /// Read system calls on connections.
    pub reads: u64,
    /// Write system calls on connections.
    pub writes: u64,
    /// Bytes read from connections, as on the wire.
    pub bytes_in: u64,
    /// Bytes written to connections, as on the wire.
    pub bytes_out: u64,
    /// Records of connections opened, each with one authenticator.
    pub opened: u64,
    /// Records of connections sealed, each with one authenticator.
    pub sealed: u64,
    /// Messages received from replicas.
    pub peer_messages_in: u64,
    /// Messages queued for replicas, per receiver.
    pub peer_messages_out: u64,
    /// Messages received from clients.
    pub client_messages_in: u64,
    /// Messages queued for clients.
    pub client_messages_out: u64,
    /// Frames whose signature was checked and good.
    pub frames_verified: u64,
    /// Frames refused: over a limit, unknown client or bad signature.
    pub frames_refused: u64,
    /// Frames that replicas showed and whose tag for this one was wrong (`auth = "mac"`).
    pub frames_doubtful: u64,
    /// Replicas' messages that were checked and good.
    pub messages_verified: u64,
    /// Replicas' messages that did not verify.
    pub messages_refused: u64,
    /// Replicas' messages that could bring nothing, which was seen before anything in them was checked.
    pub messages_passed_over: u64,
    /// Messages that did not decode, or that their connection may not carry.
    pub malformed: u64,
    /// Messages of replicas of a kind that this release does not know: ignored.
    pub unknown: u64,
    /// Messages to replicas dropped: not connected, or the queue was full.
    pub peer_dropped: u64,
    /// Messages to clients dropped: not connected, or the queue was full.
    pub client_dropped: u64,
    /// Syncs of the log that were waited for.
    pub syncs: u64,
    /// Calls to the trusted component.
    pub attestations: u64,
    /// Inputs that the protocol ignored.
    pub ignored: u64,
    /// Local judgements against replicas.
    pub suspected: u64,
    /// Proofs against replicas.
    pub accused: u64,
    /// Times that a client was seen to have signed two frames under one number.
    #[serde(default)]
    pub accused_clients: u64,
    /// Views that this replica abandoned.
    pub view_changes: u64,
    /// Stable checkpoints.
    pub stable_checkpoints: u64,
    /// State transfers finished.
    pub transfers: u64,
    /// Times that its own state was found to differ from what the group agreed on.
    pub divergences: u64,
    /// Connections that were refused: unknown key, failed handshake or too many at once.
    pub connections_refused: u64,
    /// Microseconds of work that replicas' messages caused and that was of no use.
    pub peer_useless_micros: u64,
    /// Times that a replica was not read from for a while, because its messages were of no use.
    pub peer_rests: u64,
    /// Times that a client was not read from for a while: it had had its share, or sent what is of no use.
    pub client_rests: u64,
    /// Questions of replicas for state and frames that found no place.
    pub fetches_dropped: u64,
}

impl Counters {
    /// Every counter with its name and meaning, in the order above.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &'static str, u64); 37] {
        [
            ("turns", "Turns of the loop that had something to do", self.turns),
            ("inputs", "Inputs given to the machine", self.inputs),
            ("reads", "Read system calls on connections", self.reads),
            ("writes", "Write system calls on connections", self.writes),
            ("read_bytes", "Bytes read from connections", self.bytes_in),
            ("written_bytes", "Bytes written to connections", self.bytes_out),
            ("opened_records", "Records of connections opened", self.opened),
            ("sealed_records", "Records of connections sealed", self.sealed),
            ("peer_messages_received", "Messages received from replicas", self.peer_messages_in),
            ("peer_messages_sent", "Messages queued for replicas", self.peer_messages_out),
            ("client_messages_received", "Messages received from clients", self.client_messages_in),
            ("client_messages_sent", "Messages queued for clients", self.client_messages_out),
            ("frames_verified", "Frames with a good signature", self.frames_verified),
            ("frames_refused", "Frames refused", self.frames_refused),
            (
                "frames_doubtful",
                "Frames of other replicas with a wrong tag for this one",
                self.frames_doubtful,
            ),
            ("messages_verified", "Messages of replicas that verified", self.messages_verified),
            ("messages_refused", "Messages of replicas that did not verify", self.messages_refused),
            (
                "messages_passed_over",
                "Messages of replicas that could bring nothing, unchecked",
                self.messages_passed_over,
            ),
            ("malformed", "Messages that did not decode or were out of place", self.malformed),
            (
                "unknown_messages",
                "Messages of replicas of a kind that this release does not know",
                self.unknown,
            ),
            ("peer_messages_dropped", "Messages to replicas dropped", self.peer_dropped),
            ("client_messages_dropped", "Messages to clients dropped", self.client_dropped),
            ("syncs", "Syncs of the log that were waited for", self.syncs),
            ("attestations", "Calls to the trusted component", self.attestations),
            ("ignored", "Inputs that the protocol ignored", self.ignored),
            ("suspected", "Local judgements against replicas", self.suspected),
            ("accusations", "Proofs against replicas", self.accused),
            (
                "client_accusations",
                "Times that a client had signed two frames under one number",
                self.accused_clients,
            ),
            ("view_changes", "Views that this replica abandoned", self.view_changes),
            ("stable_checkpoints", "Stable checkpoints", self.stable_checkpoints),
            ("transfers", "State transfers finished", self.transfers),
            ("divergences", "Times that its own state differed from the stable one", self.divergences),
            ("connections_refused", "Connections refused", self.connections_refused),
            (
                "peer_useless_microseconds",
                "Time that useless messages of replicas took",
                self.peer_useless_micros,
            ),
            ("peer_rests", "Times that a replica was not read from for a while", self.peer_rests),
            ("client_rests", "Times that a client was not read from for a while", self.client_rests),
            ("fetches_dropped", "Questions of replicas that found no place", self.fetches_dropped),
        ]
    }
}

//! The engine: compare-and-set, made durable, then certified.

use crate::certificate::{self, Certificate, MultiCertificate};
use crate::key::Certifier;
use crate::state::{CounterState, Kept, State, Store, StoreFailed};
use crate::value::{COUNTERS, CounterId, CounterValue, Digest, Identity, Move, Moves};

/// Why the component did not do as it was asked. Its state is as before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no such counter.
    UnknownCounter(CounterId),
    /// The counter does not stand where the caller believes.
    Elsewhere {
        /// The counter.
        counter: CounterId,
        /// Where it stands.
        current: CounterValue,
    },
    /// The new value is not above the present one.
    NotAhead {
        /// The counter.
        counter: CounterId,
        /// Where it stands.
        current: CounterValue,
    },
    /// The moves are not two to eight, in ascending order of different counters.
    BadMoves,
    /// The store has no room for the move now. The same call may succeed later.
    NoSpace,
    /// A store failed earlier or now: what is durable is unknown, so nothing more is certified until
    /// the component starts again from its store.
    Halted,
}

/// The last thing a component certified for a counter.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "this crate does not allocate, and few are made")]
pub enum Resumed {
    /// The counter never moved.
    Unmoved,
    /// It moved alone.
    One {
        /// The certificate of its last move.
        certificate: Certificate,
        /// The digest it covers.
        digest: Digest,
    },
    /// It moved together with others, which have not moved since.
    Multi {
        /// The certificate of their last move.
        certificate: MultiCertificate,
        /// The digest it covers.
        digest: Digest,
    },
    /// It moved together with others, and one of those has moved since, so that the certificate can
    /// no longer be made. A caller that moves none of them before it holds the certificate never
    /// sees this.
    Superseded,
}

/// A state was offered to a component whose state it is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotOurState;

/// One trusted component: its counters, its key and the place where it keeps the counters.
#[derive(Clone, Debug)]
pub struct TrustedCore<S> {
    state: State,
    certifier: Certifier,
    store: S,
    halted: bool,
}

impl<S: Store> TrustedCore<S> {
    /// A component at the start of an epoch. Never start the same epoch twice.
    pub fn start(identity: Identity, certifier: Certifier, store: S) -> Self {
        Self { state: State::new(identity), certifier, store, halted: false }
    }

    /// A component that goes on from exactly the last state it stored.
    ///
    /// # Errors
    /// [`NotOurState`] if the state belongs to another group, replica or epoch.
    pub fn restart(
        identity: Identity,
        certifier: Certifier,
        store: S,
        state: State,
    ) -> Result<Self, NotOurState> {
        if state.identity != identity {
            return Err(NotOurState);
        }
        Ok(Self { state, certifier, store, halted: false })
    }

    /// Who this component is.
    pub fn identity(&self) -> Identity {
        self.state.identity
    }

    /// Ends this component and gives back its store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Where a counter stands.
    ///
    /// # Errors
    /// [`Refusal::UnknownCounter`], [`Refusal::Halted`].
    pub fn read(&self, counter: CounterId) -> Result<CounterValue, Refusal> {
        self.counter(counter).map(|c| c.value)
    }

    /// Moves one counter from exactly `previous` to `new` and certifies the move for `digest`. The
    /// move is durable before the certificate exists. The last call, repeated, gets the same
    /// certificate again, so a caller that lost the answer asks once more.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has moved.
    pub fn attest(
        &mut self,
        counter: CounterId,
        previous: CounterValue,
        new: CounterValue,
        digest: &Digest,
    ) -> Result<Certificate, Refusal> {
        let moved = Move { counter, previous, new };
        self.advance(&[moved], digest, None)?;
        Ok(self.certify(&moved, digest))
    }

    /// Moves one counter as [`TrustedCore::attest`] does and has `blob` kept beside the record of the
    /// move: after a crash both are there or neither. `None` where the store keeps no such blob now:
    /// nothing has moved. The last call repeated stores nothing, and so no blob either.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has moved.
    pub fn attest_beside(
        &mut self,
        counter: CounterId,
        previous: CounterValue,
        new: CounterValue,
        digest: &Digest,
        blob: &[u8],
    ) -> Result<Option<Certificate>, Refusal> {
        let moved = Move { counter, previous, new };
        let kept = self.advance(&[moved], digest, Some(blob))?;
        Ok((kept == Kept::Both).then(|| self.certify(&moved, digest)))
    }

    /// Moves several counters, all or none, and certifies all the moves for one `digest` in one
    /// certificate. Repeating the last call returns the same certificate.
    ///
    /// # Errors
    /// [`Refusal`]; nothing has moved.
    pub fn attest_multi(&mut self, moves: &Moves, digest: &Digest) -> Result<MultiCertificate, Refusal> {
        self.advance(moves.as_slice(), digest, None)?;
        Ok(self.certify_multi(moves, digest))
    }

    /// Moves several counters as [`TrustedCore::attest_multi`] does, with a blob as for
    /// [`TrustedCore::attest_beside`].
    ///
    /// # Errors
    /// [`Refusal`]; nothing has moved.
    pub fn attest_multi_beside(
        &mut self,
        moves: &Moves,
        digest: &Digest,
        blob: &[u8],
    ) -> Result<Option<MultiCertificate>, Refusal> {
        let kept = self.advance(moves.as_slice(), digest, Some(blob))?;
        Ok((kept == Kept::Both).then(|| self.certify_multi(moves, digest)))
    }

    /// The blobs of all moves since the last one without, oldest first.
    pub fn blobs(&self) -> impl Iterator<Item = &[u8]> {
        (0..).map_while(|index| self.store.blob(index))
    }

    /// The last certificate of a counter with its digest: what a caller needs after a crash between
    /// the durable move and the answer.
    ///
    /// # Errors
    /// [`Refusal::UnknownCounter`], [`Refusal::Halted`].
    pub fn resume(&self, counter: CounterId) -> Result<Resumed, Refusal> {
        let last = self.counter(counter)?;
        let digest = last.digest;
        match last.together.count_ones() {
            0 => Ok(Resumed::Unmoved),
            1 => {
                let moved = Move { counter, previous: last.previous, new: last.value };
                Ok(Resumed::One { certificate: self.certify(&moved, &digest), digest })
            }
            _ => Ok(match self.moved_together(last.together) {
                Some(moves) => Resumed::Multi { certificate: self.certify_multi(&moves, &digest), digest },
                None => Resumed::Superseded,
            }),
        }
    }

    /// The last moves of a set of counters, if they were made together. Counters that show the same
    /// set made the same last move: a later move of that set would have changed them all.
    fn moved_together(&self, set: u8) -> Option<Moves> {
        let unused = Move { counter: CounterId(0), previous: CounterValue(0), new: CounterValue(0) };
        let mut moves = [unused; COUNTERS];
        let mut len = 0;
        for (index, last) in self.state.counters.iter().enumerate() {
            let counter = CounterId(index as u16);
            if set & counter.bit()? == 0 {
                continue;
            }
            if last.together != set {
                return None;
            }
            moves[len] = Move { counter, previous: last.previous, new: last.value };
            len += 1;
        }
        Moves::new(&moves[..len])
    }

    fn counter(&self, counter: CounterId) -> Result<&CounterState, Refusal> {
        if self.halted {
            return Err(Refusal::Halted);
        }
        self.state.counters.get(usize::from(counter.0)).ok_or(Refusal::UnknownCounter(counter))
    }

    /// The only place where counters change: all moves or none, and durable on success, with the blob if
    /// there is one.
    fn advance(&mut self, moves: &[Move], digest: &Digest, blob: Option<&[u8]>) -> Result<Kept, Refusal> {
        let mut together = 0;
        for moved in moves {
            self.counter(moved.counter)?;
            together |= moved.counter.bit().ok_or(Refusal::UnknownCounter(moved.counter))?;
        }
        let mut next = self.state.clone();
        let mut repeated = true;
        for moved in moves {
            let last = &mut next.counters[usize::from(moved.counter.0)];
            let after =
                CounterState { value: moved.new, previous: moved.previous, digest: *digest, together };
            repeated &= *last == after;
            *last = after;
        }
        if repeated {
            return Ok(Kept::Both);
        }
        for moved in moves {
            let current = self.counter(moved.counter)?.value;
            if moved.previous != current {
                return Err(Refusal::Elsewhere { counter: moved.counter, current });
            }
            if moved.new <= current {
                return Err(Refusal::NotAhead { counter: moved.counter, current });
            }
        }
        let stored = match blob {
            None => self.store.store(&next).map(|()| Kept::Both),
            Some(blob) => self.store.store_beside(&next, blob),
        };
        match stored {
            Ok(Kept::Both) => {
                self.state = next;
                Ok(Kept::Both)
            }
            Ok(Kept::Neither) => Ok(Kept::Neither),
            Err(StoreFailed::NoSpace) => Err(Refusal::NoSpace),
            Err(StoreFailed::Unknown) => {
                self.halted = true;
                Err(Refusal::Halted)
            }
        }
    }

    fn certify(&self, moved: &Move, digest: &Digest) -> Certificate {
        let statement = certificate::one(&self.state.identity, moved, digest);
        Certificate {
            epoch: self.state.identity.epoch,
            counter: moved.counter,
            previous: moved.previous,
            new: moved.new,
            proof: self.certifier.prove(&statement),
        }
    }

    fn certify_multi(&self, moves: &Moves, digest: &Digest) -> MultiCertificate {
        let statement = certificate::multi(&self.state.identity, moves, digest);
        MultiCertificate {
            epoch: self.state.identity.epoch,
            moves: *moves,
            proof: self.certifier.prove(&statement),
        }
    }
}

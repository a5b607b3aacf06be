//! Every sequence of up to five calls over a small alphabet, against a naive model.
//!
//! Goal: no value of a counter is ever certified for two digests, whatever the order of moves alone
//! and together, repeats, resumptions, restarts and stores that fail with or without having kept the
//! record. Method: depth-first over all sequences; at each step the answer must be the model's, and
//! each certificate must agree with all certificates of the sequence so far.

use crate::support::{IDENTITY, mac_key, step};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Digest, MacVerifier, Move, Moves, Refusal, Resumed, State, Store,
    StoreFailed, TrustedCore, Verifier,
};

const DEPTH: usize = 5;
const A: Digest = [0xa; 32];
const B: Digest = [0xb; 32];

/// A store whose writes can fail in both ways.
#[derive(Clone, Debug)]
struct Disk {
    durable: State,
    next_write: Write,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    Works,
    FailsLost,
    FailsKept,
}

impl Store for Disk {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        if self.next_write != Write::FailsLost {
            self.durable = state.clone();
        }
        if self.next_write == Write::Works { Ok(()) } else { Err(StoreFailed::Unknown) }
    }
}

#[derive(Clone, Debug)]
enum Action {
    Alone(Move, Digest),
    Together(Vec<Move>, Digest),
    Resume(u16),
    /// The process ends and starts again from its disk, which works again.
    Restart,
    /// From now on the disk fails.
    Break(Write),
}

fn alphabet() -> Vec<Action> {
    let mut actions = Vec::new();
    for digest in [A, B] {
        for m in [step(0, 0, 1), step(0, 1, 2), step(0, 0, 2), step(1, 0, 1), step(1, 1, 2)] {
            actions.push(Action::Alone(m, digest));
        }
        actions.push(Action::Together(vec![step(0, 0, 1), step(1, 0, 1)], digest));
        actions.push(Action::Together(vec![step(0, 1, 2), step(1, 1, 2)], digest));
        actions.push(Action::Together(vec![step(0, 0, 2), step(1, 0, 1)], digest));
    }
    actions.extend([Action::Resume(0), Action::Resume(1), Action::Restart]);
    actions.extend([Action::Break(Write::FailsLost), Action::Break(Write::FailsKept)]);
    actions
}

/// A statement that was made: all moves of one certificate and their digest.
type Statement = (Vec<Move>, Digest);

/// What the component ought to be, in the plainest terms.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    values: [u128; 2],
    last: [Option<Statement>; 2],
}

/// Everything that one sequence has led to.
#[derive(Clone)]
struct World {
    core: TrustedCore<Disk>,
    model: Model,
    durable_model: Model,
    next_write: Write,
    halted: bool,
    made: Vec<Statement>,
}

fn start() -> World {
    let disk = Disk { durable: State::new(IDENTITY), next_write: Write::Works };
    let model = Model { values: [0; 2], last: [None, None] };
    World {
        core: TrustedCore::start(IDENTITY, Certifier::Mac(mac_key()), disk),
        durable_model: model.clone(),
        model,
        next_write: Write::Works,
        halted: false,
        made: Vec::new(),
    }
}

impl World {
    /// What the model says of a move, alone or together; it moves on success.
    fn expect_moves(&mut self, moves: &[Move], digest: Digest) -> Result<(), Refusal> {
        if self.halted {
            return Err(Refusal::Halted);
        }
        let statement = (moves.to_vec(), digest);
        if moves.iter().all(|m| self.model.last[usize::from(m.counter.0)].as_ref() == Some(&statement)) {
            return Ok(());
        }
        for m in moves {
            let current = CounterValue(self.model.values[usize::from(m.counter.0)]);
            if m.previous != current {
                return Err(Refusal::Elsewhere { counter: m.counter, current });
            }
            if m.new <= current {
                return Err(Refusal::NotAhead { counter: m.counter, current });
            }
        }
        let mut next = self.model.clone();
        for m in moves {
            next.values[usize::from(m.counter.0)] = m.new.0;
            next.last[usize::from(m.counter.0)] = Some(statement.clone());
        }
        if self.next_write != Write::FailsLost {
            self.durable_model = next.clone();
        }
        if self.next_write != Write::Works {
            self.halted = true;
            return Err(Refusal::Halted);
        }
        self.model = next;
        Ok(())
    }

    /// A certificate left the component: it must be durable and contradict none before it.
    fn made(&mut self, moves: Vec<Move>, digest: Digest) {
        let disk = self.core.clone().into_store();
        for m in &moves {
            assert!(disk.durable.counters[usize::from(m.counter.0)].value >= m.new, "not durable: {m:?}");
        }
        let statement = (moves, digest);
        for earlier in &self.made {
            let overlap = earlier.0.iter().any(|e| {
                statement.0.iter().any(|m| e.counter == m.counter && e.previous < m.new && m.previous < e.new)
            });
            assert!(!overlap || *earlier == statement, "{earlier:?} and {statement:?} share a value");
        }
        if !self.made.contains(&statement) {
            self.made.push(statement);
        }
    }

    fn play(&mut self, action: &Action, verifier: &MacVerifier) {
        match action {
            Action::Alone(m, digest) => {
                let expected = self.expect_moves(&[*m], *digest);
                let answer = self.core.attest(m.counter, m.previous, m.new, digest);
                assert_eq!(answer.as_ref().map(|_| ()).map_err(|refusal| *refusal), expected);
                if let Ok(certificate) = answer {
                    assert!(verifier.verify(&IDENTITY, &certificate, digest));
                    self.made(vec![certificate.moved()], *digest);
                }
            }
            Action::Together(moves, digest) => {
                let expected = self.expect_moves(moves, *digest);
                let moves = Moves::new(moves).expect("well formed");
                let answer = self.core.attest_multi(&moves, digest);
                assert_eq!(answer.as_ref().map(|_| ()).map_err(|refusal| *refusal), expected);
                if let Ok(certificate) = answer {
                    assert!(verifier.verify_multi(&IDENTITY, &certificate, digest));
                    self.made(certificate.moves.as_slice().to_vec(), *digest);
                }
            }
            Action::Resume(counter) => self.resume(*counter, verifier),
            Action::Restart => {
                let mut disk = self.core.clone().into_store();
                disk.next_write = Write::Works;
                let state = State::from_bytes(&disk.durable.to_bytes()).expect("an intact record");
                self.core = TrustedCore::restart(IDENTITY, Certifier::Mac(mac_key()), disk, state)
                    .expect("its own state");
                self.model = self.durable_model.clone();
                (self.next_write, self.halted) = (Write::Works, false);
            }
            Action::Break(how) => {
                let halted = self.halted;
                let mut disk = self.core.clone().into_store();
                disk.next_write = *how;
                // A component that has halted stays so; only one at work meets the broken disk.
                if !halted {
                    let state = disk.durable.clone();
                    self.core = TrustedCore::restart(IDENTITY, Certifier::Mac(mac_key()), disk, state)
                        .expect("its own state");
                    self.next_write = *how;
                }
            }
        }
    }

    fn resume(&mut self, counter: u16, verifier: &MacVerifier) {
        let answer = self.core.resume(CounterId(counter));
        if self.halted {
            assert_eq!(answer, Err(Refusal::Halted));
            return;
        }
        let last = self.model.last[usize::from(counter)].clone();
        let complete = last.as_ref().is_some_and(|statement| {
            statement.0.iter().all(|m| self.model.last[usize::from(m.counter.0)].as_ref() == Some(statement))
        });
        match (answer.expect("a known counter"), last) {
            (Resumed::Unmoved, None) => {}
            (Resumed::Superseded, Some(statement)) => assert!(statement.0.len() > 1 && !complete),
            (Resumed::One { certificate, digest }, Some(statement)) => {
                assert!(verifier.verify(&IDENTITY, &certificate, &digest));
                assert_eq!((vec![certificate.moved()], digest), statement);
                self.made(statement.0, digest);
            }
            (Resumed::Multi { certificate, digest }, Some(statement)) => {
                assert!(verifier.verify_multi(&IDENTITY, &certificate, &digest));
                assert_eq!((certificate.moves.as_slice().to_vec(), digest), statement);
                self.made(statement.0, digest);
            }
            (answer, last) => panic!("resume gave {answer:?} after {last:?}"),
        }
    }
}

fn explore(world: &World, alphabet: &[Action], verifier: &MacVerifier, depth: usize) -> u64 {
    if depth == 0 {
        return 1;
    }
    let mut sequences = 1;
    for action in alphabet {
        let mut next = world.clone();
        next.play(action, verifier);
        sequences += explore(&next, alphabet, verifier, depth - 1);
    }
    sequences
}

#[test]
fn no_sequence_of_calls_certifies_one_value_twice() {
    let alphabet = alphabet();
    let sequences = explore(&start(), &alphabet, &mac_key().verifier(), DEPTH);
    let expected: u64 = (0..=DEPTH as u32).map(|n| (alphabet.len() as u64).pow(n)).sum();
    assert_eq!(sequences, expected, "every sequence was played");
}

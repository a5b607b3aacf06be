//! Logs through the socket: the suite, answers that are lost, and a store that crashes behind it.

use crate::client::frame;
use crate::disk::{Crash, Disk, TestDirectory};
use crate::served::{PATIENCE, Served, own_uid};
use crate::support::{IDENTITY, Scratch, attest, core_in, mac, no_hook, pair, signature, step, verifier};
use std::io::Write;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;
use troth_trusted::a2m::{
    A2m, Answer, Attestation, Content, LOGS, LogId, LogRefusal, MOST_OPERATIONS, Operation, Unfit,
};
use troth_trusted::{Certifier, CounterValue, Digest, Epoch, Identity, MacVerifier, VolatileStore};
use troth_trusted_host::conformance::logs::{LOG_RULES, LogHome, ROOM, log_conformance};
use troth_trusted_host::store::DiskLogs;
use troth_trusted_host::{InProcessLogs, TrustedComponent, TrustedLogs, log_room};
use troth_trusted_process::wire::{Reply, decode_hello, decode_log_call, encode_log_answers, encode_reply};
use troth_trusted_process::{Lost, Patience, RemoteComponent, ServeError, bind};

/// So few slots that a handful of calls needs several files.
const FEW: u32 = 4;
const Q: LogId = LogId(0);
const NONCE: [u8; 32] = [0x5a; 32];

/// The component that goes on from a disk.
fn on_disk(
    disk: &Disk,
    identity: Identity,
    certifier: Certifier,
) -> A2m<troth_trusted_host::LogRoom, DiskLogs<TestDirectory>> {
    let opened = DiskLogs::open_in(disk.directory(), identity, [ROOM; LOGS], FEW).expect("a sound disk");
    A2m::restart(identity, certifier, opened.store, opened.logs).expect("its own logs")
}

struct SocketHome {
    certifier: Certifier,
    epoch: Epoch,
    place: Scratch,
    disk: Disk,
    served: Option<Served>,
}

impl LogHome for SocketHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs> {
        self.served = None;
        (self.place, self.disk, self.epoch) = (Scratch::new(), Disk::new(), epoch);
        self.restart().expect("this home is durable")
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>> {
        self.served = None;
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let logs = on_disk(&self.disk, identity, self.certifier.clone());
        let served = Served::with_logs(self.place.path("socket"), logs);
        Some(Box::new(self.served.insert(served).connect()))
    }

    fn break_store(&mut self) -> bool {
        self.disk.break_down();
        true
    }

    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        pair(&self.certifier, secret)
    }
}

#[test]
fn logs_behind_a_socket_hold_every_rule() {
    for certifier in [mac(), signature()] {
        let verifier = verifier(&certifier);
        let (epoch, place, disk) = (IDENTITY.epoch, Scratch::new(), Disk::new());
        let mut home = SocketHome { certifier, epoch, place, disk, served: None };
        let report = log_conformance(&mut home, &verifier).expect("no rule is broken");
        assert_eq!(report.held, LOG_RULES);
    }
}

#[test]
fn a_process_whose_logs_failed_says_so_and_ends() {
    let (scratch, disk) = (Scratch::new(), Disk::new());
    let served = Served::with_logs(scratch.path("socket"), on_disk(&disk, IDENTITY, mac()));
    let mut client = served.connect();
    disk.break_down();
    assert_eq!(TrustedLogs::call(&mut client, &[append(1, None)]), Err(LogRefusal::Halted));
    assert!(matches!(client.lost(), Some(Lost::Halted)), "{:?}", client.lost());
    assert!(matches!(served.end(), Err(ServeError::StoreFailed)));
}

fn volatile() -> A2m<troth_trusted_host::LogRoom, VolatileStore> {
    A2m::start(IDENTITY, mac(), VolatileStore, log_room([ROOM; LOGS]))
}

#[test]
fn counters_and_logs_share_a_connection_and_a_process_may_have_none() {
    let scratch = Scratch::new();
    let served = Served::with_logs(scratch.path("socket"), volatile());
    let mut client = served.connect();
    assert!(TrustedComponent::call(&mut client, &[attest(step(0, 0, 1), [1; 32])])[0].attested().is_some());
    assert_eq!(TrustedLogs::call(&mut client, &[append(1, None)]), Ok(vec![Answer::Done]));
    assert!(TrustedComponent::call(&mut client, &[attest(step(0, 1, 2), [1; 32])])[0].attested().is_some());
    drop(served);
    let core = core_in(&scratch.0, IDENTITY, mac(), no_hook());
    let without = Served::new(scratch.path("without"), core);
    let mut client = without.connect();
    let none = LogRefusal::Operation { index: 0, why: Unfit::NoSuchLog };
    assert_eq!(TrustedLogs::call(&mut client, &[append(1, None)]), Err(none));
    assert!(client.lost().is_none());
}

#[test]
fn a_call_of_too_many_operations_is_refused_before_it_is_sent() {
    let scratch = Scratch::new();
    let served = Served::with_logs(scratch.path("socket"), volatile());
    let mut client = served.connect();
    let operations = vec![end(); MOST_OPERATIONS + 1];
    assert_eq!(TrustedLogs::call(&mut client, &operations), Err(LogRefusal::TooMany));
    assert_eq!(TrustedLogs::call(&mut client, &operations[1..]).map(|answers| answers.len()), Ok(300));
}

fn append(slot: u128, nonce: Option<[u8; 32]>) -> Operation {
    Operation::Append { log: Q, slot: CounterValue(slot), value: [slot as u8; 32], nonce }
}

fn advance(log: u16, slot: u128) -> Operation {
    let (log, slot, previous, value) = (LogId(log), CounterValue(slot), [7; 32], [8; 32]);
    Operation::Advance { log, slot, previous, value, nonce: Some(NONCE) }
}

fn end() -> Operation {
    Operation::End { log: Q, nonce: NONCE }
}

/// What a server that misbehaves does with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    /// As it should.
    Answers,
    /// Nothing, and dies.
    Dies,
    /// All of it, and dies while it answers.
    BreaksOff,
    /// All of it, and never answers.
    Hangs,
    /// Answers in reverse.
    Reverses,
    /// Answers all but the last.
    Forgets,
    /// Answers as under another epoch.
    Misdates,
    /// Answers with bytes that are no answers.
    Babbles,
}

/// A server that follows a script, one entry per call. A connection that it lets die is followed by a new one.
fn scripted(path: &Path, script: Vec<Does>) -> JoinHandle<()> {
    let listener = bind(path, own_uid()).expect("a socket");
    std::thread::spawn(move || {
        let mut component = InProcessLogs::new(volatile());
        let mut script = script.into_iter().peekable();
        let mut hung = Vec::new();
        while script.peek().is_some() {
            let (mut socket, _) = listener.accept().expect("a client");
            decode_hello(&frame(&mut socket).expect("a greeting")).expect("a greeting");
            let mut out = Vec::new();
            encode_reply(&Reply::Welcome(IDENTITY), &mut out);
            socket.write_all(&out).expect("room");
            while let Some(does) = script.peek().copied() {
                let Some(asked) = frame(&mut socket) else { break };
                script.next();
                if does == Does::Dies {
                    break;
                }
                let mut answered = component.call(&decode_log_call(&asked).expect("a call"));
                if let Ok(answers) = &mut answered {
                    match does {
                        Does::Reverses => answers.reverse(),
                        Does::Forgets => drop(answers.pop()),
                        Does::Misdates => answers.iter_mut().for_each(|answer| {
                            if let Answer::Attested(made) = answer {
                                made.epoch.0 += 1;
                            }
                        }),
                        _ => {}
                    }
                }
                out.clear();
                encode_log_answers(&answered, &mut out);
                match does {
                    Does::BreaksOff => {
                        let half = out.len() / 2;
                        socket.write_all(&out[..half]).expect("room");
                        break;
                    }
                    Does::Hangs => {
                        hung.push(socket);
                        break;
                    }
                    Does::Babbles => out[5] = 200,
                    _ => {}
                }
                socket.write_all(&out).expect("room");
            }
        }
    })
}

/// Runs calls against a script; the answers and the client.
fn against(
    script: Vec<Does>,
    patience: Patience,
    calls: &[&[Operation]],
) -> (Vec<Result<Vec<Answer>, LogRefusal>>, RemoteComponent) {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let server = scripted(&path, script);
    let mut client = RemoteComponent::connect(&path, patience).expect("a server");
    let answered = calls.iter().map(|call| TrustedLogs::call(&mut client, call)).collect();
    drop(server);
    (answered, client)
}

fn expected(calls: &[&[Operation]]) -> Vec<Result<Vec<Answer>, LogRefusal>> {
    let mut component = InProcessLogs::new(volatile());
    calls.iter().map(|call| component.call(call)).collect()
}

const IMPATIENT: Patience = Patience { answer: Duration::from_millis(300), ..PATIENCE };

#[test]
fn a_lost_answer_is_had_all_the_same_whether_the_call_was_done_or_not() {
    covers!("A2M-C4");
    let truncate = Operation::Truncate { log: Q, slot: CounterValue(2) };
    let first = [append(1, None), append(2, Some(NONCE)), end()];
    let calls: [&[Operation]; 5] = [
        &[append(3, Some(NONCE)), advance(1, 9), end()],
        &[append(3, None), truncate, end()],
        &[advance(1, 9)],
        &[end()],
        // Refused, at any time.
        &[append(2, None)],
    ];
    for call in calls {
        let calls = [&first[..], call, &[append(4, Some(NONCE))], &[end()]];
        for (lost, patience) in
            [(Does::Dies, PATIENCE), (Does::BreaksOff, PATIENCE), (Does::Hangs, IMPATIENT)]
        {
            // As many answers as are asked for; a script that is not at its end waits in its thread.
            let script = [&[Does::Answers, lost][..], &[Does::Answers; 6]].concat();
            let (answered, client) = against(script, patience, &calls);
            let expected = expected(&calls);
            assert!(client.lost().is_none(), "{call:?}, {lost:?}: {:?}", client.lost());
            if call == [append(2, None)] {
                // What it wants is the case: it is told so, and nothing is done.
                assert_eq!(answered[1], expected[1].clone().or(Ok(vec![Answer::Done])), "{lost:?}");
                assert_eq!(answered[2..], expected[2..]);
            } else {
                assert_eq!(answered, expected, "{call:?}, {lost:?}");
            }
        }
    }
}

#[test]
fn a_call_that_was_refused_and_is_not_the_case_is_refused_again() {
    covers!("A2M-C4");
    let other = Operation::Append { log: Q, slot: CounterValue(1), value: [99; 32], nonce: None };
    let first = [append(1, None)];
    for call in [vec![other], vec![append(1, None), advance(1, 9)], vec![append(9, None)]] {
        let calls = [&first[..], &call];
        for lost in [Does::Dies, Does::BreaksOff] {
            let script = [&[Does::Answers, lost][..], &[Does::Answers; 3]].concat();
            let (answered, client) = against(script, PATIENCE, &calls);
            assert_eq!(answered, expected(&calls), "{call:?}, {lost:?}");
            assert!(answered[1].is_err() && client.lost().is_none());
        }
    }
}

#[test]
fn answers_that_nobody_can_give_again_end_the_client_and_not_given_ones_do_not() {
    covers!("A2M-C4");
    let call = [end(), append(1, None), end()];
    let (answered, client) =
        against(vec![Does::BreaksOff, Does::Answers, Does::Answers], PATIENCE, &[&call, &[end()]]);
    assert_eq!(answered, [Err(LogRefusal::Halted), Err(LogRefusal::Halted)]);
    assert!(matches!(client.lost(), Some(Lost::LogAnswers)), "{:?}", client.lost());
    let (answered, client) = against(vec![Does::Dies, Does::Answers], PATIENCE, &[&call]);
    assert_eq!(answered, expected(&[&call]));
    assert!(client.lost().is_none());
}

#[test]
fn answers_that_do_not_fit_or_are_lost_twice_halt_the_client() {
    let call = [append(1, Some(NONCE)), advance(1, 4), end()];
    for wrong in [Does::Reverses, Does::Forgets, Does::Misdates] {
        let (answered, client) = against(vec![wrong], PATIENCE, &[&call, &[end()]]);
        assert_eq!(answered, [Err(LogRefusal::Halted), Err(LogRefusal::Halted)], "{wrong:?}");
        assert!(matches!(client.lost(), Some(Lost::Unfitting)), "{wrong:?}: {:?}", client.lost());
    }
    for script in [
        vec![Does::Dies, Does::Dies],
        vec![Does::Dies, Does::Babbles],
        vec![Does::BreaksOff, Does::Answers, Does::Dies],
    ] {
        let (answered, client) = against(script.clone(), PATIENCE, &[&call]);
        assert_eq!(answered, [Err(LogRefusal::Halted)], "{script:?}");
        assert!(matches!(client.lost(), Some(Lost::Connection(_))), "{script:?}: {:?}", client.lost());
    }
}

/// What a client was given, over all lives of the component: the value of each slot of one log.
#[derive(Clone, Default)]
struct Given {
    values: Vec<Digest>,
    lives: u8,
}

impl Given {
    /// A life of the process: asks what the log holds, holds it against what was given before, and appends so
    /// often, as far as the disk goes.
    fn live(&mut self, disk: &Disk, socket: &Path, appends: usize, context: &str) {
        self.lives += 1;
        let served = Served::with_logs(socket.to_path_buf(), on_disk(disk, IDENTITY, mac()));
        let mut client = served.connect();
        let slot = |index: usize| CounterValue(index as u128 + 1);
        let held = |client: &mut RemoteComponent, index: usize| {
            let lookup = Operation::Lookup { log: Q, slot: slot(index), nonce: NONCE };
            match TrustedLogs::call(client, &[lookup]).as_deref() {
                Ok([Answer::Attested(Attestation { claim, .. })]) => match claim.content {
                    Content::Assigned { value, .. } => Some(value),
                    _ => None,
                },
                other => panic!("{other:?}; {context}"),
            }
        };
        for index in 0..self.values.len() {
            let value = held(&mut client, index);
            assert_eq!(value, Some(self.values[index]), "slot {} is another; {context}", index + 1);
        }
        // At most one was done and not answered.
        let next = self.values.len();
        self.values.extend(held(&mut client, next));
        assert_eq!(held(&mut client, self.values.len()), None, "{context}");
        for index in self.values.len()..self.values.len() + appends {
            let value = [self.lives; 32];
            let append = Operation::Append { log: Q, slot: slot(index), value, nonce: Some(NONCE) };
            match TrustedLogs::call(&mut client, &[append]) {
                Ok(_) => self.values.push(value),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn a_crash_at_any_call_to_the_disk_shows_no_slot_in_two_ways_on_the_socket() {
    let scratch = Scratch::new();
    let socket = scratch.path("socket");
    let opens = |disk: &Disk| DiskLogs::open_in(disk.directory(), IDENTITY, [ROOM; LOGS], FEW).is_ok();
    let whole = Disk::new();
    Given::default().live(&whole, &socket, 5, "a life without a crash");
    let calls = whole.calls();
    for call in 1..=calls {
        for cut in [0, 150, 2500, 4096] {
            let disk = Disk::new();
            let mut given = Given::default();
            // A start that fails has given nothing; it is tried on a copy, as the disk counts its calls.
            let copy = disk.copied();
            copy.crash_at(call, cut);
            let starts = opens(&copy);
            disk.crash_at(call, cut);
            if starts {
                given.live(&disk, &socket, 5, "the first life");
            } else {
                assert!(!opens(&disk));
            }
            assert!(disk.crashed());
            for crash in [Crash::Killed, Crash::LostAll, Crash::LostNothing, Crash::LostSome(call)] {
                let context = format!("crash at call {call} of {calls}, cut at {cut}, {crash:?}");
                let (disk, mut given) = (disk.after(crash), given.clone());
                given.live(&disk, &socket, 2, &context);
                given.live(&disk, &socket, 1, &context);
                assert!(given.values.len() >= 3, "{context}");
            }
        }
    }
}

#[test]
fn a_call_that_is_not_answered_soon_is_asked_again_and_done_once() {
    covers!("A2M-C4");
    let soon = Patience { beside: Duration::from_millis(100), ..PATIENCE };
    let calls: [&[Operation]; 3] = [&[append(1, Some(NONCE))], &[advance(1, 9), append(2, None)], &[end()]];
    let expected = expected(&calls);
    for lost in [Does::Dies, Does::BreaksOff, Does::Hangs] {
        let scratch = Scratch::new();
        let path = scratch.path("socket");
        let script = [&[Does::Answers, lost][..], &[Does::Answers; 6]].concat();
        let server = scripted(&path, script);
        let mut client = RemoteComponent::connect(&path, soon).expect("a server");
        assert_eq!(client_soon(&mut client, calls[0]), Some(expected[0].clone()), "{lost:?}");
        assert_eq!(client_soon(&mut client, calls[1]), None, "{lost:?}");
        for (call, expected) in calls.iter().zip(&expected).skip(1) {
            assert_eq!(TrustedLogs::call(&mut client, call), *expected, "{lost:?}");
        }
        assert!(client.lost().is_none(), "{lost:?}: {:?}", client.lost());
        drop(server);
    }
    // What is wrong for good is said at once.
    for wrong in [Does::Reverses, Does::Misdates] {
        let scratch = Scratch::new();
        let path = scratch.path("socket");
        let server = scripted(&path, vec![wrong]);
        let mut client = RemoteComponent::connect(&path, soon).expect("a server");
        let call = [append(1, Some(NONCE)), end()];
        assert_eq!(client_soon(&mut client, &call), Some(Err(LogRefusal::Halted)), "{wrong:?}");
        assert_eq!(client_soon(&mut client, &[end()]), Some(Err(LogRefusal::Halted)), "{wrong:?}");
        drop(server);
    }
}

fn client_soon(client: &mut RemoteComponent, call: &[Operation]) -> Option<Result<Vec<Answer>, LogRefusal>> {
    TrustedLogs::call_soon(client, call)
}

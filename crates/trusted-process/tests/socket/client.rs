//! The client when connections are lost: what it repeats, and when it gives up.

use crate::served::{PATIENCE, Served, own_uid};
use crate::support::{IDENTITY, Scratch, attest, core_in, mac, no_hook, read, step};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;
use troth_trusted::{CounterValue, Epoch, Identity, Refusal, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_trusted_process::wire::{Reply, decode_calls, decode_hello, encode_answers, encode_reply};
use troth_trusted_process::{Lost, Patience, RemoteComponent, bind};

const HALTED: Answer = Answer::Refused(Refusal::Halted);

/// What a server that misbehaves does with a frame of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    /// As it should.
    Answers,
    /// Only the first calls of it, and dies.
    Dies(usize),
    /// Everything, and dies while it answers.
    BreaksOff,
    /// Nothing for ever.
    Hangs,
    /// Answers the calls in reverse.
    Reverses,
    /// Answers the first call only.
    Forgets,
    /// Answers with bytes that are no answers.
    Babbles,
}

/// What the other end says next, if anything.
pub fn frame(socket: &mut UnixStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut frame).ok()?;
    Some(frame)
}

/// A server that follows a script, one entry per frame of calls, and returns its component at the end. A
/// connection that it lets die is followed by a new one.
fn scripted(path: &Path, identity: Identity, script: Vec<Does>) -> JoinHandle<InProcess<VolatileStore>> {
    let listener = bind(path, own_uid()).expect("a socket");
    std::thread::spawn(move || {
        let mut component = InProcess::new(TrustedCore::start(identity, mac(), VolatileStore));
        let mut script = script.into_iter().peekable();
        let mut hung = Vec::new();
        while script.peek().is_some() {
            let (mut socket, _) = listener.accept().expect("a client");
            decode_hello(&frame(&mut socket).expect("a greeting")).expect("a greeting");
            let mut out = Vec::new();
            encode_reply(&Reply::Welcome(identity), &mut out);
            socket.write_all(&out).expect("room");
            while let Some(does) = script.peek().copied() {
                let Some(calls) = frame(&mut socket) else { break };
                script.next();
                let calls = decode_calls(&calls).expect("calls");
                let done = if let Does::Dies(done) = does { done } else { calls.len() };
                let mut answers = if does == Does::Hangs { vec![] } else { component.call(&calls[..done]) };
                match does {
                    Does::Reverses => answers.reverse(),
                    Does::Forgets => answers.truncate(1),
                    _ => {}
                }
                out.clear();
                encode_answers(&answers, &mut out);
                match does {
                    Does::Dies(_) => break,
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
        component
    })
}

/// Three moves of three counters: one frame.
fn three() -> Vec<Call> {
    (0..3).map(|counter| attest(step(counter, 0, 1), [counter as u8; 32])).collect()
}

fn expected(calls: &[Call]) -> Vec<Answer> {
    InProcess::new(TrustedCore::start(IDENTITY, mac(), VolatileStore)).call(calls)
}

/// Runs `calls` against a script; the answers and the client.
fn against(script: Vec<Does>, patience: Patience, calls: &[Call]) -> (Vec<Answer>, RemoteComponent) {
    let scratch = Scratch::new();
    let path = scratch.path("socket");
    let server = scripted(&path, IDENTITY, script);
    let mut client = RemoteComponent::connect(&path, patience).expect("a server");
    let answers = client.call(calls);
    drop(server);
    (answers, client)
}

#[test]
fn a_lost_answer_is_asked_for_again_whatever_was_done() {
    let calls = three();
    for lost in [0, 1, 2, 3].map(Does::Dies).into_iter().chain([Does::BreaksOff]) {
        let (answers, client) = against(vec![lost, Does::Answers], PATIENCE, &calls);
        assert_eq!(answers, expected(&calls), "{lost:?}");
        assert!(client.lost().is_none());
    }
}

#[test]
fn a_chain_of_moves_survives_a_loss_at_every_place() {
    let chain: Vec<Call> = (0..4).map(|value| attest(step(0, value, value + 1), [value as u8; 32])).collect();
    for at in 0..4 {
        for done in [0, 1] {
            let mut script = vec![Does::Answers; 5];
            script[at] = Does::Dies(done);
            let (answers, client) = against(script, PATIENCE, &chain);
            assert_eq!(answers, expected(&chain), "lost at {at} with {done} done");
            assert!(client.lost().is_none());
        }
    }
}

#[test]
fn a_second_loss_halts_for_good_and_keeps_the_answers_before() {
    let script = vec![Does::Answers, Does::Dies(1), Does::Dies(0), Does::Answers];
    let calls =
        [attest(step(0, 0, 1), [1; 32]), attest(step(0, 1, 2), [2; 32]), attest(step(0, 2, 3), [3; 32])];
    let (answers, mut client) = against(script, PATIENCE, &calls);
    assert_eq!(answers[0], expected(&calls)[0]);
    assert_eq!(answers[1..], [HALTED, HALTED]);
    assert!(matches!(client.lost(), Some(Lost::Connection(_))));
    assert_eq!(client.call(&[read(0), read(1)]), [HALTED, HALTED]);
}

#[test]
fn a_process_that_does_not_answer_in_time_halts() {
    // A busy machine must still say hello within it.
    let patience = Patience { answer: Duration::from_secs(1), ..PATIENCE };
    let (answers, client) = against(vec![Does::Hangs, Does::Hangs], patience, &three());
    assert_eq!(answers, [HALTED, HALTED, HALTED]);
    assert!(
        matches!(client.lost(), Some(Lost::Connection(_) | Lost::NotReconnected(_))),
        "{:?}",
        client.lost()
    );
}

#[test]
fn answers_that_do_not_fit_are_not_handed_out() {
    for wrong in [Does::Reverses, Does::Forgets] {
        let (answers, client) = against(vec![wrong], PATIENCE, &three());
        assert_eq!(answers, [HALTED, HALTED, HALTED]);
        assert!(matches!(client.lost(), Some(Lost::Unfitting)), "{wrong:?}: {:?}", client.lost());
    }
    let (answers, client) = against(vec![Does::Babbles, Does::Babbles], PATIENCE, &three());
    assert_eq!(answers, [HALTED, HALTED, HALTED]);
    assert!(matches!(client.lost(), Some(Lost::Connection(_))));
}

#[test]
fn another_epoch_behind_the_same_socket_is_not_the_same_component() {
    let scratch = Scratch::new();
    let served = Served::durable(&scratch, IDENTITY, mac());
    let mut client = served.connect();
    assert!(client.call(&[attest(step(0, 0, 1), [1; 32])])[0].attested().is_some());
    drop(served);
    let other = Identity { epoch: Epoch(8), ..IDENTITY };
    let next = Served::new(scratch.path("socket"), TrustedCore::start(other, mac(), VolatileStore));
    assert_eq!(client.call(&[attest(step(0, 1, 2), [1; 32])]), [HALTED]);
    assert!(matches!(client.lost(), Some(Lost::OtherIdentity(found)) if *found == other));
    // And nothing was asked of the other one.
    assert_eq!(next.connect().call(&[read(0)]), [Answer::Value(CounterValue(0))]);
}

#[test]
fn a_process_that_is_restarted_is_found_again() {
    let scratch = Scratch::new();
    let mut served = Served::durable(&scratch, IDENTITY, mac());
    let mut client = served.connect();
    for value in 0..20 {
        assert!(client.call(&[attest(step(0, value, value + 1), [1; 32])])[0].attested().is_some());
        drop(served);
        let core = core_in(&scratch.0, IDENTITY, mac(), no_hook());
        served = Served::new(scratch.path("socket"), core);
    }
    assert_eq!(client.call(&[read(0)]), [Answer::Value(CounterValue(20))]);
}

#[test]
fn a_process_that_stays_away_halts_the_component() {
    let scratch = Scratch::new();
    let served = Served::durable(&scratch, IDENTITY, mac());
    let patience = Patience { reconnect: Duration::from_millis(20), ..PATIENCE };
    let mut client = RemoteComponent::connect(&served.path, patience).expect("a server");
    drop(served);
    assert_eq!(client.call(&[]), []);
    assert_eq!(client.call(&[read(0)]), [HALTED]);
    assert!(matches!(client.lost(), Some(Lost::NotReconnected(_))));
}

#[test]
fn long_batches_are_split_and_answered_whole() {
    let scratch = Scratch::new();
    let served = Served::durable(&scratch, IDENTITY, mac());
    let mut calls: Vec<Call> = (0..200).map(|i| read(i % 8)).collect();
    calls.push(attest(step(0, 0, 1), [1; 32]));
    assert_eq!(served.connect().call(&calls), expected(&calls));
}

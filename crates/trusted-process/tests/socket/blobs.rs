//! Blobs through the socket, on the store that ships: one round trip each, and nothing lost or doubled when
//! connections and processes are.

use crate::client::frame;
use crate::disk::{Crash, Disk};
use crate::served::{PATIENCE, Served, own_uid};
use crate::support::{IDENTITY, Scratch, attest, attest_multi, mac, read, resume, step};
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;
use troth_trusted::{CounterValue, Refusal, TrustedCore};
use troth_trusted_host::store::{DiskStore, Policy, SLOTS};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_trusted_process::wire::{
    MAX_BLOB, Reply, Request, decode_hello, decode_request, encode_answers, encode_blobs, encode_done,
    encode_reply,
};
use troth_trusted_process::{Lost, Patience, RemoteComponent, bind};

const HALTED: Answer = Answer::Refused(Refusal::Halted);

/// The component that goes on from a disk.
fn core(disk: &Disk, slots: u32) -> TrustedCore<DiskStore<crate::disk::TestDirectory>> {
    let opened = DiskStore::open_in(disk.directory(), IDENTITY, Policy::Always, slots).expect("a sound disk");
    match opened.last {
        None => TrustedCore::start(IDENTITY, mac(), opened.store),
        Some(state) => TrustedCore::restart(IDENTITY, mac(), opened.store, state).expect("its own state"),
    }
}

fn move_to(value: u128) -> Call {
    attest(step(0, value - 1, value), [value as u8; 32])
}

#[test]
fn blobs_are_kept_through_the_socket_and_given_back_in_several_frames() {
    let scratch = Scratch::new();
    let disk = Disk::new();
    let blobs: Vec<Vec<u8>> = (1..=150).map(|value| vec![value as u8; MAX_BLOB - value]).collect();
    let served = Served::new(scratch.path("socket"), core(&disk, SLOTS));
    let mut client = served.connect();
    assert_eq!(client.blobs(), Vec::<Vec<u8>>::new());
    for (value, blob) in (1..).zip(&blobs) {
        let answer = client.attest_beside(&move_to(value), blob).expect("there is place");
        assert_eq!(answer.attested().expect("it moved").new, CounterValue(value));
    }
    assert_eq!(client.blobs(), blobs);
    drop(served);
    // Another process, after the machine has ended.
    let served = Served::new(scratch.path("socket"), core(&disk.after(Crash::LostAll), SLOTS));
    assert_eq!(client.blobs(), blobs, "asked on a new connection");
    let together = attest_multi(&[step(1, 0, 1), step(2, 0, 1)], [9; 32]);
    assert!(matches!(client.attest_beside(&together, b"more"), Some(Answer::AttestedMulti(_))));
    assert_eq!(client.blobs().last().map(Vec::as_slice), Some(&b"more"[..]));
    assert!(client.call(&[move_to(151)])[0].attested().is_some());
    assert_eq!(client.blobs(), Vec::<Vec<u8>>::new());
    drop(served);
}

#[test]
fn what_is_not_kept_has_not_happened_and_what_is_refused_says_why() {
    let scratch = Scratch::new();
    let disk = Disk::new();
    let served = Served::new(scratch.path("socket"), core(&disk, 4));
    let mut client = served.connect();
    assert_eq!(client.attest_beside(&move_to(1), &[0; MAX_BLOB + 1]), None);
    assert_eq!(client.attest_beside(&read(0), b"blob"), None);
    assert_eq!(client.attest_beside(&resume(0), b"blob"), None);
    assert_eq!(client.call(&[read(0)]), [Answer::Value(CounterValue(0))]);
    for value in 1..=2 {
        assert!(client.attest_beside(&move_to(value), b"blob").is_some());
    }
    assert_eq!(client.attest_beside(&move_to(3), b"blob"), None);
    let stands = Refusal::Elsewhere { counter: troth_trusted::CounterId(0), current: CounterValue(2) };
    assert_eq!(client.attest_beside(&move_to(4), b"blob"), Some(Answer::Refused(stands)));
    assert_eq!(client.blobs(), [b"blob", b"blob"]);
    disk.break_down();
    assert_eq!(client.call(&[move_to(3)]), [HALTED]);
    assert_eq!(client.attest_beside(&move_to(3), b"blob"), Some(HALTED));
    assert_eq!(client.blobs(), Vec::<Vec<u8>>::new());
    assert!(matches!(client.lost(), Some(Lost::Halted)));
}

/// What a server that misbehaves does with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    /// As it should.
    Answers,
    /// Nothing, and dies.
    Dies,
    /// Everything, and dies before it answers; another process goes on from its disk.
    DiesAfter,
    /// Everything, and dies while it answers.
    BreaksOff,
    /// Nothing, and goes on to the next connection.
    Stalls,
    /// Answers for another value.
    Confuses,
    /// Answers with blobs that never end.
    Babbles,
}

fn welcomed(listener: &UnixListener) -> UnixStream {
    let (mut socket, _) = listener.accept().expect("a client");
    decode_hello(&frame(&mut socket).expect("a greeting")).expect("a greeting");
    let mut out = Vec::new();
    encode_reply(&Reply::Welcome(IDENTITY), &mut out);
    socket.write_all(&out).expect("room");
    socket
}

/// A server that follows a script, one entry per request, with a new component after each death.
fn scripted(path: &Path, disk: &Disk, script: Vec<Does>) -> JoinHandle<()> {
    let listener = bind(path, own_uid()).expect("a socket");
    let disk = disk.clone();
    std::thread::spawn(move || {
        let mut script = script.into_iter().peekable();
        let mut stalled = Vec::new();
        while script.peek().is_some() {
            let mut component = InProcess::new(core(&disk, SLOTS));
            let mut socket = welcomed(&listener);
            while let Some(does) = script.peek().copied() {
                let Some(request) = frame(&mut socket) else { break };
                script.next();
                if does == Does::Dies {
                    break;
                }
                if does == Does::Stalls {
                    stalled.push(socket);
                    break;
                }
                let mut out = Vec::new();
                match decode_request(&request).expect("a request") {
                    Request::Beside(call, blob) => {
                        let mut answer = component.attest_beside(&call, blob);
                        if let (Does::Confuses, Some(Answer::Attested(made))) = (does, &mut answer) {
                            made.new.0 += 1;
                        }
                        encode_done(answer.as_ref(), &mut out);
                    }
                    Request::BlobsFrom(from) => {
                        encode_blobs(&component.blobs()[usize::from(from)..], &mut out);
                    }
                    Request::Calls(calls) => {
                        let mut answers = component.call(&calls);
                        if let (Does::Confuses, Some(Answer::Attested(made))) = (does, answers.first_mut()) {
                            made.new.0 += 1;
                        }
                        encode_answers(&answers, &mut out);
                    }
                    Request::Logs(_) => panic!("logs are asked for nothing here"),
                }
                match does {
                    Does::DiesAfter => break,
                    Does::BreaksOff => {
                        let half = out.len() / 2;
                        socket.write_all(&out[..half]).expect("room");
                        break;
                    }
                    Does::Babbles => out = vec![0, 0, 0, 4, 133, 1, 0, 0],
                    _ => {}
                }
                socket.write_all(&out).expect("room");
            }
        }
    })
}

#[test]
fn a_move_with_a_blob_whose_answer_is_lost_is_made_or_repeated_without_it() {
    let expected = InProcess::new(core(&Disk::new(), SLOTS)).call(&[move_to(1)]);
    for lost in [Does::Dies, Does::DiesAfter, Does::BreaksOff] {
        let scratch = Scratch::new();
        let (path, disk) = (scratch.path("socket"), Disk::new());
        let server = scripted(&path, &disk, vec![lost, Does::Answers, lost, Does::Answers]);
        let mut client = RemoteComponent::connect(&path, PATIENCE).expect("a server");
        assert_eq!(client.attest_beside(&move_to(1), b"one"), None, "{lost:?}: nobody waits");
        assert_eq!(client.call(&[move_to(1)]), expected, "{lost:?}");
        // Made before the answer was lost, it has its blob; made by the second question, it has none.
        let made: &[&[u8]] = if matches!(lost, Does::Dies) { &[] } else { &[b"one"] };
        assert_eq!(client.blobs(), made, "{lost:?}");
        server.join().expect("no panic");
        assert_eq!(InProcess::new(core(&disk, SLOTS)).blobs(), made, "{lost:?}");
    }
}

#[test]
fn a_move_with_a_blob_is_not_waited_for_while_the_process_stalls() {
    let expected = InProcess::new(core(&Disk::new(), SLOTS)).call(&[move_to(1)]);
    let scratch = Scratch::new();
    let (path, disk) = (scratch.path("socket"), Disk::new());
    let server = scripted(&path, &disk, vec![Does::Stalls, Does::Answers, Does::Answers]);
    // Long patience with everything else: the test would stand still if that were waited for.
    let patience =
        Patience { answer: Duration::from_secs(3_600), beside: Duration::from_millis(30), ..PATIENCE };
    let mut client = RemoteComponent::connect(&path, patience).expect("a server");
    assert_eq!(client.attest_beside(&move_to(1), b"one"), None);
    assert_eq!(client.call(&[move_to(1)]), expected);
    assert_eq!(client.blobs(), Vec::<Vec<u8>>::new());
    server.join().expect("no panic");
}

#[test]
fn a_move_that_is_asked_for_soon_is_made_or_repeated_by_the_patient_question() {
    let expected = InProcess::new(core(&Disk::new(), SLOTS)).call(&[move_to(1)]);
    for lost in [Does::Dies, Does::DiesAfter, Does::BreaksOff, Does::Stalls] {
        let scratch = Scratch::new();
        let (path, disk) = (scratch.path("socket"), Disk::new());
        let server = scripted(&path, &disk, vec![lost, Does::Answers, Does::Answers]);
        let patience =
            Patience { answer: Duration::from_secs(3_600), beside: Duration::from_millis(30), ..PATIENCE };
        let mut client = RemoteComponent::connect(&path, patience).expect("a server");
        assert_eq!(client.call_soon(&move_to(1)), None, "{lost:?}: nobody waits");
        assert_eq!(client.call(&[move_to(1)]), expected, "{lost:?}");
        assert!(matches!(client.call_soon(&move_to(2)), Some(Answer::Attested(_))), "{lost:?}");
        server.join().expect("no panic");
    }
}

#[test]
fn an_answer_that_is_asked_for_soon_and_does_not_fit_halts_for_good() {
    let scratch = Scratch::new();
    let (path, disk) = (scratch.path("socket"), Disk::new());
    let server = scripted(&path, &disk, vec![Does::Confuses]);
    let mut client = RemoteComponent::connect(&path, PATIENCE).expect("a server");
    assert_eq!(client.call_soon(&move_to(1)), Some(HALTED));
    assert!(matches!(client.lost(), Some(Lost::Unfitting)), "{:?}", client.lost());
    assert_eq!(client.call(&[read(0)]), [HALTED]);
    server.join().expect("no panic");
}

#[test]
fn a_second_loss_or_an_answer_that_does_not_fit_halts_for_good() {
    let patience = Patience { reconnect: Duration::from_millis(30), ..PATIENCE };
    for script in [vec![Does::Dies, Does::DiesAfter], vec![Does::Confuses]] {
        let scratch = Scratch::new();
        let (path, disk) = (scratch.path("socket"), Disk::new());
        let server = scripted(&path, &disk, script);
        let mut client = RemoteComponent::connect(&path, patience).expect("a server");
        let answer = client.attest_beside(&move_to(1), b"one");
        let answer = answer.unwrap_or_else(|| client.call(&[move_to(1)]).remove(0));
        assert_eq!(answer, HALTED);
        assert!(matches!(client.lost(), Some(Lost::Connection(_) | Lost::Unfitting)), "{:?}", client.lost());
        assert_eq!(client.attest_beside(&move_to(1), b"one"), Some(HALTED));
        assert_eq!(client.call(&[read(0)]), [HALTED]);
        server.join().expect("no panic");
    }
}

#[test]
fn blobs_that_never_end_are_no_blobs() {
    let scratch = Scratch::new();
    let (path, disk) = (scratch.path("socket"), Disk::new());
    let server = scripted(&path, &disk, vec![Does::Babbles, Does::Babbles]);
    let mut client = RemoteComponent::connect(&path, PATIENCE).expect("a server");
    assert_eq!(client.blobs(), Vec::<Vec<u8>>::new());
    assert!(matches!(client.lost(), Some(Lost::Connection(_))), "{:?}", client.lost());
    assert_eq!(client.call(&[read(0)]), [HALTED]);
    server.join().expect("no panic");
}

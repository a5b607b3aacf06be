//! Killed at any point of a batch and started again, a component never certifies two digests for a value.

use crate::place::{PATIENCE, Place};
use crate::support::{IDENTITY, POINTS, attest, attest_multi, mac, resume, step, verifier};
use crate::{Ran, Test};
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::Duration;
use troth_trusted::{CounterId, CounterValue, Digest, Refusal, Resumed, TrustedCore, VolatileStore};
use troth_trusted_host::{Answer, Call, CertificateVerifier, InProcess, TrustedComponent};
use troth_trusted_process::RemoteComponent;

pub const TESTS: &[Test] = &[
    ("kills::killed_at_every_point_of_a_batch", killed_at_every_point_of_a_batch),
    ("kills::killed_again_and_again_under_load", killed_again_and_again_under_load),
    ("kills::a_failing_store_ends_the_process_with_an_error", a_failing_store_ends_the_process_with_an_error),
    ("kills::stopped_and_continued_it_serves_on", stopped_and_continued_it_serves_on),
    ("kills::it_ends_with_its_supervisor", it_ends_with_its_supervisor),
];

fn batch() -> Vec<Call> {
    vec![
        attest(step(0, 0, 1), [1; 32]),
        attest_multi(&[step(1, 0, 1), step(2, 0, 5)], [2; 32]),
        attest(step(3, 0, 9), [3; 32]),
        resume(1),
    ]
}

fn killed_at_every_point_of_a_batch() -> Ran {
    let expected = InProcess::new(TrustedCore::start(IDENTITY, mac(), VolatileStore)).call(&batch());
    for store in 1..=3 {
        for point in POINTS {
            let place = Place::new();
            let mut task = place.task();
            task.stop = Some((store, point));
            let trusted = place.start(&task);
            let mut client = place.connect();
            let asking = std::thread::spawn(move || (client.call(&batch()), client));
            trusted.wait_for("stopped");
            trusted.kill();
            task.stop = None;
            let trusted = place.start(&task);
            let (answers, mut client) = asking.join().expect("no panic");
            assert_eq!(answers, expected, "killed at store {store}, {point:?}: {:?}", client.lost());
            // Whatever happened, no value is to be had for another digest.
            for (counter, previous, new) in [(0, 0, 1), (1, 0, 1), (2, 0, 5), (3, 0, 9)] {
                let current = CounterValue(new);
                let stands = Refusal::Elsewhere { counter: CounterId(counter), current };
                let other = attest(step(counter, previous, new), [9; 32]);
                assert_eq!(client.call(&[other]), [Answer::Refused(stands)]);
            }
            drop(client);
            trusted.kill();
            let _again = place.start(&task);
            assert_eq!(place.connect().call(&batch()), expected, "after one more kill");
        }
    }
    Ran::Through
}

/// A generator for the moments of the kills, seeded and printed.
struct Moments(u64);

impl Moments {
    /// A number below `bound` (xorshift64).
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn killed_again_and_again_under_load() -> Ran {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).expect("randomness");
    let seed = u64::from_le_bytes(seed) | 1;
    println!("the moments of the kills come from seed {seed}");
    let mut moments = Moments(seed);
    let place = Place::new();
    let task = place.task();
    let mut trusted = place.start(&task);
    let mut client = place.connect();
    let (tell, progress) = channel();
    let (stop, stopped) = channel::<()>();
    let load = std::thread::spawn(move || {
        let mut certified: BTreeMap<(u16, u128), Digest> = BTreeMap::new();
        let verifier = verifier(&mac());
        let mut value = 0u128;
        while stopped.try_recv().is_err() {
            let mut digest = [1; 32];
            digest[16..].copy_from_slice(&value.to_be_bytes());
            let calls: Vec<Call> =
                (0..4).map(|counter| attest(step(counter, value, value + 1), digest)).collect();
            for answer in client.call(&calls) {
                let made = answer.attested().unwrap_or_else(|| panic!("{answer:?}: {:?}", client.lost()));
                assert!(verifier.verify(IDENTITY.replica, made, &digest));
                let known = certified.insert((made.counter.0, made.new.0), digest);
                assert!(known.is_none(), "a value was certified twice: {made:?}");
            }
            value += 1;
            let _ = tell.send(());
        }
        (client, value, certified)
    });
    for _ in 0..25 {
        // What was done before the last kill does not count, nor does one batch that was just being told: a kill
        // amid the repetition of a frame would be the second one for it, at which a client rightly gives up.
        while progress.try_recv().is_ok() {}
        for _ in 0..moments.below(40) + 2 {
            progress.recv_timeout(PATIENCE.answer).expect("progress");
        }
        trusted.kill();
        trusted = place.start(&task);
    }
    progress.recv_timeout(PATIENCE.answer).expect("progress after the last kill");
    let _ = stop.send(());
    let (mut client, value, certified) = load.join().expect("no panic");
    assert_eq!(certified.len() as u128, 4 * value);
    let resumed = client.call(&[resume(2)]);
    let [Answer::Resumed(last)] = resumed.as_slice() else { panic!("{resumed:?}") };
    assert!(matches!(&**last, Resumed::One { certificate, .. } if certificate.new.0 == value));
    println!("{value} batches through 25 kills");
    Ran::Through
}

fn a_failing_store_ends_the_process_with_an_error() -> Ran {
    let place = Place::new();
    let trusted = place.start(&place.task());
    let patience = troth_trusted_process::Patience { reconnect: Duration::from_millis(20), ..PATIENCE };
    let mut client = RemoteComponent::connect(&place.socket(), patience).expect("a process");
    std::fs::write(place.state().join("broken"), []).expect("a file");
    assert_eq!(client.call(&[attest(step(0, 0, 1), [1; 32])]), [Answer::Refused(Refusal::Halted)]);
    trusted.wait_for("ended: the trusted store failed");
    assert_eq!(trusted.end().code(), Some(1));
    Ran::Through
}

fn stopped_and_continued_it_serves_on() -> Ran {
    use nix::sys::signal::Signal;
    let place = Place::new();
    let trusted = place.start(&place.task());
    // A greeting begun and not finished, so that it waits with a time-out when it is stopped.
    let mut beginner = std::os::unix::net::UnixStream::connect(place.socket()).expect("a process");
    std::io::Write::write_all(&mut beginner, &[0, 0]).expect("room");
    trusted.wait_for("event: serving");
    trusted.signal(Signal::SIGSTOP);
    while !status(trusted.pid()).contains("T (stopped)") {
        std::thread::yield_now();
    }
    trusted.signal(Signal::SIGCONT);
    drop(beginner);
    trusted.wait_for("event: the client has gone");
    assert!(place.connect().call(&[attest(step(0, 0, 1), [1; 32])])[0].attested().is_some());
    Ran::Through
}

fn status(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a living child")
}

fn it_ends_with_its_supervisor() -> Ran {
    let place = Place::new();
    let mut trusted = place.start(&place.task());
    let mut client = place.connect();
    assert!(client.call(&[attest(step(0, 0, 1), [1; 32])])[0].attested().is_some());
    trusted.close_input();
    assert!(trusted.end().success());
    Ran::Through
}

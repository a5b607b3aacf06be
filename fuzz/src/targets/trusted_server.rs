//! The trusted process's side of its socket: whatever a client sends, it is answered or turned away, and the
//! process serves on.

use super::trusted_wire::{calls, operations};
use crate::{Bound, Target};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::OnceLock;
use troth_trusted::a2m::{A2m, LOGS};
use troth_trusted::{Certifier, Epoch, Identity, MacKey, TrustedCore, VolatileStore};
use troth_trusted_host::log_room;
use troth_trusted_process::wire::{VERSION, encode_blobs_from, encode_calls, encode_hello, encode_log_call};
use troth_trusted_process::{Event, Limits, serve_with_logs};

pub(super) const TARGET: Target = Target {
    name: "trusted-server",
    run,
    seeds,
    // One frame and a chunk of input, and the answers to a frame of calls.
    bound: Bound { fixed: 256 << 10, per_byte: 64 },
    longest: 4096,
};

/// A directory for the socket, for as long as the process runs.
fn place() -> &'static tempfile::TempDir {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    PLACE.get_or_init(|| tempfile::tempdir().expect("a directory for temporary files"))
}

fn run(input: &[u8]) {
    let path = place().path().join(format!("{:?}", std::thread::current().id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket can be bound");
    let mut client = UnixStream::connect(&path).expect("it is bound");
    client.write_all(input).expect("the socket takes a short input at once");
    client.shutdown(Shutdown::Write).expect("it is open");
    let (mut stop, until) = UnixStream::pair().expect("a pair of sockets");
    let identity = Identity { group: [1; 16], replica: 1, epoch: Epoch(1) };
    let certifier = || Certifier::Mac(MacKey::new(&[9; 32]));
    let core = TrustedCore::start(identity, certifier(), VolatileStore);
    let logs = A2m::start(identity, certifier(), VolatileStore, log_room([4; LOGS]));
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&path).expect("it is bound"));
    let mut limits = Limits::new(uid);
    limits.until = Some(until.into());
    let mut ended = 0;
    let served = serve_with_logs(&listener, core, logs, &limits, &mut |event| {
        if !matches!(event, Event::Connected { .. }) {
            ended += 1;
            stop.write_all(&[0]).expect("the other end is open");
        }
    });
    assert!(served.is_ok(), "a client ended the process: {served:?}");
    assert_eq!(ended, 1, "the client's connection ended once");
    let mut answers = Vec::new();
    // Where it was turned away with input unread, the system may report that instead of the end.
    let _ = client.read_to_end(&mut answers);
}

fn seeds() -> Vec<Vec<u8>> {
    let mut hello = Vec::new();
    encode_hello(VERSION, &mut hello);
    let mut called = hello.clone();
    encode_calls(calls().iter(), &mut called);
    let mut blobs = hello.clone();
    encode_blobs_from(0, &mut blobs);
    let mut logs = hello.clone();
    encode_log_call(&operations(), &mut logs);
    vec![hello, called, blobs, logs]
}

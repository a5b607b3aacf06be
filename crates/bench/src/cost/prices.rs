//! What each thing costs that a server does for a request, measured by itself, in processor time.

use super::clock::{Others, each, look, processor};
use super::trusted::TrustedCall;
use crate::Failure;
use crate::report::median;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use troth_auth::{Check, Ed25519, Ed25519Signer, SignatureScheme, Signer};
use troth_link::{Identity, PeerId, Settings, accept, initiate};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity as Component, MacKey, TrustedCore, Verifier,
    VolatileStore,
};
use troth_types::{Digest, GroupId, ReplicaId};

/// Round trips of one look.
const TRIPS: usize = 1_000;
/// Before each of them.
const PAUSE: Duration = Duration::from_millis(1);
/// Signatures that are checked together, at most: beyond it each costs hardly less.
const TOGETHER: usize = 8;
/// A record of a connection: what a replica writes at a time, about.
pub(crate) const RECORD: usize = 512;

/// Prices in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    /// A write of a record to a connection over the loopback interface, with what the kernel does to deliver it.
    pub(crate) send: f64,
    /// A read of a record that has come.
    pub(crate) receive: f64,
    /// A read of what is empty.
    pub(crate) receive_nothing: f64,
    /// To ask what is ready.
    pub(crate) poll: f64,
    /// To wake who sleeps, and to be woken: both.
    pub(crate) wake: f64,
    /// A call of a trusted process and its answer, with all that both do for it.
    pub(crate) trusted: TrustedCall,
    /// A write of 4 KiB to a file, which the kernel holds.
    pub(crate) file_write: f64,
    /// A system call that does little.
    pub(crate) small_call: f64,
    /// To seal a record and to open it.
    pub(crate) seal_and_open: f64,
    /// An Ed25519 signature.
    pub(crate) sign: f64,
    /// The check of a signature: of one alone, of one of two that are checked together, and so on.
    pub(crate) checks: [f64; TOGETHER],
    /// The check of an HMAC certificate.
    pub(crate) mac: f64,
    /// To ask for 256 bytes of memory and to give them back.
    pub(crate) allocation: f64,
    /// To copy a KiB.
    pub(crate) copy: f64,
}

/// Microseconds to check one of so many signatures in one batch.
fn check(batch: usize) -> Result<f64, Failure> {
    let checks: Vec<Check> = (0..batch.max(1))
        .map(|number| {
            // Of somebody else each, as those that a turn takes are.
            let (signer, digest) = (Ed25519Signer::from_seed([number as u8; 32]), Digest([number as u8; 32]));
            Check { key: signer.public_key(), digest, signature: signer.sign(&digest) }
        })
        .collect();
    let all = each(|| {
        std::hint::black_box(Ed25519.verify_all(&checks));
        Ok(())
    });
    Ok(all? / checks.len() as f64)
}

impl Prices {
    /// Measures each.
    pub(crate) async fn look(directory: &Path) -> Result<Self, Failure> {
        let (mut near, mut far) = pair()?;
        let record = vec![7; RECORD];
        let mut buffer = vec![0; RECORD];
        // Each write has been read before the next: what waits in a socket makes the next write cheaper or dearer.
        let (mut others, clock) = (Others::new(), look());
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for _ in 0..TRIPS {
            others.run();
            let began = processor();
            near.write_all(&record)?;
            sending.push(processor() - began - clock);
            others.run();
            let began = processor();
            far.read_exact(&mut buffer)?;
            receiving.push(processor() - began - clock);
        }
        let (send, receive) = (median(sending), median(receiving));
        far.set_nonblocking(true)?;
        let receive_nothing = each(|| match far.read(&mut buffer) {
            Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(()),
            _ => Err("something came that nobody sent".into()),
        })?;
        near.write_all(&record)?;
        let ready = Ready::of(&far)?;
        let poll = each(|| ready.wait())?;
        drop((near, far));

        let trip = {
            let (near, far) = pair()?;
            round_trips(near, far)?
        };
        let event = eventfd(0, EventfdFlags::NONBLOCK)?;
        let file = std::fs::File::create(directory.join("written"))?;
        file.write_all_at(&vec![0; 1 << 20], 0)?;
        let page = vec![7; 4096];
        let mut at = 0;
        Ok(Self {
            send,
            receive,
            receive_nothing,
            poll,
            wake: (trip / 2.0 - send - receive - poll).max(0.0),
            trusted: super::trusted::call()?,
            file_write: each(|| {
                at = (at + page.len() as u64) % (1 << 20);
                Ok(file.write_all_at(&page, at)?)
            })?,
            small_call: each(|| {
                rustix::io::write(&event, &1_u64.to_ne_bytes())?;
                Ok(())
            })?,
            seal_and_open: (linked().await? - send - receive).max(0.0),
            sign: {
                let signer = Ed25519Signer::from_seed([7; 32]);
                each(|| {
                    std::hint::black_box(signer.sign(&Digest([9; 32])));
                    Ok(())
                })?
            },
            checks: {
                let mut checks = [0.0; TOGETHER];
                for (place, batch) in checks.iter_mut().zip(1..) {
                    *place = check(batch)?;
                }
                checks
            },
            mac: mac()?,
            allocation: each(|| {
                std::hint::black_box(Vec::<u8>::with_capacity(256));
                Ok(())
            })?,
            copy: {
                let (from, mut to) = (vec![7_u8; 1024], vec![0_u8; 1024]);
                each(|| {
                    to.copy_from_slice(std::hint::black_box(&from));
                    std::hint::black_box(&mut to);
                    Ok(())
                })?
            },
        })
    }

    /// Microseconds to check a signature where about so many are checked together.
    pub(crate) fn check(&self, together: f64) -> f64 {
        self.checks[(together.round() as usize).clamp(1, TOGETHER) - 1]
    }

    /// The mean of two looks; where one was more than twice the other something else ran in it, and it counts for nothing.
    pub(crate) fn between(self, other: Self) -> Self {
        let mean = |one: f64, two: f64| {
            let (less, more) = (one.min(two), one.max(two));
            if more > 2.0 * less { less } else { (less + more) / 2.0 }
        };
        Self {
            send: mean(self.send, other.send),
            receive: mean(self.receive, other.receive),
            receive_nothing: mean(self.receive_nothing, other.receive_nothing),
            poll: mean(self.poll, other.poll),
            // It goes by how deep the core sleeps, and either is true at times.
            wake: (self.wake + other.wake) / 2.0,
            trusted: TrustedCall {
                micros: mean(self.trusted.micros, other.trusted.micros),
                writes: mean(self.trusted.writes, other.trusted.writes),
            },
            file_write: mean(self.file_write, other.file_write),
            small_call: mean(self.small_call, other.small_call),
            seal_and_open: mean(self.seal_and_open, other.seal_and_open),
            sign: mean(self.sign, other.sign),
            checks: std::array::from_fn(|batch| mean(self.checks[batch], other.checks[batch])),
            mac: mean(self.mac, other.mac),
            allocation: mean(self.allocation, other.allocation),
            copy: mean(self.copy, other.copy),
        }
    }
}

fn mac() -> Result<f64, Failure> {
    let (key, identity) = (MacKey::new(&[7; 32]), Component { group: [1; 16], replica: 0, epoch: Epoch(1) });
    let mut core = TrustedCore::start(identity, Certifier::Mac(key.clone()), VolatileStore);
    let certificate = core
        .attest(CounterId(0), CounterValue(0), CounterValue(1), &[9; 32])
        .map_err(|_| "a fresh component moves from 0 to 1")?;
    let verifier = key.verifier();
    each(|| {
        std::hint::black_box(verifier.verify(&identity, &certificate, &[9; 32]));
        Ok(())
    })
}

fn pair() -> Result<(TcpStream, TcpStream), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

/// Something that is asked whether a socket is ready.
struct Ready(rustix::fd::OwnedFd);

impl Ready {
    fn of(socket: &impl AsFd) -> Result<Self, Failure> {
        let asked = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&asked, socket, epoll::EventData::new_u64(1), epoll::EventFlags::IN)?;
        Ok(Self(asked))
    }

    fn wait(&self) -> Result<(), Failure> {
        let mut events = Vec::with_capacity(16);
        epoll::wait(&self.0, spare_capacity(&mut events), None::<&Timespec>)?;
        Ok(())
    }
}

/// Microseconds of both threads for a record to another thread that sleeps on another core, and one back.
fn round_trips<S: Read + Write + AsFd + Send + 'static>(mut near: S, mut far: S) -> Result<f64, Failure> {
    let answering = std::thread::spawn(move || -> Result<Vec<f64>, String> {
        stay_on(1);
        let (mut others, mut spent, mut buffer) = (Others::new(), Vec::new(), vec![0; RECORD]);
        let ready = Ready::of(&far).map_err(|why| why.to_string())?;
        for _ in 0..TRIPS {
            let began = processor();
            ready.wait().map_err(|why| why.to_string())?;
            far.read_exact(&mut buffer).map_err(|why| why.to_string())?;
            far.write_all(&buffer).map_err(|why| why.to_string())?;
            spent.push(processor() - began);
            others.run();
        }
        Ok(spent)
    });
    let before = stay_on(0);
    let (mut others, mut spent, mut buffer) = (Others::new(), Vec::new(), vec![7; RECORD]);
    let ready = Ready::of(&near)?;
    for _ in 0..TRIPS {
        others.run();
        // Longer than the other one takes to fill its caches, so that it sleeps.
        std::thread::sleep(PAUSE);
        let began = processor();
        near.write_all(&buffer)?;
        ready.wait()?;
        near.read_exact(&mut buffer)?;
        spent.push(processor() - began);
    }
    if let Some(before) = before {
        // As it was allowed a moment ago.
        let _ = sched_setaffinity(None, &before);
    }
    let answered = answering.join().map_err(|_| "the thread that answers panicked")??;
    Ok(median(spent) + median(answered) - 2.0 * look())
}

/// Keeps this thread on one core, so that it is woken from another one; gives where it could run before. Where that is
/// not allowed the thread runs where it may.
pub(super) fn stay_on(core: usize) -> Option<CpuSet> {
    let before = sched_getaffinity(None).ok()?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok()?;
    Some(before)
}

/// Microseconds to seal a record, send it, receive and open it.
async fn linked() -> Result<f64, Failure> {
    let settings = Settings::new(GroupId(*b"troth-cost-group"));
    let [me, other] = [0, 1].map(|id| Identity::new(PeerId::Replica(ReplicaId(id)), [id as u8 + 1; 32]));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let called = async {
        let stream = tokio::net::TcpStream::connect(address).await?;
        initiate(stream, &other, &me.public_key(), &settings).await
    };
    let heard = async {
        let (stream, _) = listener.accept().await?;
        accept(stream, &me, &settings, |_| Some(other.public_key())).await
    };
    let ((mut reader, _), (_, _, mut writer)) = tokio::try_join!(called, heard)?;
    let record = vec![7; RECORD];
    let (mut others, mut spent) = (Others::new(), Vec::new());
    for _ in 0..TRIPS {
        others.run();
        let began = processor();
        writer.queue(&record)?;
        writer.flush().await?;
        reader.next().await?.ok_or("the connection ended")?;
        spent.push(processor() - began);
    }
    Ok(median(spent) - look())
}

//! The relay: what passes in which weather.

use crate::relay::{Caller, Relay, Weather};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// How long something that must come may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What each connection to a "replica" was told, in the order in which they were made.
type Heard = Rc<RefCell<Vec<Vec<u8>>>>;

fn with_relay(test: impl AsyncFnOnce(&Relay)) {
    with_relay_heard(async |relay, _| test(relay).await);
}

/// Two "replicas" that send back what they get, behind a relay.
fn with_relay_heard(test: impl AsyncFnOnce(&Relay, &Heard)) {
    let heard = Heard::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut targets = Vec::new();
        for _ in 0..2 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            targets.push(listener.local_addr().unwrap().to_string());
            let heard = Rc::clone(&heard);
            tokio::task::spawn_local(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let heard = Rc::clone(&heard);
                    let own = heard.borrow().len();
                    heard.borrow_mut().push(Vec::new());
                    tokio::task::spawn_local(async move {
                        let mut bytes = [0; 4096];
                        while let Ok(read @ 1..) = stream.read(&mut bytes).await {
                            heard.borrow_mut()[own].extend_from_slice(&bytes[..read]);
                            if stream.write_all(&bytes[..read]).await.is_err() {
                                break;
                            }
                        }
                    });
                }
            });
        }
        let relay = Relay::start(&targets).await.unwrap();
        tokio::time::timeout(PATIENCE, test(&relay, &heard)).await.expect("everything comes in time");
    });
}

async fn call(relay: &Relay, from: Caller, to: u16) -> TcpStream {
    TcpStream::connect(relay.address(from, to)).await.unwrap()
}

async fn echo(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).await?;
    assert_eq!(back, bytes);
    Ok(())
}

#[test]
fn clear_links_pass_everything_on_in_order() {
    with_relay(async |relay| {
        let bytes: Vec<u8> = (0..40_000u32).map(|number| number.to_le_bytes()[0]).collect();
        echo(&mut call(relay, Caller::Clients, 0).await, &bytes).await.unwrap();
        echo(&mut call(relay, Caller::Replica(1), 0).await, &bytes).await.unwrap();
    });
}

#[test]
fn a_stalled_link_keeps_what_was_sent_until_it_clears() {
    with_relay(async |relay| {
        let mut stalled = call(relay, Caller::Clients, 0).await;
        let mut other = call(relay, Caller::Clients, 1).await;
        echo(&mut stalled, b"before").await.unwrap();
        relay.around(0, Weather::Stalled);
        stalled.write_all(b"during").await.unwrap();
        // As far as the stalled bytes could have come meanwhile, had they been passed on.
        for _ in 0..50 {
            echo(&mut other, b"other").await.unwrap();
        }
        let mut back = [0; 6];
        assert!(stalled.try_read(&mut back).is_err(), "nothing came");
        relay.clear();
        stalled.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"during");
    });
}

#[test]
fn a_broken_link_ends_its_connections_and_refuses_new_ones() {
    with_relay(async |relay| {
        let mut old = call(relay, Caller::Replica(1), 0).await;
        let mut other = call(relay, Caller::Clients, 0).await;
        echo(&mut old, b"before").await.unwrap();
        relay.between(0, 1, Weather::Broken);
        assert!(matches!(old.read(&mut [0; 1]).await, Ok(0) | Err(_)), "it ends");
        let mut new = call(relay, Caller::Replica(1), 0).await;
        assert!(echo(&mut new, b"during").await.is_err());
        echo(&mut other, b"clients have weather of their own").await.unwrap();
        relay.clear();
        echo(&mut call(relay, Caller::Replica(1), 0).await, b"after").await.unwrap();
    });
}

#[test]
fn a_slow_link_is_late_in_both_directions() {
    with_relay(async |relay| {
        let late = Duration::from_millis(30);
        let mut stream = call(relay, Caller::Clients, 0).await;
        echo(&mut stream, b"before").await.unwrap();
        relay.of_clients(Weather::Slow(late));
        let since = Instant::now();
        echo(&mut stream, b"during").await.unwrap();
        assert!(since.elapsed() >= 2 * late);
    });
}

#[test]
fn a_doubled_link_says_everything_twice_and_its_caller_hears_one_answer() {
    with_relay_heard(async |relay, heard| {
        relay.around(0, Weather::Doubled);
        let mut stream = call(relay, Caller::Replica(1), 0).await;
        for bytes in [&b"one"[..], b"two"] {
            echo(&mut stream, bytes).await.unwrap();
        }
        let twice = [b"onetwo".to_vec(), b"onetwo".to_vec()];
        while heard.borrow()[..] != twice {
            tokio::task::yield_now().await;
        }
        echo(&mut stream, b"no more and no less").await.unwrap();
        relay.clear();
        echo(&mut call(relay, Caller::Replica(1), 0).await, b"after").await.unwrap();
        assert_eq!(heard.borrow().len(), 3);
    });
}

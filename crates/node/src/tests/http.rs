use crate::http::{FRESH, MOST_AT_ONCE, Page, Pages, page, serve};
use crate::snapshot::Snapshot;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::Instant;

fn look() -> Snapshot {
    Snapshot { view: 3, executed: 42, accused: vec![1], accused_clients: vec![7], ..Snapshot::default() }
}

#[test]
fn status_is_json_that_reads_back() {
    let (status, kind, body) = page(b"GET /status HTTP/1.1\r\n\r\n", &look);
    assert_eq!((status, kind), ("200 OK", "application/json"));
    assert_eq!(serde_json::from_str::<Snapshot>(&body).expect("our own JSON"), look());
}

#[test]
fn metrics_have_every_gauge_and_counter_once() {
    let (status, _, body) = page(b"GET /metrics HTTP/1.1\r\n\r\n", &look);
    assert_eq!(status, "200 OK");
    assert!(body.contains("troth_executed_batch 42"), "{body}");
    assert!(body.contains("troth_writes_total 0"), "{body}");
    let mut names: Vec<&str> = body.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((all, names.len()), (58, 58), "{body}");
    assert!(body.ends_with("# EOF\n"));
}

#[test]
fn everything_else_is_refused_politely() {
    assert!(page(b"GET /x HTTP/1.1\r\n\r\n", &look).0.starts_with("404"));
    assert!(page(b"POST /status HTTP/1.1\r\n\r\n", &look).0.starts_with("405"));
    assert!(page(b"\xff\xfe", &look).0.starts_with("405"));
}

#[test]
fn whoever_asks_without_end_has_no_page_made_each_time() {
    let looks = Rc::new(Cell::new(0));
    let counted = Rc::clone(&looks);
    let pages = Pages::new(Rc::new(move || {
        counted.set(counted.get() + 1);
        look()
    }));
    let began = Instant::now();
    let (first, metrics) = (pages.show(Page::Status, began), pages.show(Page::Metrics, began));
    assert!(first.starts_with('{') && metrics.ends_with("# EOF\n"));
    let just_before = began + FRESH - Duration::from_nanos(1);
    assert_eq!(
        (pages.show(Page::Status, just_before), pages.show(Page::Metrics, just_before)),
        (first, metrics)
    );
    assert_eq!(looks.get(), 2, "one look for each page");
    pages.show(Page::Status, began + FRESH);
    assert_eq!(looks.get(), 3, "and another a moment later");
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_ends_where_it_ends() {
    let local = LocalSet::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    local.spawn_local(serve(listener, Rc::new(look)));
    let answer = local.run_until(async {
        let mut asker = TcpStream::connect(address).await.expect("the port is open");
        asker.set_nodelay(true).expect("it is open");
        for byte in b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" {
            asker.write_all(&[*byte]).await.expect("somebody listens");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut answer = String::new();
        asker.read_to_string(&mut answer).await.expect("somebody answers");
        answer
    });
    let answer = answer.await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn silent_askers_lock_nobody_out() {
    let local = LocalSet::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    local.spawn_local(serve(listener, Rc::new(look)));
    let asking = local.run_until(async {
        let mut silent = Vec::new();
        for _ in 0..2 * MOST_AT_ONCE {
            silent.push(TcpStream::connect(address).await.expect("the port is open"));
        }
        let mut asker = TcpStream::connect(address).await.expect("the port is open");
        asker.write_all(b"GET /status HTTP/1.1\r\n\r\n").await.expect("somebody listens");
        let mut answer = String::new();
        asker.read_to_string(&mut answer).await.expect("somebody answers");
        answer
    });
    // Less than the time that the silent ones have.
    let answer = tokio::time::timeout(Duration::from_secs(1), asking).await.expect("nobody was waited for");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

use crate::http::page;
use crate::snapshot::Snapshot;

fn look() -> Snapshot {
    Snapshot { view: 3, executed: 42, accused: vec![1], ..Snapshot::default() }
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
    assert_eq!((all, names.len()), (36, 36), "{body}");
    assert!(body.ends_with("# EOF\n"));
}

#[test]
fn everything_else_is_refused_politely() {
    assert!(page(b"GET /x HTTP/1.1\r\n\r\n", &look).0.starts_with("404"));
    assert!(page(b"POST /status HTTP/1.1\r\n\r\n", &look).0.starts_with("405"));
    assert!(page(b"\xff\xfe", &look).0.starts_with("405"));
}

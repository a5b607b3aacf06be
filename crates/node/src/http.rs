//! `/status` and `/metrics` over the least HTTP that serves them. Beside the request path: a page is
//! made only when somebody asks.

use crate::metrics;
use crate::places::Places;
use crate::snapshot::Snapshot;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Askers served at a time; one more and the oldest is given up.
pub(crate) const MOST_AT_ONCE: usize = 8;
/// Bytes of a request's head.
const MOST_HEAD: usize = 8 << 10;
/// How long an asker may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves until dropped. `look` makes a snapshot.
pub(crate) async fn serve(listener: TcpListener, look: Rc<dyn Fn() -> Snapshot>) {
    let places = Places::new(MOST_AT_ONCE);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (look, place) = (Rc::clone(&look), places.take(from.ip()));
                tokio::task::spawn_local(async move {
                    let answering = tokio::time::timeout(PATIENCE, answer(stream, look.as_ref()));
                    // Whether it was answered is the asker's concern.
                    let _ = place.hold(answering).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, look: &dyn Fn() -> Snapshot) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if head.len() >= MOST_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, kind, body) = page(&head, look);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The status line, media type and body for a request.
pub(crate) fn page(head: &[u8], look: &dyn Fn() -> Snapshot) -> (&'static str, &'static str, String) {
    const TEXT: &str = "text/plain; charset=utf-8";
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != b"GET" {
        return ("405 Method Not Allowed", TEXT, "only GET is served\n".to_owned());
    }
    match path {
        b"/status" => {
            let body = serde_json::to_string(&look()).expect("a snapshot is plain data");
            ("200 OK", "application/json", body)
        }
        b"/metrics" => ("200 OK", metrics::MEDIA_TYPE, metrics::text(&look())),
        _ => ("404 Not Found", TEXT, "there are /status and /metrics\n".to_owned()),
    }
}

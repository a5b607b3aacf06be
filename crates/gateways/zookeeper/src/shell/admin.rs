//! The admin pages over the least HTTP that serves them: `/commands`, `/commands/<name>`, and `/metrics`.

use super::hub::Inbound;
use crate::machine::reports;
use crate::metrics::MEDIA_TYPE;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

/// Askers served at a time.
const MOST_AT_ONCE: usize = 8;
/// Bytes of a request's head.
const MOST_HEAD: usize = 8 << 10;
/// How long an asker may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause where a connection cannot be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// A page: status line, media type and body.
type Page = (&'static str, &'static str, String);

/// Serves until dropped.
pub(super) async fn serve(listener: TcpListener, inbound: mpsc::Sender<Inbound>) {
    let places = Arc::new(Semaphore::new(MOST_AT_ONCE));
    let mut askers = JoinSet::new();
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        while askers.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                let inbound = inbound.clone();
                askers.spawn(async move {
                    // Whether it was answered is the asker's concern.
                    let _ = tokio::time::timeout(PATIENCE, answer(stream, &inbound)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn answer(mut stream: TcpStream, inbound: &mpsc::Sender<Inbound>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if head.len() >= MOST_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, kind, body) = page(&head, inbound).await;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

const HTML: &str = "text/html;charset=utf-8";

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Metrics,
    /// What reports there are.
    List,
    /// The report of this name, if there is one.
    Report(String),
}

/// Reads the head of a request; else the status line, and what is said.
pub(crate) fn read_head(head: &[u8]) -> Result<Wanted, (&'static str, &'static str)> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != b"GET" {
        return Err(("405 Method Not Allowed", "only GET is served\n"));
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match std::str::from_utf8(path).unwrap_or_default() {
        "/metrics" => Ok(Wanted::Metrics),
        "/commands" | "/commands/" => Ok(Wanted::List),
        path => match path.strip_prefix("/commands/") {
            Some(name) => Ok(Wanted::Report(name.to_owned())),
            None => Err(("404 Not Found", "there are /commands and /metrics\n")),
        },
    }
}

async fn page(head: &[u8], inbound: &mpsc::Sender<Inbound>) -> Page {
    const JSON: &str = "application/json";
    let going_down = || ("503 Service Unavailable", HTML, "the gateway is going down\n".to_owned());
    match read_head(head) {
        Err((status, why)) => (status, HTML, why.to_owned()),
        Ok(Wanted::List) => {
            let links = reports().map(|name| format!("<a href=\"/commands/{name}\">{name}</a>\n<br/>\n"));
            ("200 OK", HTML, links.collect())
        }
        Ok(Wanted::Metrics) => {
            let (asked, said) = oneshot::channel();
            match (inbound.send(Inbound::Metrics(asked)).await, said.await) {
                (Ok(()), Ok(text)) => ("200 OK", MEDIA_TYPE, text),
                _ => going_down(),
            }
        }
        Ok(Wanted::Report(name)) => {
            let (asked, said) = oneshot::channel();
            match (inbound.send(Inbound::Report(name.clone(), asked)).await, said.await) {
                (Ok(()), Ok(Some(report))) => ("200 OK", JSON, report),
                (Ok(()), Ok(None)) => {
                    let unknown =
                        serde_json::json!({ "command": name, "error": format!("Unknown command: {name}") });
                    ("404 Not Found", JSON, unknown.to_string())
                }
                _ => going_down(),
            }
        }
    }
}

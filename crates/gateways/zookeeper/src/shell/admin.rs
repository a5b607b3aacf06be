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

async fn page(head: &[u8], inbound: &mpsc::Sender<Inbound>) -> Page {
    const HTML: &str = "text/html;charset=utf-8";
    const JSON: &str = "application/json";
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != b"GET" {
        return ("405 Method Not Allowed", HTML, "only GET is served\n".to_owned());
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let path = std::str::from_utf8(path).unwrap_or_default();
    if path == "/metrics" {
        let (asked, said) = oneshot::channel();
        let sent = inbound.send(Inbound::Metrics(asked)).await;
        return match (sent, said.await) {
            (Ok(()), Ok(text)) => ("200 OK", MEDIA_TYPE, text),
            _ => ("503 Service Unavailable", HTML, "the gateway is going down\n".to_owned()),
        };
    }
    if matches!(path, "/commands" | "/commands/") {
        let links = reports().map(|name| format!("<a href=\"/commands/{name}\">{name}</a>\n<br/>\n"));
        return ("200 OK", HTML, links.collect());
    }
    let Some(name) = path.strip_prefix("/commands/") else {
        return ("404 Not Found", HTML, "there are /commands and /metrics\n".to_owned());
    };
    let (asked, said) = oneshot::channel();
    let sent = inbound.send(Inbound::Report(name.to_owned(), asked)).await;
    match (sent, said.await) {
        (Ok(()), Ok(Some(report))) => ("200 OK", JSON, report),
        (Ok(()), Ok(None)) => {
            let unknown = serde_json::json!({ "command": name, "error": format!("Unknown command: {name}") });
            ("404 Not Found", JSON, unknown.to_string())
        }
        _ => ("503 Service Unavailable", HTML, "the gateway is going down\n".to_owned()),
    }
}

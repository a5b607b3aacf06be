//! `/status` and `/metrics` over the least HTTP that serves them. Beside the request path: a page is
//! made only when somebody asks, and for all who ask within a moment together.

use crate::metrics;
use crate::places::Places;
use crate::snapshot::Snapshot;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Askers served at a time; one more and the oldest is given up.
pub(crate) const MOST_AT_ONCE: usize = 8;
/// Bytes of a request's head.
const MOST_HEAD: usize = 8 << 10;
/// What ends a head.
const END: &[u8] = b"\r\n\r\n";
/// How long an asker may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a page is shown. Anybody may ask, and whoever asks without end is to have no page made for each time.
pub(crate) const FRESH: Duration = Duration::from_millis(20);
const TEXT: &str = "text/plain; charset=utf-8";

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Status,
    Metrics,
}

impl Page {
    fn kind(self) -> &'static str {
        match self {
            Self::Status => "application/json",
            Self::Metrics => metrics::MEDIA_TYPE,
        }
    }

    fn text(self, look: &dyn Fn() -> Snapshot) -> String {
        match self {
            Self::Status => serde_json::to_string(&look()).expect("a snapshot is plain data"),
            Self::Metrics => metrics::text(&look()),
        }
    }
}

/// A page, and when it was made.
type Made = (Instant, Rc<str>);

/// The pages that were made last.
pub(crate) struct Pages {
    look: Rc<dyn Fn() -> Snapshot>,
    last: [RefCell<Option<Made>>; 2],
}

impl Pages {
    /// None yet. `look` makes a snapshot.
    pub(crate) fn new(look: Rc<dyn Fn() -> Snapshot>) -> Self {
        Self { look, last: Default::default() }
    }

    /// A page, as it was a moment before `now` or is.
    pub(crate) fn show(&self, page: Page, now: Instant) -> Rc<str> {
        let mut last = self.last[page as usize].borrow_mut();
        match &*last {
            Some((made, text)) if now < *made + FRESH => Rc::clone(text),
            _ => {
                let text: Rc<str> = page.text(self.look.as_ref()).into();
                *last = Some((now, Rc::clone(&text)));
                text
            }
        }
    }
}

/// Serves until dropped. `look` makes a snapshot.
pub(crate) async fn serve(listener: TcpListener, look: Rc<dyn Fn() -> Snapshot>) {
    let (places, pages) = (Places::new(MOST_AT_ONCE), Rc::new(Pages::new(look)));
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (pages, place) = (Rc::clone(&pages), places.take(from.ip()));
                tokio::task::spawn_local(async move {
                    let answering = tokio::time::timeout(PATIENCE, answer(stream, &pages));
                    // Whether it was answered is the asker's concern.
                    let _ = place.hold(answering).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, pages: &Pages) -> io::Result<()> {
    let (mut head, mut searched) = (Vec::<u8>::new(), 0);
    // Each byte is looked at a few times, however few come at once.
    while !head[searched..].windows(END.len()).any(|window| window == END) {
        searched = head.len().saturating_sub(END.len() - 1);
        if head.len() >= MOST_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let (status, kind, body) = match asked(&head) {
        Ok(page) => ("200 OK", page.kind(), pages.show(page, Instant::now())),
        Err((status, why)) => (status, TEXT, why.into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The page that a request is for; else the status line and what is said.
fn asked(head: &[u8]) -> Result<Page, (&'static str, &'static str)> {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != b"GET" {
        return Err(("405 Method Not Allowed", "only GET is served\n"));
    }
    match path {
        b"/status" => Ok(Page::Status),
        b"/metrics" => Ok(Page::Metrics),
        _ => Err(("404 Not Found", "there are /status and /metrics\n")),
    }
}

/// The status line, media type and body for a request.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn page(head: &[u8], look: &dyn Fn() -> Snapshot) -> (&'static str, &'static str, String) {
    match asked(head) {
        Ok(page) => ("200 OK", page.kind(), page.text(look)),
        Err((status, why)) => (status, TEXT, why.to_owned()),
    }
}

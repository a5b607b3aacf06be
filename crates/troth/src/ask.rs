//! Asks replicas for their `/status`.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use troth_node::Snapshot;
use troth_node::config::{Cluster, hex};

/// How long a replica may take for all of its answer. Not for each piece: one that sends a byte now and
/// then would hold whoever asks for as long as it likes.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer.
const MOST: u64 = 1 << 20;

/// The snapshot of every replica of this group, in order; the reason where there is none.
pub(crate) fn all(cluster: &Cluster) -> Vec<Result<Snapshot, String>> {
    let answers = std::thread::scope(|scope| {
        let asked: Vec<_> = cluster
            .replicas
            .iter()
            .map(|replica| {
                scope.spawn(|| match &replica.http {
                    Some(address) => one(address),
                    None => Err("has no http address in cluster.toml".to_owned()),
                })
            })
            .collect();
        asked.into_iter().map(|asked| asked.join().expect("asking does not panic")).collect()
    });
    of_this_group(cluster, answers)
}

/// The same answers, without those of other groups' replicas that listen where this one's should.
pub(crate) fn of_this_group(
    cluster: &Cluster,
    answers: Vec<Result<Snapshot, String>>,
) -> Vec<Result<Snapshot, String>> {
    let group = hex::encode(&cluster.group.id().0);
    let own = |answer: Result<Snapshot, String>| match answer {
        Ok(says) if says.group != group => Err(format!(
            "a replica of another group answers there (process {}); stop that group, or give one of the two other ports",
            says.pid
        )),
        answer => answer,
    };
    answers.into_iter().map(own).collect()
}

/// One replica's snapshot.
pub(crate) fn one(address: &str) -> Result<Snapshot, String> {
    let body = get(address, "/status").map_err(|why| match why.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "does not answer".to_owned(),
        _ => why.to_string(),
    })?;
    serde_json::from_str(&body).map_err(|why| format!("answers what is no status: {why}"))
}

/// The body of an HTTP answer.
pub(crate) fn get(address: &str, path: &str) -> std::io::Result<String> {
    let target = address
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| std::io::Error::other("the address names no machine"))?;
    let give_up = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let question = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let answer = read_until(stream, give_up)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) =
        answer.split_once("\r\n\r\n").ok_or_else(|| std::io::Error::other("no HTTP answer"))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(std::io::Error::other(head.lines().next().unwrap_or_default().to_owned()));
    }
    Ok(body.to_owned())
}

/// All that is sent, of [`MOST`] bytes at most.
fn read_until(stream: TcpStream, give_up: Instant) -> std::io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    let mut stream = stream.take(MOST);
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.get_ref().set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

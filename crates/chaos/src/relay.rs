//! Every connection of the cluster passes here: one listener per pair of who calls and who is called,
//! so that each link has weather of its own. Bytes are passed on once and in order, late or not at all
//! with the connection's end: what TCP promises holds, and so do the links' own ciphers. A doubled link says
//! everything a second time on a connection of its own, as whoever replays what it heard would.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The most bytes under way in one direction of a connection.
const CHUNK: usize = 16 << 10;

/// How long the second receiver of a doubled link may take.
const LISTENS: Duration = Duration::from_millis(50);

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// A replica, by number.
    Replica(u16),
    /// Any client.
    Clients,
}

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Passes everything on.
    Clear,
    /// Passes each chunk on so much later.
    Slow(Duration),
    /// Keeps connections and passes nothing on: what was sent arrives when the weather clears.
    Stalled,
    /// Ends every connection, and every new one at once.
    Broken,
    /// Passes everything on, and what comes on new connections a second time, on another one whose answers
    /// nobody hears.
    Doubled,
}

struct Link {
    address: String,
    weather: watch::Sender<Weather>,
}

/// The running relay. It needs a `LocalSet`.
pub(crate) struct Relay {
    links: BTreeMap<(Caller, u16), Link>,
}

impl Relay {
    /// Listens for every replica and the clients on behalf of every replica; `targets` are where the
    /// replicas themselves listen.
    pub(crate) async fn start(targets: &[String]) -> io::Result<Self> {
        let mut links = BTreeMap::new();
        for (to, target) in (0u16..).zip(targets) {
            let replicas = (0u16..).zip(targets).map(|(from, _)| Caller::Replica(from));
            for from in replicas.chain([Caller::Clients]).filter(|from| *from != Caller::Replica(to)) {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?.to_string();
                let (weather, seen) = watch::channel(Weather::Clear);
                tokio::task::spawn_local(listen(listener, target.clone(), seen));
                links.insert((from, to), Link { address, weather });
            }
        }
        Ok(Self { links })
    }

    /// Where this caller finds that replica.
    pub(crate) fn address(&self, from: Caller, to: u16) -> &str {
        &self.links[&(from, to)].address
    }

    /// Sets the weather of all links to and from a replica.
    pub(crate) fn around(&self, replica: u16, weather: Weather) {
        self.set(weather, |from, to| from == Caller::Replica(replica) || to == replica);
    }

    /// Sets the weather between two replicas.
    pub(crate) fn between(&self, one: u16, other: u16, weather: Weather) {
        self.set(weather, |from, to| {
            (from, to) == (Caller::Replica(one), other) || (from, to) == (Caller::Replica(other), one)
        });
    }

    /// Sets the weather between the clients and all replicas.
    pub(crate) fn of_clients(&self, weather: Weather) {
        self.set(weather, |from, _| from == Caller::Clients);
    }

    /// Clears the weather everywhere.
    pub(crate) fn clear(&self) {
        self.set(Weather::Clear, |_, _| true);
    }

    fn set(&self, weather: Weather, which: impl Fn(Caller, u16) -> bool) {
        for ((from, to), link) in &self.links {
            if which(*from, *to) {
                link.weather.send_replace(weather);
            }
        }
    }
}

async fn listen(listener: TcpListener, target: String, weather: watch::Receiver<Weather>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::task::spawn_local(connection(stream, target.clone(), weather.clone()));
            }
            // Out of descriptors, or the caller is gone: the next one may have more luck.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// One connection, until either end closes or the link breaks. Ends both ends alike.
async fn connection(near: TcpStream, target: String, weather: watch::Receiver<Weather>) {
    let mut broken = weather.clone();
    let passing = async {
        let far = TcpStream::connect(target.as_str()).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let twice = *weather.borrow() == Weather::Doubled;
        let second = if twice { Some(TcpStream::connect(target.as_str()).await?) } else { None };
        let (near_reads, near_writes) = near.into_split();
        let (far_reads, far_writes) = far.into_split();
        let (second_reads, second_writes) = second.map(TcpStream::into_split).unzip();
        let unheard = async {
            if let Some(mut reads) = second_reads {
                // Its end does not end the first, however it ends.
                let _ = tokio::io::copy(&mut reads, &mut tokio::io::sink()).await;
            }
            std::future::pending::<io::Result<()>>().await
        };
        tokio::select! {
            ended = pass(near_reads, far_writes, second_writes, weather.clone()) => ended,
            ended = pass(far_reads, near_writes, None, weather) => ended,
            ended = unheard => ended,
        }
    };
    tokio::select! {
        biased;
        // The relay being gone ends its connections too.
        _ = broken.wait_for(|weather| *weather == Weather::Broken) => {}
        // How a connection ended is the business of those who held it; they see it end.
        _ = passing => {}
    }
}

/// One direction, until its sender closes; to a second receiver too, as long as that one listens.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut second: Option<OwnedWriteHalf>,
    mut weather: watch::Receiver<Weather>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        let now = *weather.borrow();
        if let Weather::Slow(late) = now {
            tokio::time::sleep(late).await;
        }
        if weather.wait_for(|weather| *weather != Weather::Stalled).await.is_err() {
            return Ok(());
        }
        to.write_all(&chunk[..read]).await?;
        if let Some(other) = &mut second
            && !matches!(tokio::time::timeout(LISTENS, other.write_all(&chunk[..read])).await, Ok(Ok(())))
        {
            second = None;
        }
    }
}

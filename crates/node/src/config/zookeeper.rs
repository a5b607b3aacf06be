//! What the replicas of a coordination service have alike, beside what all groups have.

use super::checks::Checks;
use super::cluster::{ReplicaEntry, Service, Timing};
use super::error::ConfigError;
use super::hex;
use super::raw::{RawCluster, RawZooKeeper};
use bytes::Bytes;
use core::fmt::Write as _;
use toml::Spanned;
use troth_types::{GroupId, Hasher, Limits};
use troth_zookeeper::ZooKeeper;

/// The longest time-out of a session in milliseconds: ZooKeeper's clients hear of it as a positive `int`.
const MOST_TIMEOUT: u64 = i32::MAX as u64;
/// The shortest: below it a session would end between two looks of its client.
const LEAST_TIMEOUT: u64 = 100;
/// The longest grace of a session in milliseconds.
const MOST_GRACE: u64 = 600_000;
/// The most sessions of one gateway that may be asked for.
const MOST_SESSIONS: u64 = 10_000_000;
/// Characters of a SHA-1 digest in Base64.
const DIGEST: usize = 28;

/// Bounds of a new group that serves this, where the defaults of all do not do.
///
/// * A ZooKeeper packet may have 1 MiB less a byte, and a frame holds at least one, with what a gateway and the
///   signature put around it.
/// * An answer may be longer than its request: names of children, the parts of a `multiRead`. 4 MiB is what a gateway
///   takes, and four times what ZooKeeper's own clients do.
/// * One change is told to each session that watches, and all sessions of a gateway share its outbox. What does not fit
///   is lost, and the gateway has its sessions connect anew.
/// * Reads that set watches are ordered, and their answers are kept like those of writes.
pub(super) const LIMITS: Limits = Limits {
    frame_bytes: (1 << 20) + (64 << 10),
    result_bytes: 4 << 20,
    outbox_events: 1 << 16,
    client_bytes: troth_exec::MAX_CLIENT_BYTES,
    ..Limits::DEFAULT
};

/// Reads the table; refuses one that nobody would read.
pub(super) fn check(
    checks: &Checks<'_>,
    raw: Option<&Spanned<RawZooKeeper>>,
    service: Service,
) -> Result<ZooKeeper, ConfigError> {
    let default = ZooKeeper::default();
    let Some(spanned) = raw else { return Ok(default) };
    if service != Service::ZooKeeper {
        return Err(checks.0.error(
            spanned.span(),
            format!("the group serves \"{}\", which has no use for [zookeeper]", service.name()),
            "remove the table, or set service = \"zookeeper\"",
        ));
    }
    let raw = spanned.get_ref();
    let timeout = |value: &Option<Spanned<u64>>, default: u32, what| match value {
        None => Ok(default),
        Some(value) => checks
            .number(value, LEAST_TIMEOUT, MOST_TIMEOUT, what)
            .map(|number| u32::try_from(number).expect("bounded")),
    };
    let least = timeout(&raw.min_session_timeout_ms, default.timeouts.0, "min_session_timeout_ms")?;
    let most = timeout(&raw.max_session_timeout_ms, default.timeouts.1, "max_session_timeout_ms")?;
    if least > most {
        let given = raw.min_session_timeout_ms.as_ref().or(raw.max_session_timeout_ms.as_ref());
        return Err(checks.0.error(
            given.map_or(spanned.span(), Spanned::span),
            format!("no session's time-out is between {least} and {most} ms"),
            "make min_session_timeout_ms at most max_session_timeout_ms",
        ));
    }
    Ok(ZooKeeper {
        grace: match &raw.session_grace_ms {
            None => default.grace,
            Some(value) => checks
                .number(value, 1, MOST_GRACE, "session_grace_ms")
                .map(|number| u32::try_from(number).expect("bounded"))?,
        },
        superuser: raw.superuser.as_ref().map(|superuser| user(checks, superuser)).transpose()?,
        timeouts: (least, most),
        sessions: match &raw.gateway_sessions {
            None => default.sessions,
            Some(value) => checks.number(value, 1, MOST_SESSIONS, "gateway_sessions")?,
        },
        enforces_quotas: raw.enforce_quotas.as_ref().map_or(default.enforces_quotas, |on| *on.get_ref()),
        ..default
    })
}

/// Refuses patience with primaries by which one could end a session whose client is there, or a grace that does not cover
/// it: see [`ZooKeeper::grace`].
pub(super) fn fits(
    checks: &Checks<'_>,
    raw: &RawCluster,
    timing: &Timing,
    grace: u32,
) -> Result<(), ConfigError> {
    // Proposals are held against clocks that may be half the bound off, to either side.
    let ahead = 3 * timing.clock_bound_ms + timing.suspect_after_ms;
    let least = 2 * ahead;
    if u64::from(grace) >= least {
        return Ok(());
    }
    let given = [
        raw.zookeeper.as_ref().and_then(|table| table.get_ref().session_grace_ms.as_ref()),
        raw.timing.clock_bound_ms.as_ref(),
        raw.timing.suspect_after_ms.as_ref(),
    ];
    Err(checks.0.error(
        given.into_iter().flatten().next().map_or(0..0, Spanned::span),
        format!(
            "a faulty primary could have the agreed time run ahead by {ahead} ms, three times clock_bound_ms and suspect_after_ms, and end sessions too early"
        ),
        format!("in a new group set session_grace_ms of [zookeeper] to at least {least}; or lower clock_bound_ms or suspect_after_ms"),
    ))
}

/// What is said of a superuser that is none.
pub(super) const NO_USER: &str = "the superuser is not a name and a digest";
/// How to mend that.
pub(super) const USER: &str =
    "write name:digest, the digest being the Base64 of the SHA-1 of name:password (28 characters)";

/// Whether this is a user with the digest of name and password, as ZooKeeper's `DigestAuthenticationProvider` prints it.
/// Names that the configuration could not hold as they are are not taken.
pub(super) fn is_user(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && !name.chars().any(|letter| letter.is_control() || "\"\\".contains(letter))
    };
    let is_digest = |digest: &str| {
        let known = |letter: char| letter.is_ascii_alphanumeric() || "+/".contains(letter);
        digest.len() == DIGEST && digest.strip_suffix('=').is_some_and(|rest| rest.chars().all(known))
    };
    text.split_once(':').is_some_and(|(name, digest)| is_name(name) && is_digest(digest))
}

fn user(checks: &Checks<'_>, value: &Spanned<String>) -> Result<String, ConfigError> {
    let text = value.get_ref();
    if is_user(text) { Ok(text.clone()) } else { Err(checks.0.error(value.span(), NO_USER, USER)) }
}

/// What operations and state of the service look like, and mean: groups of builds in which that differs are none.
const FORM: u64 = 9;

/// What of it names the group: all that its replicas must have alike.
pub(super) fn name(settings: &ZooKeeper, hasher: &mut Hasher) {
    // Taken apart, so that what is added is not forgotten here. The group's name and the text follow from the rest of it.
    let ZooKeeper { group: _, superuser, config: _, timeouts, grace, sessions, enforces_quotas } = settings;
    hasher.bytes(b"zookeeper").number(FORM).bytes(superuser.as_deref().unwrap_or_default().as_bytes());
    hasher.number(timeouts.0.into()).number(timeouts.1.into()).number((*grace).into());
    hasher.number(*sessions).number(u64::from(*enforces_quotas));
}

/// What `/zookeeper/config` says: who the replicas were when the group was made. It is state of the service, which has
/// no addresses: they may differ from machine to machine and change later. It has ZooKeeper's form, but no `server.N`
/// lines, because clients would connect to what they find there.
pub(super) fn text(group: GroupId, protocol: &str, replicas: &[ReplicaEntry]) -> Bytes {
    let mut text = format!(
        "# Group {} as it was made; `troth status` and `troth admin show` tell who serves now.\nprotocol={protocol}\n",
        hex::encode(&group.0)
    );
    for (number, replica) in replicas.iter().enumerate() {
        writeln!(text, "replica.{number}={}", hex::encode(&replica.host_key.0)).expect("a string takes all");
    }
    text += "version=0";
    Bytes::from(text)
}

/// The lines of the configuration that say what is not as usual.
pub(super) fn lines(settings: &ZooKeeper) -> String {
    let (usual, mut lines) = (ZooKeeper::default(), String::new());
    let ZooKeeper { group: _, superuser, config: _, timeouts, grace, sessions, enforces_quotas } = settings;
    if let Some(superuser) = superuser {
        writeln!(lines, "superuser = \"{superuser}\"").expect("a string takes all");
    }
    let numbers = [
        ("min_session_timeout_ms", u64::from(timeouts.0), u64::from(usual.timeouts.0)),
        ("max_session_timeout_ms", u64::from(timeouts.1), u64::from(usual.timeouts.1)),
        ("session_grace_ms", u64::from(*grace), u64::from(usual.grace)),
        ("gateway_sessions", *sessions, usual.sessions),
    ];
    for (name, value, _) in numbers.into_iter().filter(|(_, value, usual)| value != usual) {
        writeln!(lines, "{name} = {value}").expect("a string takes all");
    }
    if *enforces_quotas {
        lines += "enforce_quotas = true\n";
    }
    lines
}

//! The import, the comparison, and what is said of them.

use super::place::Told;
use super::side::Side;
use super::tally::Tally;
use super::walk::{AT_ONCE, Extra, Mode, Walk, below, is_systems};
use crate::failure::{Failure, NO, NOT_DONE};
use crate::print::{foreign, note, say};
use std::collections::BTreeSet;
use troth_zookeeper::jute::Output;
use troth_zookeeper::opcode;
use troth_zookeeper_client::Tls;

/// Where quotas are.
const QUOTA: &str = "/zookeeper/quota";
/// The most changes that wait to be looked at.
const EVENTS: usize = 16_384;
/// The most changed nodes that are compared once more, and the bytes of their paths.
const MOST_TOUCHED: usize = 100_000;
const MOST_TOUCHED_BYTES: usize = 64 << 20;
/// How often that is done before the source is said to change all the time.
const ROUNDS: usize = 10;
/// `AddWatchMode.PERSISTENT_RECURSIVE`.
const RECURSIVE: i32 = 1;

/// What is to be done.
pub(super) struct Plan {
    pub(super) path: String,
    pub(super) extra: Extra,
    pub(super) told: Vec<Told>,
    pub(super) dry_run: bool,
    pub(super) compare_only: bool,
}

/// Who is to watch the source, and where.
pub(super) struct Watcher<'a> {
    pub(super) servers: &'a [String],
    pub(super) tls: Option<&'a Tls>,
    pub(super) digests: &'a [String],
}

/// A part of both trees: the nodes themselves, or the quotas on them.
#[derive(Debug)]
struct Part {
    quotas: bool,
    source: String,
    target: String,
}

/// What changed at the source since it is watched.
#[derive(Debug, Default)]
struct Touched {
    paths: BTreeSet<String>,
    bytes: usize,
    /// There were more, or such as have longer paths than are taken.
    over: bool,
}

impl Touched {
    fn take(&mut self, from: &mut Side) {
        while let Some(event) = from.connection.event() {
            self.note(event.path);
        }
    }

    fn note(&mut self, path: Option<String>) {
        let room = MOST_TOUCHED_BYTES - self.bytes;
        let path = path.filter(|path| self.paths.len() < MOST_TOUCHED && path.len() <= room);
        let Some(path) = path.filter(|_| !self.over) else {
            self.over = true;
            return;
        };
        let bytes = path.len();
        if self.paths.insert(path) {
            self.bytes += bytes;
        }
    }

    fn take_paths(&mut self) -> BTreeSet<String> {
        self.bytes = 0;
        std::mem::take(&mut self.paths)
    }
}

/// Does what is planned, and says what came of it.
pub(super) async fn run(
    plan: &Plan,
    source: Side,
    target: Side,
    watcher: &Watcher<'_>,
) -> Result<(), Failure> {
    let parts = [
        Part { quotas: false, source: source.prefix.clone(), target: String::new() },
        Part { quotas: true, source: format!("{QUOTA}{}", source.prefix), target: QUOTA.to_owned() },
    ];
    let mut work = Work { plan, source, target, parts };
    let before = work.source.sync().await?;
    work.present().await?;
    let (mut problems, mut imported) = (0, None);
    if !plan.dry_run && !plan.compare_only {
        let mut tally = Tally::new("Imported");
        note!("Importing from the {}", work.source.name);
        for part in 0..work.parts.len() {
            work.walk(part, Mode::Apply, &mut tally, &mut || ()).await?;
        }
        say!("Written: {}", tally.written());
        (problems, imported) = (tally.problems, Some(before));
    }
    let mut tally = Tally::new("Compared");
    if plan.dry_run {
        for part in 0..work.parts.len() {
            work.walk(part, Mode::Look, &mut tally, &mut || ()).await?;
        }
        describe(&work.source, &tally);
        say!("Nothing was written; {} differences.", tally.differences);
        return if tally.problems > 0 { Err(incomplete(tally.problems)) } else { Ok(()) };
    }
    let still = work.verify(watcher, imported, &mut tally).await?;
    describe(&work.source, &tally);
    say!("{still}");
    let differences = tally.differences;
    match (still, differences, problems.max(tally.problems)) {
        (Stillness::Unknown | Stillness::Changing, 0, 0) => Err(Failure::new(
            NO,
            "no difference was found, but the source was changing, so that there may be some\n  mend: stop all who write there, and run \
             the same command again",
        )),
        (_, 0, 0) => {
            say!("Both trees are equal.");
            Ok(())
        }
        (_, 0, problems) => Err(incomplete(problems)),
        (_, differences, problems) => Err(Failure::new(
            NO,
            format!(
                "{differences} differences, and {problems} nodes that could not be read or written\n  mend: run the same command again; where writers of the source are stopped and only the \
                 destination has a node, with --delete-extra or --keep-extra"
            ),
        )),
    }
}

fn incomplete(problems: u64) -> Failure {
    Failure::new(NO, format!("{problems} nodes could not be read or written; they are named above"))
}

/// Whether the source stood still while it was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stillness {
    /// No transaction at all.
    Still(i64),
    /// There were transactions, and every node that they touched was compared after them.
    Followed(i64),
    /// Nodes changed again and again.
    Changing,
    /// There were transactions, and nobody knows what they did.
    Unknown,
}

impl std::fmt::Display for Stillness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Still(zxid) => {
                write!(f, "The source stood still at transaction {zxid:#x} while both were compared.")
            }
            Self::Followed(zxid) => write!(
                f,
                "The source was in use while both were compared; nodes that changed were compared again, up to transaction {zxid:#x}. \
                 Changes of access control lists are not told of: before clients change over, stop all writers and run this again."
            ),
            Self::Changing => write!(f, "The source changed faster than it could be compared."),
            Self::Unknown => {
                write!(f, "The source was in use while both were compared, and does not tell what changed.")
            }
        }
    }
}

/// Says what there is, and what does not come along.
fn describe(source: &Side, tally: &Tally) {
    say!("The {}: {} nodes to carry, {} bytes of data", source.name, tally.nodes, tally.bytes);
    for (count, what) in [
        (tally.ephemerals, "ephemeral nodes of the source are left out: their sessions are not here"),
        (tally.live, "ephemeral nodes of the destination were let be: clients use it already"),
        (tally.kept, "nodes, with what is below them, are only at the destination"),
        (
            tally.told,
            "nodes that --kind names are on both sides; those that an earlier run brought stay what they were made",
        ),
        (tally.gone, "containers or nodes with a time to live have gone by themselves at the destination"),
        (
            tally.unprovable,
            "entries of access control lists have digests other than SHA-1: nobody can prove to be them here",
        ),
    ] {
        if count > 0 {
            say!("{count} {what}");
        }
    }
}

struct Work<'a> {
    plan: &'a Plan,
    source: Side,
    target: Side,
    parts: [Part; 2],
}

impl Work<'_> {
    fn enter(&mut self, part: usize) {
        self.source.prefix.clone_from(&self.parts[part].source);
        self.target.prefix.clone_from(&self.parts[part].target);
    }

    /// Whether both sides have the node of a part at which it begins.
    async fn start(&self) -> Result<(bool, bool), Failure> {
        let path = &self.plan.path;
        let mut there = [false; 2];
        for (side, there) in [&self.source, &self.target].into_iter().zip(&mut there) {
            let stat = side.looked_at(side.look_at(path)).await?;
            let problem = |wrong| {
                Failure::new(NOT_DONE, format!("{}: {}: {wrong}", side.name, foreign(&side.at(path))))
            };
            *there = stat.map_err(problem)?.is_some();
        }
        Ok((there[0], there[1]))
    }

    /// Checks that there is something to import.
    async fn present(&mut self) -> Result<(), Failure> {
        self.enter(0);
        let (source, _) = self.start().await?;
        if !source {
            let path = foreign(&self.source.at(&self.plan.path));
            return Err(Failure::usage(format!("the {} has no node {path}", self.source.name)));
        }
        Ok(())
    }

    async fn walk(
        &mut self,
        part: usize,
        mode: Mode,
        tally: &mut Tally,
        between: &mut impl FnMut(),
    ) -> Result<(), Failure> {
        self.enter(part);
        let (source, target) = self.start().await?;
        if !source && !target {
            return Ok(());
        }
        let (sides, quotas) = ((&self.source, &self.target), self.parts[part].quotas);
        let mut walk = Walk::new(sides, mode, self.plan, quotas, tally);
        if mode == Mode::Apply && source && !target {
            // From the root downwards, one by one: each is needed for the next.
            let above: Vec<&str> =
                self.plan.path.match_indices('/').map(|(at, _)| &self.plan.path[..at]).collect();
            for path in above.into_iter().filter(|path| !path.is_empty()) {
                let there = self.target.looked_at(self.target.look_at(path)).await?;
                if there == Ok(None) {
                    walk.begin(path, false, false)?;
                    walk.run(&mut *between).await?;
                }
            }
        }
        if source || !quotas || self.plan.path != "/" {
            walk.begin(&self.plan.path, target, true)?;
        } else {
            // The servers' own node is none of what only the destination has.
            walk.begin_extra(&self.plan.path).await?;
        }
        walk.run(between).await
    }

    /// Compares both, and once more what changed meanwhile.
    async fn verify(
        &mut self,
        watcher: &Watcher<'_>,
        imported: Option<i64>,
        tally: &mut Tally,
    ) -> Result<Stillness, Failure> {
        let mode = Mode::Verify { imported };
        let mut watching = self.watch(watcher).await?;
        let before = self.source.sync().await?;
        let mut touched = Touched::default();
        for part in 0..self.parts.len() {
            let mut between = || {
                if let Some(side) = &mut watching {
                    touched.take(side);
                }
            };
            self.walk(part, mode, tally, &mut between).await?;
        }
        for _ in 0..ROUNDS {
            let mut after = self.source.sync().await?;
            if after == before {
                return Ok(Stillness::Still(after));
            }
            let Some(side) = &mut watching else { return Ok(Stillness::Unknown) };
            // All that happened before this is answered has been told then.
            after = after.max(side.sync().await?);
            touched.take(side);
            if touched.over {
                return Ok(Stillness::Changing);
            }
            if touched.paths.is_empty() {
                return Ok(Stillness::Followed(after));
            }
            // The server that is read has to know of it, too.
            self.source.sync().await?;
            self.again(&touched.take_paths(), mode, tally).await?;
        }
        Ok(Stillness::Changing)
    }

    /// Has the source tell what changes, on a connection of its own: servers before 3.6 know nothing of it, and hang up.
    async fn watch(&mut self, watcher: &Watcher<'_>) -> Result<Option<Side>, Failure> {
        let Watcher { servers, tls, digests } = watcher;
        let side = Side::open("source", servers, *tls, digests, EVENTS).await?;
        for part in 0..self.parts.len() {
            self.enter(part);
            let mut record = Output::new();
            record.text(&self.source.at(&self.plan.path)).int(RECURSIVE);
            match side.connection.ask(opcode::ADD_WATCH, record.finish()).await {
                Ok(reply) if reply.outcome.is_ok() => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(side))
    }

    /// Compares these nodes, of the source's paths, and those above them: the counter of their children may have changed.
    async fn again(
        &mut self,
        paths: &BTreeSet<String>,
        mode: Mode,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        for part in 0..self.parts.len() {
            self.enter(part);
            let mut own = BTreeSet::new();
            for path in paths {
                own.extend(self.of_part(part, path).into_iter().flatten());
            }
            let (sides, quotas) = ((&self.source, &self.target), self.parts[part].quotas);
            let mut walk = Walk::new(sides, mode, self.plan, quotas, tally);
            let mut own = own.into_iter();
            loop {
                let some: Vec<String> = own.by_ref().take(AT_ONCE).collect();
                if some.is_empty() {
                    break;
                }
                let asked: Vec<_> = some.iter().map(|path| self.target.look_at(path)).collect();
                for (path, pending) in some.iter().zip(asked) {
                    let there = matches!(self.target.looked_at(pending).await?, Ok(Some(_)));
                    walk.begin(path, there, false)?;
                }
                walk.run(|| ()).await?;
            }
        }
        Ok(())
    }

    /// The path of a node of the source in this part, and that of its parent, where it is in there.
    fn of_part(&self, part: usize, path: &str) -> Option<[String; 2]> {
        let own = path.strip_prefix(self.parts[part].source.as_str())?;
        let own = if own.is_empty() { "/" } else { own };
        let is_within = |path: &str| {
            let start = self.plan.path.as_str();
            path == start || path.starts_with(&below(start, ""))
        };
        // Not what a client has there below a chroot.
        let is_systems = part == 0 && self.parts[part].source.is_empty() && is_systems(path);
        if !own.starts_with('/') || !is_within(own) || is_systems {
            return None;
        }
        let parent = match own.rfind('/') {
            Some(0) | None => "/",
            Some(at) => &own[..at],
        };
        let parent = if is_within(parent) { parent } else { own };
        Some([own.to_owned(), parent.to_owned()])
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_TOUCHED, MOST_TOUCHED_BYTES, Touched};

    #[test]
    fn changed_paths_are_kept_up_to_a_number_and_to_their_bytes() {
        let mut touched = Touched::default();
        touched.note(Some("/a".to_owned()));
        touched.note(Some("/a".to_owned()));
        assert_eq!((touched.bytes, touched.over), (2, false));
        touched.note(None);
        assert!(touched.over, "one without a path may be any");
        for (of, most) in [(1 << 15, MOST_TOUCHED_BYTES >> 15), (8, MOST_TOUCHED)] {
            let mut touched = Touched::default();
            for number in 0..=most {
                assert!(!touched.over, "{number} of {most}");
                touched.note(Some(format!("{number:of$}")));
            }
            assert!(touched.over && touched.paths.len() == most && touched.bytes == of * most);
            assert_eq!(touched.take_paths().len(), most);
            assert_eq!(touched.bytes, 0);
        }
    }
}

//! The directory of a `troth up`: one at a time has it, no replica runs from it yet, and where it is to make a cluster
//! nothing else is in it.

use crate::ask;
use crate::failure::{Failure, USAGE};
use crate::session;
use crate::words::{count, replicas};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use troth_node::config::{Cluster, Durability, Layout, Service, TrustedHome};
use troth_types::ReplicaId;

/// Held locked while a `troth up` runs.
const LOCK: &str = "troth-up.lock";
/// How long replicas may outlive the `troth up` that started them.
const END_WITH_IT: Duration = Duration::from_secs(3);
/// Between two looks whether they have ended.
const LOOK: Duration = Duration::from_millis(50);

/// A directory that no other `troth up` has. With it go the file that says so, and the directories that were made for
/// that file where nothing else came into them.
pub(crate) struct Held {
    file: PathBuf,
    made: Vec<PathBuf>,
    _lock: File,
}

impl Held {
    /// Takes the directory, and makes it where it is not there.
    pub(crate) fn hold(layout: &Layout, for_gateway: bool) -> Result<Self, Failure> {
        let root = layout.root();
        let file = root.join(LOCK);
        loop {
            let is_missing = |place: &&Path| !place.as_os_str().is_empty() && !place.exists();
            let made = root.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
            std::fs::create_dir_all(root).map_err(|why| Failure::place("cannot make", root, &why))?;
            let lock = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&file)
                .map_err(|why| Failure::place("cannot open", &file, &why))?;
            lock.try_lock().map_err(|_| held(layout, for_gateway))?;
            // Who had it may have removed the file since it was opened, and another may have made it anew.
            if is_at(&lock, &file) {
                return Ok(Self { file, made, _lock: lock });
            }
        }
    }

    /// Whether a directory goes with it.
    pub(crate) fn takes(&self, root: &Path) -> bool {
        self.made.iter().any(|made| made == root)
    }

    /// Has a directory go, too, where nothing is left in it: another one that has ended made it.
    pub(crate) fn goes_too(&mut self, root: &Path) {
        if !self.takes(root) {
            self.made.insert(0, root.to_path_buf());
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // As long as it is locked: afterwards it may be another's.
        let _ = std::fs::remove_file(&self.file);
        for place in &self.made {
            // Fails where something is in it, which is right.
            let _ = std::fs::remove_dir(place);
        }
    }
}

/// Whether this file is the one at that place.
fn is_at(file: &File, place: &Path) -> bool {
    let id = |data: std::fs::Metadata| (data.dev(), data.ino());
    file.metadata().ok().map(id).is_some_and(|own| std::fs::metadata(place).ok().map(id) == Some(own))
}

fn held(layout: &Layout, for_gateway: bool) -> Failure {
    let serves = || session::present(layout).is_ok_and(|cluster| cluster.service == Service::ZooKeeper);
    let instead = match for_gateway && serves() {
        true => "; `troth gateway zookeeper` is another gateway for its group, and for another group",
        false => ";",
    };
    let root = layout.root().display();
    Failure::new(USAGE, format!("a `troth up` runs from {root} already{instead} give another --dir"))
}

/// Refuses a directory from which replicas run that somebody else started. Those of a `troth up` that is gone, as
/// `are_ending` says, end with it.
pub(crate) fn none_runs(layout: &Layout, are_ending: bool) -> Result<(), Failure> {
    // What is no configuration is another's to refuse.
    let Ok(cluster) = session::present(layout) else { return Ok(()) };
    let give_up = Instant::now() + if are_ending { END_WITH_IT } else { Duration::ZERO };
    loop {
        let found = running(&cluster);
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() >= give_up {
            return Err(run_already(layout, &cluster, &found, are_ending));
        }
        std::thread::sleep(LOOK);
    }
}

/// The replicas of this group that answer, and which processes they are.
pub(crate) fn running(cluster: &Cluster) -> Vec<(ReplicaId, u32)> {
    let answers = cluster.group.all().zip(ask::all(cluster));
    answers.filter_map(|(id, answer)| answer.ok().map(|says| (id, says.pid))).collect()
}

/// The replicas that still run from a directory once its `troth up` has stopped those that it started.
pub(crate) fn left(layout: &Layout) -> Vec<(ReplicaId, u32)> {
    session::present(layout).map(|cluster| running(&cluster)).unwrap_or_default()
}

/// What is said of them, if there are any.
pub(crate) fn outlive(layout: &Layout, left: &[(ReplicaId, u32)]) -> Option<String> {
    let (ids, pids): (Vec<ReplicaId>, Vec<String>) =
        left.iter().map(|(id, pid)| (*id, pid.to_string())).unzip();
    let (runs, them) = match ids.len() {
        0 => return None,
        1 => ("was not started here and still runs", "it"),
        _ => ("were not started here and still run", "them"),
    };
    Some(format!(
        "{} {runs}: the files in {} stay. To stop {them}: kill {}",
        replicas(&ids),
        layout.root().display(),
        pids.join(" ")
    ))
}

/// Says how to come by a group where replicas of this one run; `is_left` where a `troth up` that has ended made it, so
/// that the next removes it.
pub(crate) fn run_already(
    layout: &Layout,
    cluster: &Cluster,
    found: &[(ReplicaId, u32)],
    is_left: bool,
) -> Failure {
    let (ids, pids): (Vec<ReplicaId>, Vec<String>) =
        found.iter().map(|(id, pid)| (*id, pid.to_string())).unzip();
    let one = ids.len() == 1;
    // One that ran and kept everything in its process is not itself any more.
    let is_forgotten = cluster.durability == Durability::Memory
        && cluster.protocol.has_components()
        && cluster.trusted_home != TrustedHome::Process;
    let rest = match cluster.group.n() - ids.len() {
        0 => "use the group as it is (`troth status` shows it)",
        _ if is_forgotten => {
            "start only those of the others that have not run yet, each with `troth replica --id N` (for one that has, \
             `troth doctor` says what brings it back)"
        }
        _ => "start only the others, each with `troth replica --id N`",
    };
    let (them, pids) = (if one { "it" } else { "them" }, pids.join(" "));
    let mend = match is_left {
        // Whoever started what outlived its group wants another most of the time.
        true => format!(
            "stop {them} (kill {pids}), and `troth up` makes another group here; to go on with this one {rest}"
        ),
        false => format!("{rest}, or stop {them} first (kill {pids})"),
    };
    Failure::usage(format!(
        "{} of {} {} already ({} {}), and `troth up` starts all of a group\n  mend: {mend}; for another group give another --dir",
        replicas(&ids),
        layout.root().display(),
        if one { "runs" } else { "run" },
        if one { "process" } else { "processes" },
        pids.replace(' ', ", "),
    ))
}

/// Refuses a directory that holds something, but no cluster: one that is made there would stand among it, and whoever
/// named it probably meant another.
pub(crate) fn holds_nothing(root: &Path) -> Result<(), Failure> {
    let failed = |why| Failure::system(&format!("cannot read {}", root.display()), &why);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != LOCK {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    let Some((first, others)) = names.split_first() else { return Ok(()) };
    let others = match others.len() {
        0 => String::new(),
        many => format!(" and {} more", count(many, "file")),
    };
    Err(Failure::usage(format!(
        "{} holds no cluster, but {first}{others}: `troth up` makes one only in a directory of its own\n  mend: give another \
         --dir, one that is empty or not there yet, or that of a cluster; `troth init` makes one that stays, also beside other \
         files",
        root.display()
    )))
}

//! The commands that start what was made, as they work for whoever made it.

use crate::suggest::quoted;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use troth_node::config::{Layout, TrustedHome};
use troth_trusted_process::User;
use troth_types::ReplicaId;

/// Who the trusted components are in the commands that are shown, where nobody was named yet.
pub(crate) const SUGGESTED: &str = "troth-trusted";

/// Which replicas a command is for.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// This one.
    One(ReplicaId),
    /// Each of so many, called N in the command.
    Each(u16),
}

impl Which {
    fn name(self) -> String {
        match self {
            Self::One(replica) => replica.0.to_string(),
            Self::Each(_) => "N".to_owned(),
        }
    }
}

/// Where the trusted component runs in the commands that are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// In the replica.
    Within,
    /// In a process that is started before the replica: one that the replica starts itself ends with it.
    Apart,
    /// There, and it has to be given a user first.
    OfRoot,
}

/// What is in the line that starts all replicas of one machine.
pub(crate) const ALL: &str = "all of them here:";

/// What to type to start replicas below a directory: a line each, commands indented.
pub(crate) fn lines(layout: &Layout, home: TrustedHome, which: Which) -> Vec<String> {
    if home != TrustedHome::Process {
        return words(layout, which, Component::Within);
    }
    if User::current().uid != 0 {
        return words(layout, which, Component::Apart);
    }
    let mut lines = Vec::new();
    // A single replica's directory goes to another place yet, or has been where it is for long.
    if matches!(which, Which::Each(_))
        && let Some(closed) = closed_above(layout.root())
    {
        lines.push(format!(
            "First: {} is closed to other users than root, and a trusted component is one. Move {} to where they get \
             through, for example below /var/lib, and use that path here.",
            closed.display(),
            layout.root().display()
        ));
    }
    let component = if needs_a_user(layout, which) { Component::OfRoot } else { Component::Apart };
    lines.extend(words(layout, which, component));
    lines
}

/// The first directory on the way to this one, or this one itself, through which not everybody gets.
pub(crate) fn closed_above(directory: &Path) -> Option<PathBuf> {
    let way = directory.canonicalize().ok()?;
    let closed = |place: &&Path| std::fs::metadata(place).is_ok_and(|data| data.mode() & 0o001 == 0);
    way.ancestors().filter(closed).last().map(Path::to_path_buf)
}

/// The first directory on the way to this one, or this one itself, that is closed to a user by its owner and mode.
/// Nothing where a list of who may enter stands beside the mode.
pub(crate) fn closed_to(directory: &Path, uid: u32, gid: u32) -> Option<PathBuf> {
    let way = directory.canonicalize().ok()?;
    let closed = |place: &&Path| {
        let Ok(data) = std::fs::metadata(place) else { return false };
        let enters = match (data.uid() == uid, data.gid() == gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        data.mode() & enters == 0 && !has_a_list(place)
    };
    way.ancestors().filter(closed).last().map(Path::to_path_buf)
}

fn has_a_list(place: &Path) -> bool {
    let mut none: [u8; 0] = [];
    rustix::fs::getxattr(place, "system.posix_acl_access", &mut none).is_ok()
}

/// What gives components' directories to a user of their own.
pub(crate) fn how_to_give(directories: &[PathBuf], user: &str) -> String {
    // What is no name has no group of the same name.
    let both = match user.parse::<u32>() {
        Ok(uid) => format!("{uid}:{uid}"),
        Err(_) if user.contains(':') => user.to_owned(),
        Err(_) => format!("{user}:"),
    };
    let make = if user == SUGGESTED {
        format!("`id -u {SUGGESTED} || useradd --system {SUGGESTED}`, then ")
    } else {
        String::new()
    };
    let places: Vec<String> =
        directories.iter().map(|directory| quoted(&directory.display().to_string())).collect();
    format!(
        "as root {make}`chown -R {both} {}`; `troth init --trusted-user USER` does so from the beginning \
         (docs/operating/trusted-process.md)",
        places.join(" ")
    )
}

/// What lets this user through a directory.
pub(crate) fn how_to_open(closed: &Path, uid: u32) -> String {
    // Nobody else has to get into what is the user's own.
    let who = if std::fs::metadata(closed).is_ok_and(|data| data.uid() == uid) { "u" } else { "o" };
    format!(
        "as root `chmod {who}+x {}`, or move the cluster's directory to where they get through, for example below /var/lib",
        quoted(&closed.display().to_string())
    )
}

/// Whether the components, which root starts, belong to nobody else: they refuse to run as root, and there is
/// no other user whom they could become.
fn needs_a_user(layout: &Layout, which: Which) -> bool {
    let replica = match which {
        Which::One(replica) => replica,
        Which::Each(_) => ReplicaId(0),
    };
    let owner = std::fs::metadata(layout.trusted(replica)).map(|data| data.uid());
    owner.is_ok_and(|owner| owner == 0)
}

/// The same, where it is known where the components run.
pub(crate) fn words(layout: &Layout, which: Which, component: Component) -> Vec<String> {
    let (dir, id) = (layout.root().display(), which.name());
    let replica = format!("troth replica --dir {dir} --id {id}");
    let beside = format!("  {replica} --trusted-socket {dir}/socket-{id}/trusted.sock");
    if component == Component::Apart {
        let both = [format!("  troth trusted --dir {dir} --id {id}"), beside];
        return match which {
            Which::One(_) => both.to_vec(),
            Which::Each(n) => {
                let first = format!(
                    "Run for each N from 0 to {}, once, its trusted component and beside it the replica:",
                    n - 1
                );
                let last = format!("Or {ALL}   troth up --dir {dir}");
                std::iter::once(first).chain(both).chain([last]).collect()
            }
        };
    }
    if component == Component::Within {
        return match which {
            Which::One(_) => vec![format!("  {replica}")],
            Which::Each(n) => vec![
                format!("Start each replica, for N from 0 to {}:   {replica}", n - 1),
                format!("Or {ALL}   troth up --dir {dir}"),
            ],
        };
    }
    let mut lines = match which {
        Which::One(_) => vec![],
        Which::Each(n) => vec![format!(
            "The components' directories are root's, as whom none of them runs, and a replica whose component does \
                 not start ends. `troth init --trusted-user {SUGGESTED}` gives them away from the beginning; for these, for \
                 each N from 0 to {}, once, as root:",
            n - 1
        )],
    };
    lines.extend([
        format!("  id -u {SUGGESTED} || useradd --system {SUGGESTED}"),
        format!("  chown -R {SUGGESTED}: {dir}/trusted-{id}"),
        "Then its trusted component, which does not run as root, and beside it the replica:".to_owned(),
        format!("  troth trusted --dir {dir} --id {id} --user {SUGGESTED}"),
        beside,
        "docs/operating/trusted-process.md: how the replica gets a user of its own too, and both a unit."
            .to_owned(),
    ]);
    if matches!(which, Which::Each(_)) {
        lines.push(format!("Or, once each trusted-N is given to {SUGGESTED}, {ALL} troth up --dir {dir}"));
    }
    lines
}

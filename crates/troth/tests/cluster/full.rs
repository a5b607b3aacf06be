//! A full disk under one replica, then under the primary: the service goes on, and when space returns so does
//! the replica. A small file system of its own is the disk, which takes root.

use crate::support::{Running, Scratch, good, init_with, status, troth, until};
use crate::trusted::is_root;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system in memory, of 48 MiB.
pub struct Mounted(pub PathBuf);

impl Mounted {
    pub fn on(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).expect("our own directory");
        let options = ["-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(&path).status().expect("mount runs");
        assert!(mounted.success(), "root can mount {}", path.display());
        Self(path)
    }

    /// Leaves no space.
    pub fn fill(&self) {
        let mut file = File::create(self.filler()).expect("there is space for a name");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_space(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn replica(dir: &Path, id: u16) -> Running {
    let mut command = troth(dir);
    command.args(["replica", "--id", &id.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().expect("the command starts"))
}

#[test]
fn the_service_goes_on_over_a_full_disk_and_so_does_the_replica_when_there_is_space() {
    if !is_root() {
        eprintln!("SKIPPED: only root can mount a small file system");
        return;
    }
    let scratch = Scratch::new("full");
    let dir = scratch.0.as_path();
    init_with(dir, &[]);
    let disks: Vec<Mounted> = (0..3).map(|id| Mounted::on(dir.join(format!("replica-{id}/data")))).collect();
    let mut replicas: Vec<Running> = (0..3).map(|id| replica(dir, id)).collect();
    until("all serve", || status(dir).iter().all(|replica| replica["pid"].is_u64()).then_some(()));
    let value = "v".repeat(100_000);
    let mut written = 0;
    let mut put = || {
        written += 1;
        good(dir, &["kv", "put", &format!("key{}", written % 5), &format!("{written} {value}")]);
        written
    };
    let primary = |dir: &Path| {
        until("there is a primary", || {
            let now: Vec<Option<u64>> = status(dir).iter().map(|one| one["primary"].as_u64()).collect();
            (now.iter().all(|primary| primary.is_some() && *primary == now[0])).then(|| now[0]).flatten()
        })
    };
    put();
    let first = primary(dir);
    for victim in [(first + 1) % 3, first] {
        let disk = &disks[usize::try_from(victim).expect("small")];
        disk.fill();
        // The room that its log has is used up, and nobody else notices.
        until("its disk is full", || {
            put();
            (status(dir)[usize::try_from(victim).expect("small")]["disk_full"] == true).then_some(())
        });
        for _ in 0..5 {
            put();
        }
        let one = &mut replicas[usize::try_from(victim).expect("small")];
        assert!(one.0.try_wait().expect("our own child").is_none(), "it waits");
        disk.make_space();
        until("it goes on and catches up", || {
            let all = status(dir);
            let executed: Vec<u64> = all.iter().filter_map(|one| one["executed"].as_u64()).collect();
            let same = executed.len() == 3 && executed.iter().all(|count| *count == executed[0]);
            (same && all.iter().all(|one| one["disk_full"] == false)).then_some(())
        });
    }
    // Everything that was acknowledged is there, also after all were killed.
    let last = put();
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    let _replicas: Vec<Running> = (0..3).map(|id| replica(dir, id)).collect();
    for number in last - 4..=last {
        let value = until("it serves again", || {
            let output = crate::support::run(dir, &["kv", "get", &format!("key{}", number % 5)]);
            output.status.success().then(|| String::from_utf8(output.stdout).expect("text"))
        });
        assert!(value.starts_with(&format!("{number} v")), "key{}", number % 5);
    }
}

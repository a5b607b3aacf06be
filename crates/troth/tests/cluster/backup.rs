//! A backup taken under load, restored with new keys: the same content, and nothing less than all of it.

use crate::admin::votes;
use crate::killed::{all, replica};
use crate::support::{
    Running, Scratch, copy_of_troth, good, init_with, made_by, made_by_saying, run, troth, until,
};
use crate::trusted::is_root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Takes a backup and gives its manifest.
fn backup(dir: &Path, to: &Path) -> serde_json::Value {
    let said = good(dir, &["backup", "--json", "--to", to.to_str().expect("a plain path")]);
    serde_json::from_str(&said).expect("JSON")
}

/// The keys that start so, with their values.
fn entries(dir: &Path, prefix: &str) -> BTreeMap<String, String> {
    let lines = good(dir, &["kv", "scan", prefix]);
    let pair = |line: &str| line.split_once('\t').map(|(key, value)| (key.to_owned(), value.to_owned()));
    lines.lines().filter_map(pair).collect()
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn a_backup_under_load_goes_on_in_a_new_group_with_the_same_content() {
    let scratch = Scratch::new("backup");
    let old = scratch.0.join("old");
    init_with(&old, &[]);
    let replicas = all(&old);
    let mut before = BTreeMap::new();
    for number in 0..20 {
        let (key, value) = (format!("before/{number:02}"), format!("value {number}"));
        good(&old, &["kv", "put", &key, &value]);
        before.insert(key, value);
    }
    // Larger than what stands in a page of the tree.
    let large = "l".repeat(90_000);
    good(&old, &["kv", "put", "large", &large]);

    let ends = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    let manifest = Mutex::new(serde_json::Value::Null);
    let saved = scratch.0.join("saved");
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (old, ends, acknowledged) = (&old, &ends, &acknowledged);
            scope.spawn(move || {
                for number in 0.. {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = format!("load/{writer}/{}", number % 50);
                    good(old, &["kv", "put", &key, &number.to_string()]);
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let end = ScopeEnd(&ends);
        until("the load runs", || (acknowledged.load(Ordering::Relaxed) > 10).then_some(()));
        let at_first = acknowledged.load(Ordering::Relaxed);
        *manifest.lock().expect("only here") = backup(&old, &saved);
        until("the load goes on", || (acknowledged.load(Ordering::Relaxed) > at_first).then_some(()));
        drop(end);
    });
    let manifest = manifest.into_inner().expect("only there");
    let digest = manifest["content_digest"].as_str().expect("a digest").to_owned();
    assert!(!scratch.0.join("saved.incomplete").exists());
    let again = run(&old, &["backup", "--to", saved.to_str().expect("plain")]);
    assert_eq!(again.status.code(), Some(2), "a backup overwrites none: {}", text(&again));
    drop(replicas);

    let new = scratch.0.join("new");
    let from = saved.to_str().expect("plain");
    let nowhere = scratch.0.join("nowhere");
    let absent = run(&new, &["restore", "--from", nowhere.to_str().expect("plain")]);
    let words = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert_eq!(absent.status.code(), Some(2), "{words}");
    assert!(words.contains(&format!("{} does not exist", nowhere.display())), "{words}");
    let wrong = run(&new, &["restore", "--from", from, "--content-digest", &"0".repeat(64)]);
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong));
    assert!(!new.exists(), "what is refused makes nothing");
    let among = run(Path::new(from), &["restore", "--from", from]);
    let said = String::from_utf8_lossy(&among.stderr).into_owned();
    assert_eq!(among.status.code(), Some(2), "{said}");
    assert!(!said.contains("HMACs"), "nothing is warned of that is not done: {said}");
    made_by("restore", &new, &["--from", from, "--content-digest", &digest]);
    let keys = |dir: &Path, file: &str| std::fs::read(dir.join(file)).expect("it is there");
    assert_ne!(keys(&old, "replica-0/secret.toml"), keys(&new, "replica-0/secret.toml"), "new keys");

    let replicas = all(&new);
    assert_eq!(entries(&new, "before/"), before, "everything acknowledged before is there");
    assert_eq!(good(&new, &["kv", "get", "large"]).trim_end(), large);
    let some = run(&new, &["kv", "scan", "before/", "--limit", "3"]);
    assert_eq!(String::from_utf8_lossy(&some.stdout).lines().count(), 3, "{}", text(&some));
    assert!(text(&some).contains("these are the first 3"), "{}", text(&some));
    let all_of_them = run(&new, &["kv", "scan", "before/"]);
    assert!(!text(&all_of_them).contains("these are the first"), "{}", text(&all_of_them));
    assert!(entries(&new, "load/").len() > 1, "and of the load what was in the checkpoint");
    let second = backup(&new, &scratch.0.join("second"));
    assert_eq!(second["content_digest"], digest.as_str(), "the same content has the same digest");
    assert_ne!(second["checkpoint_digest"], manifest["checkpoint_digest"], "in another group's state");
    let version = good(&new, &["kv", "put", "after", "the restore"]);
    let number = |said: &str| said.trim().rsplit(' ').next().and_then(|word| word.parse::<u64>().ok());
    assert!(number(&version) > Some(20), "no version is used twice: {version}");

    // The first state is read again at each start before the first snapshot.
    replicas.iter().for_each(|replica| replica.signal("KILL"));
    drop(replicas);
    let replicas = all(&new);
    assert_eq!(entries(&new, "before/"), before);
    assert_eq!(good(&new, &["kv", "get", "after"]).trim_end(), "the restore");
    drop(replicas);
}

#[test]
fn a_group_with_a_readmitted_replica_is_backed_up_and_restored() {
    for kind in ["hmac", "ed25519"] {
        let scratch = Scratch::new(&format!("backup-readmitted-{kind}"));
        let old = scratch.0.join("old");
        init_with(&old, &["--trusted", kind]);
        let mut replicas = all(&old);
        good(&old, &["kv", "put", "key", "value"]);
        replicas[2].signal("KILL");
        replicas[2].ends();
        for lost in ["data", "counters"] {
            std::fs::remove_dir_all(old.join("replica-2").join(lost)).expect("it was there");
        }
        good(&old, &["admin", "readmit", "--replica", "2"]);
        replicas[2] = replica(&old, 2);
        votes(&old, 2, 2);
        // Whatever is certified from here on, the new component has certified.
        replicas[0].signal("KILL");
        replicas[0].ends();
        good(&old, &["kv", "put", "after", "the readmission"]);
        let saved = scratch.0.join("saved");
        let manifest = backup(&old, &saved);

        // A machine that does not know of the readmission is told what it lacks.
        let (known, away) = (old.join("configuration.toml"), scratch.0.join("away"));
        std::fs::rename(&known, &away).expect("written by the readmission");
        let unknown = scratch.0.join("unknown");
        let unsure = run(&old, &["backup", "--last", "--to", unknown.to_str().expect("plain")]);
        assert!(
            !unsure.status.success() && text(&unsure).contains("copy configuration.toml"),
            "{}",
            text(&unsure)
        );
        assert!(!unknown.exists());
        drop(replicas);

        let (from, digest) =
            (saved.to_str().expect("plain"), manifest["content_digest"].as_str().expect("one"));
        let configuration = saved.join("configuration");
        let whole = std::fs::read(&configuration).expect("part of the backup");
        let new = scratch.0.join("new");
        std::fs::write(&configuration, &whole[..whole.len() - 1]).expect("our own");
        let cut = run(&new, &["restore", "--from", from]);
        assert_eq!(cut.status.code(), Some(1), "{}", text(&cut));
        assert!(text(&cut).contains("damaged"), "{}", text(&cut));
        std::fs::write(&configuration, &whole).expect("our own");
        made_by("restore", &new, &["--from", from, "--content-digest", digest]);
        let _replicas = all(&new);
        assert_eq!(good(&new, &["kv", "get", "after"]).trim_end(), "the readmission");
    }
}

/// Ends the load, also where the test fails.
struct ScopeEnd<'a>(&'a AtomicBool);

impl Drop for ScopeEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_replica_of_a_restored_group_starts_with_its_first_state_or_not_at_all() {
    let scratch = Scratch::new("genesis");
    let old = scratch.0.join("old");
    init_with(&old, &["--durability", "memory", "--trusted", "ed25519"]);
    let replicas = all(&old);
    good(&old, &["kv", "put", "key", "value"]);
    let saved = scratch.0.join("saved");
    backup(&old, &saved);
    drop(replicas);
    let from = saved.to_str().expect("plain");
    let new = scratch.0.join("new");
    made_by("restore", &new, &["--from", from]);

    let genesis = new.join("replica-0/genesis");
    let good_state = std::fs::read(&genesis).expect("every replica has it");
    let refused = |why: &str| {
        // A replica that starts all the same does not end.
        let log = scratch.0.join("refused.log");
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let mut command = troth(&new);
        command.args(["replica", "--id", "0"]).stderr(std::fs::File::create(&log).expect("our own"));
        let mut refused = Running(command.spawn().expect("the command starts"));
        let code = until("it refuses", || {
            assert!(!said().contains(" serves"), "{why}: {}", said());
            refused.0.try_wait().expect("our own child")
        });
        assert_eq!(code.code(), Some(2), "{}", said());
        assert!(said().contains(why), "{}", said());
    };
    std::fs::remove_file(&genesis).expect("it was there");
    refused("copy the file `genesis` from another replica");
    let mut bad_state = good_state.clone();
    *bad_state.last_mut().expect("not empty") ^= 1;
    std::fs::write(&genesis, &bad_state).expect("our own directory");
    refused("damaged");
    // Whole, and another one: the empty state of a group without content, at another time.
    let other = scratch.0.join("other");
    init_with(&other, &["--durability", "memory"]);
    let others = all(&other);
    good(&other, &["kv", "put", "key", "another value"]);
    backup(&other, &scratch.0.join("saved-other"));
    drop(others);
    let third = scratch.0.join("third");
    made_by("restore", &third, &["--from", scratch.0.join("saved-other").to_str().expect("plain")]);
    std::fs::copy(third.join("replica-0/genesis"), &genesis).expect("our own directory");
    refused("not the one that cluster.toml names");
    std::fs::write(&genesis, &good_state).expect("our own directory");
    let _replicas = all(&new);
    assert_eq!(good(&new, &["kv", "get", "key"]).trim_end(), "value");
}

#[test]
fn a_place_where_no_directory_can_be_made_is_named_before_anything_is_fetched() {
    let scratch = Scratch::new("backup-place");
    let dir = scratch.0.join("group");
    init_with(&dir, &[]);
    let _replicas = all(&dir);
    // No user may make one there.
    let output = run(&dir, &["backup", "--last", "--to", "/proc/backup"]);
    assert_eq!(output.status.code(), Some(5));
    let said = text(&output);
    assert!(said.contains("/proc/backup") && !said.contains("fetching"), "{said}");
}

#[test]
fn what_an_interrupted_trial_of_the_place_left_is_not_in_the_way() {
    let scratch = Scratch::new("backup-left");
    let dir = scratch.0.join("group");
    init_with(&dir, &[]);
    let _replicas = all(&dir);
    good(&dir, &["kv", "put", "a", "b"]);
    let (to, left) = (scratch.0.join("saved"), scratch.0.join("saved.incomplete"));
    std::fs::create_dir(&left).expect("our own");
    backup(&dir, &to);
    assert!(to.is_dir() && !left.exists());
    // What is somebody else's stays.
    let (to, left) = (scratch.0.join("other"), scratch.0.join("other.incomplete"));
    std::fs::create_dir(&left).expect("our own");
    std::fs::write(left.join("theirs"), "kept").expect("our own");
    let output = run(&dir, &["backup", "--last", "--to", to.to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(5));
    assert!(left.join("theirs").exists() && !to.exists(), "{}", text(&output));
}

#[test]
fn a_damaged_backup_is_refused() {
    let scratch = Scratch::new("backup-damaged");
    let old = scratch.0.join("old");
    init_with(&old, &["--durability", "memory", "--trusted", "ed25519"]);
    let replicas: Vec<Running> = all(&old);
    for number in 0..40 {
        good(&old, &["kv", "put", &format!("key{number}"), "value"]);
    }
    let saved = scratch.0.join("saved");
    backup(&old, &saved);
    drop(replicas);
    let from = saved.to_str().expect("plain");
    let new = scratch.0.join("new");
    let mut tried = 0;
    for file in ["state", "checkpoint", "backup.json", "cluster.toml"] {
        let path = saved.join(file);
        let whole = std::fs::read(&path).expect("part of a backup");
        // The head of the state, all over the manifest, and here and there. The newline at the end of a text
        // says nothing.
        let last = whole.len() - 2;
        let head = if file == "state" { 60 } else { 0 };
        let step = if file == "backup.json" { 5 } else { last / 5 };
        let places: BTreeSet<usize> = (0..head).chain((0..=last).step_by(step)).collect();
        let mut damaged: Vec<Vec<u8>> = Vec::new();
        for at in places {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            damaged.push(flipped);
            if at % 3 == 0 {
                damaged.push(whole[..at].to_vec());
            }
        }
        for bytes in damaged {
            // A comment in cluster.toml may change: what counts there is the group that it defines.
            let counts = file != "cluster.toml" || bytes.len() < whole.len() / 2;
            std::fs::write(&path, &bytes).expect("our own directory");
            let refused = run(&new, &["restore", "--from", from]);
            if counts {
                // A version that was never written is damage, too; what can be said of it is that it is another.
                let said = text(&refused);
                let why = [(1, "this backup is damaged"), (2, "this backup has format")];
                let named =
                    why.iter().any(|(code, why)| refused.status.code() == Some(*code) && said.contains(why));
                assert!(named, "{file}: {:?} {said}", refused.status.code());
                tried += 1;
            }
            assert!(!refused.status.success() || file == "cluster.toml");
            let _ = std::fs::remove_dir_all(&new);
        }
        std::fs::remove_file(&path).expect("it was there");
        let missing = run(&new, &["restore", "--from", from]);
        let code = if file == "backup.json" { 2 } else { 1 };
        assert_eq!(missing.status.code(), Some(code), "{file} is missing: {}", text(&missing));
        assert!(text(&missing).contains("mend: "), "{file} is missing: {}", text(&missing));
        assert!(!new.exists());
        std::fs::write(&path, &whole).expect("our own directory");
    }
    assert!(tried >= 150, "{tried}");
    made_by("restore", &new, &["--from", from]);
}

#[test]
fn a_replica_that_does_not_run_here_is_named_as_the_reason() {
    let scratch = Scratch::new("backup-nobody");
    let dir = scratch.0.as_path();
    init_with(dir, &["--durability", "memory"]);
    let to = dir.join("saved");
    let to = to.to_str().expect("plain");
    let nobody = run(dir, &["backup", "--to", to]);
    assert_eq!(nobody.status.code(), Some(5), "{}", text(&nobody));
    assert!(text(&nobody).contains("run this where a replica runs"), "{}", text(&nobody));
    let alone = replica(dir, 0);
    until("it listens", || dir.join("replica-0/backup.sock").exists().then_some(()));
    let early = run(dir, &["backup", "--last", "--wait", "1", "--to", to]);
    assert_eq!(early.status.code(), Some(5), "{}", text(&early));
    assert!(text(&early).contains("no stable checkpoint yet"), "{}", text(&early));
    // Keys that are there and of no use are no reason for a backup that lacks what they are for.
    let key = dir.join("clients/client-1.toml");
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("our own");
    let useless = run(dir, &["backup", "--wait", "1", "--to", to]);
    assert_eq!(useless.status.code(), Some(2), "{}", text(&useless));
    assert!(text(&useless).contains("client-1.toml") && text(&useless).contains("644"), "{}", text(&useless));
    std::fs::rename(dir.join("clients"), dir.join("elsewhere")).expect("our own");
    let without = run(dir, &["backup", "--wait", "1", "--to", to]);
    assert_eq!(without.status.code(), Some(5), "{}", text(&without));
    assert!(text(&without).contains("no client's keys are here"), "{}", text(&without));
    drop(alone);
}

#[test]
fn the_newest_acknowledged_write_is_in_a_backup_of_a_group_at_rest() {
    let scratch = Scratch::new("backup-newest");
    let dir = scratch.0.as_path();
    init_with(dir, &["--durability", "memory"]);
    let _replicas = all(dir);
    // One after the other, so each is a batch: beyond a checkpoint, and not to the next one.
    for number in 0..70 {
        good(dir, &["kv", "put", &format!("key{number}"), "value"]);
    }
    let number = |manifest: &serde_json::Value| manifest["number"].as_u64().expect("a number");
    let to = dir.join("as-it-is");
    let said = until("the first checkpoint is stable", || {
        let output = run(dir, &["backup", "--json", "--last", "--to", to.to_str().expect("plain")]);
        output.status.success().then_some(output.stdout)
    });
    let last = serde_json::from_slice(&said).expect("JSON");
    assert!(number(&last) < 70, "the last checkpoint as it is lacks some: {last}");
    let all = backup(dir, &dir.join("all"));
    assert!(number(&all) > 70, "{all}");
    assert_ne!(all["content_digest"], last["content_digest"]);

    let told = dir.join("told");
    let told = told.to_str().expect("plain");
    let said = good(dir, &["backup", "--to", told]);
    assert!(said.contains("certified by 2 of the group's 3 replicas (f+1)"), "{said}");
    let (_, restored) = made_by_saying("restore", &scratch.0.join("new"), &["--from", told]);
    for said in [said, restored] {
        assert!(
            said.contains(
                "71 entries of the service's content (one for each key, and one that counts the writes)"
            ),
            "both count the same: {said}"
        );
    }
}

#[test]
fn a_restored_group_bears_as_many_faults_as_before_unless_told_otherwise() {
    let scratch = Scratch::new("backup-faults");
    let dir = scratch.0.join("old");
    init_with(&dir, &["--f", "2", "--durability", "memory"]);
    // Three of five, which serve as well.
    let replicas = all(&dir);
    good(&dir, &["kv", "put", "key", "value"]);
    let saved = scratch.0.join("saved");
    backup(&dir, &saved);
    drop(replicas);
    let from = ["--from", saved.to_str().expect("plain")];
    let restored = |name: &str, further: &[&str]| {
        made_by_saying("restore", &scratch.0.join(name), &[&from, further].concat()).1
    };
    let said = restored("same", &[]);
    assert!(said.contains("a group of 5 replicas, 2 of which may fail"), "{said}");
    assert!(!said.contains("it bears"), "{said}");
    let said = restored("other", &["--f", "1"]);
    assert!(said.contains("a group of 3 replicas, 1 of which may fail"), "{said}");
    assert!(said.contains("it bears 1 faulty (before: 2)"), "{said}");
    let few = run(&scratch.0.join("few"), &[&["restore", "--hosts", "a,b,c"], &from[..]].concat());
    assert_eq!(few.status.code(), Some(2), "{}", text(&few));
    assert!(text(&few).contains("--f 2 makes 5 replicas"), "{}", text(&few));
}

#[test]
fn another_user_is_served_no_backup_even_where_the_directory_is_open() {
    if !is_root() {
        eprintln!("SKIPPED: only root starts processes of other users");
        return;
    }
    const STRANGER: u32 = 64_103;
    let scratch = Scratch::new("backup-stranger");
    let dir = scratch.0.join("group");
    init_with(&dir, &["--durability", "memory"]);
    let _replicas = all(&dir);
    good(&dir, &["kv", "put", "key", "value"]);
    backup(&dir, &scratch.0.join("ours"));
    // Everything open that should not be, and the stranger even has the replica's keys.
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("our own directory");
    };
    let socket = dir.join("replica-0/backup.sock");
    assert_eq!(std::fs::metadata(&socket).expect("it is served").permissions().mode() & 0o777, 0o600);
    for (path, mode) in
        [(&scratch.0, 0o777), (&dir, 0o755), (&dir.join("replica-0"), 0o755), (&socket, 0o666)]
    {
        open(path, mode);
    }
    let theirs = scratch.0.join("theirs");
    std::fs::create_dir_all(theirs.join("replica-0")).expect("our own directory");
    for file in ["cluster.toml", "replica-0/secret.toml"] {
        std::fs::copy(dir.join(file), theirs.join(file)).expect("a copy");
        chown(theirs.join(file), Some(STRANGER), Some(STRANGER)).expect("its owner");
    }
    std::os::unix::fs::symlink(&socket, theirs.join("replica-0/backup.sock")).expect("a link");
    let program = scratch.0.join("troth");
    copy_of_troth(&program);
    let mut command = Command::new(&program);
    command.args(["backup", "--last", "--wait", "1", "--id", "0", "--dir"]).arg(&theirs);
    command.arg("--to").arg(scratch.0.join("stolen")).uid(STRANGER).gid(STRANGER).current_dir("/");
    let refused = command.output().expect("the command runs");
    assert_eq!(refused.status.code(), Some(5), "{}", text(&refused));
    assert!(text(&refused).contains("stopped answering"), "{}", text(&refused));
    assert!(!scratch.0.join("stolen").exists());
}

//! `troth import zookeeper`, from the gateway of one group into another group.

use crate::gateway::{Connection, gateway};
use crate::killed::all;
use crate::support::{Scratch, init_with, run};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use troth_zookeeper::acl::digest_id;
use troth_zookeeper::jute::{Input, Output};
use troth_zookeeper::opcode;

/// What the superuser of both groups shows.
const SUPERUSER: &str = "super:secret";

impl Connection {
    /// The path of a sequential node that was created with these flags.
    fn numbered(&mut self, path: &str, flags: i32) -> String {
        let (error, record) = self.ask(opcode::CREATE, &creation(path, b"", ("world", "anyone"), flags));
        assert_eq!(error, 0, "{path}");
        Input::new(&record).text().expect("a record").expect("a path")
    }

    fn make(&mut self, path: &str, data: &[u8], who: (&str, &str), flags: i32) {
        let code = if flags == 4 { opcode::CREATE_CONTAINER } else { opcode::CREATE };
        assert_eq!(self.ask(code, &creation(path, data, who, flags)).0, 0, "{path}");
    }

    /// Makes a node that everybody may read, and one user change.
    fn make_shown(&mut self, path: &str, user: &str) {
        let mut out = Output::new();
        out.text(path).buffer(b"").length(2).int(1).text("world").text("anyone");
        out.int(31).text("digest").text(user).int(0);
        assert_eq!(self.ask(opcode::CREATE, &out.finish()).0, 0, "{path}");
    }

    fn set(&mut self, path: &str, data: &[u8]) {
        let mut out = Output::new();
        out.text(path).buffer(data).int(-1);
        assert_eq!(self.ask(opcode::SET_DATA, &out.finish()).0, 0, "{path}");
    }

    fn delete(&mut self, path: &str) {
        let mut out = Output::new();
        out.text(path).int(-1);
        assert_eq!(self.ask(opcode::DELETE, &out.finish()).0, 0, "{path}");
    }

    fn prove(&mut self) {
        let mut out = Output::new();
        out.int(0).text("digest").buffer(SUPERUSER.as_bytes());
        assert_eq!(self.ask(opcode::AUTH, &out.finish()).0, 0);
    }
}

fn creation(path: &str, data: &[u8], (scheme, id): (&str, &str), flags: i32) -> Vec<u8> {
    let mut out = Output::new();
    out.text(path).buffer(data).length(1).int(31).text(scheme).text(id).int(flags);
    out.finish().to_vec()
}

/// Exit code, and what is said on both channels.
fn import(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(dir, &[&["import", "zookeeper"], arguments].concat());
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_tree_comes_whole_and_later_runs_bring_what_changed() {
    let scratch = Scratch::new("import");
    std::fs::create_dir_all(&scratch.0).expect("a directory");
    let (old, new) = (scratch.0.join("old"), scratch.0.join("new"));
    let (superuser, secret) = (digest_id(SUPERUSER), scratch.0.join("superuser"));
    std::fs::write(&secret, format!("{SUPERUSER}\n")).expect("our own");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("our own");
    for dir in [&old, &new] {
        let service = ["--service", "zookeeper", "--superuser", &superuser, "--durability", "memory"];
        init_with(dir, &service);
    }
    let _replicas = (all(&old), all(&new));
    let ((_serving, there), (_too, here)) = (gateway(&old, &[]), gateway(&new, &[]));

    let (mut source, _) = Connection::open(&there, None);
    source.prove();
    let world = ("world", "anyone");
    let large = vec![7; (1 << 20) - 1024];
    source.make("/app", b"first", world, 0);
    source.make("/app/large", &large, world, 0);
    source.make("/app/locks", b"", world, 4);
    source.make("/app/hidden", b"treasure", ("digest", &digest_id("me:mine")), 0);
    source.make_shown("/app/shown", &digest_id("me:mine"));
    source.make("/app/hidden/deep", b"deeper", world, 0);
    source.make("/zookeeper/quota/app", b"", world, 0);
    source.make("/zookeeper/quota/app/zookeeper_limits", b"count=100,bytes=-1", world, 0);
    source.make("/zookeeper/quota/app/zookeeper_stats", b"", world, 0);
    for number in 0..3 {
        assert_eq!(source.numbered("/app/q-", 2), format!("/app/q-{:010}", 4 + number));
    }
    source.delete("/app/q-0000000006");
    let lock = source.numbered("/app/locks/l-", 3);
    assert_eq!(lock, "/app/locks/l-0000000000");

    let from = ["--from", there.as_str()];
    let file = secret.to_str().expect("plain");
    let superusers = [&from[..], &["--from-digest", file, "--to-digest", file]].concat();
    let (mut target, _) = Connection::open(&here, None);
    target.prove();

    let (code, said) = import(&new, &[&superusers[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("/app: only the source has it") && said.contains("1 ephemeral nodes"), "{said}");
    assert_eq!(target.data("/app"), Err(-101), "nothing was written");

    // Who may not read a node is told which; the rest comes.
    let (code, said) = import(&new, &from);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("/app/hidden: not read from the source: no permission"), "{said}");
    // Its list is shown without the digest, by which nobody could be known.
    assert!(said.contains("/app/shown: its access control list is shown without digests"), "{said}");
    assert_eq!(target.data("/app/shown"), Err(-101));
    assert_eq!(&target.data("/app").expect("it came")[..], b"first");
    assert_eq!(target.data("/app/hidden"), Err(-101));

    let (code, said) = import(&new, &superusers);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Written: 3 created\n") && said.contains("Both trees are equal."), "{said}");
    assert_eq!(target.data("/app/large").expect("it came"), large);
    assert_eq!(&target.data("/app/hidden/deep").expect("it came")[..], b"deeper");
    assert_eq!(target.data(&lock), Err(-101), "its session is not here");
    let limits = target.data("/zookeeper/quota/app/zookeeper_limits").expect("it came");
    assert_eq!(&limits[..], b"count=100,bytes=-1");
    let (mut stranger, _) = Connection::open(&here, None);
    assert_eq!(stranger.data("/app/hidden"), Err(-102), "it is still theirs");
    // Names that were given there, to nodes that are gone or did not come, are not given again; what the second run created here
    // is counted, too.
    assert_eq!(target.numbered("/app/q-", 2), "/app/q-0000000009");
    assert_eq!(target.numbered("/app/locks/l-", 2), "/app/locks/l-0000000001");

    source.set("/app", b"second");
    source.delete("/app/q-0000000004");
    let (code, said) = import(&new, &superusers);
    assert_eq!(code, Some(1), "{said}");
    for extra in ["/app/q-0000000004", "/app/q-0000000009", "/app/locks/l-0000000001"] {
        assert!(said.contains(&format!("{extra}: only the destination has it")), "{said}");
    }
    assert!(said.contains("Written: 1 with new data\n") && said.contains("3 differences"), "{said}");
    assert_eq!(&target.data("/app").expect("it is there")[..], b"second");
    // Through a gateway, too.
    let (code, said) = import(&new, &[&superusers[..], &["--to", &here, "--delete-extra"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Written: 3 removed\n"), "{said}");
    assert_eq!(target.data("/app/q-0000000009"), Err(-101));
    assert_eq!(target.numbered("/app/q-", 2), "/app/q-0000000010", "not even then");

    // Part of it, as clients with a chroot see it.
    let part = [there.as_str(), "/app"].concat();
    let (code, said) = import(&new, &["--from", &part, "--path", "/locks", "--keep-extra"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(&target.data("/locks").expect("it came")[..], b"");
    // One without quotas takes those away that are here, and leaves the servers' own node.
    let part = [there.as_str(), "/app/hidden"].concat();
    let superusers = ["--from", &part, "--from-digest", file, "--to-digest", file, "--delete-extra"];
    let (code, said) = import(&new, &superusers);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(&target.data("/deep").expect("it came")[..], b"deeper");
    assert_eq!(target.data("/app"), Err(-101));
    assert_eq!(target.data("/zookeeper/quota/app"), Err(-101));
    assert_eq!(&target.data("/zookeeper/quota").expect("it stays")[..], b"");
}

#[test]
fn what_cannot_be_imported_is_refused_with_what_to_do() {
    let scratch = Scratch::new("import-refused");
    let dir = scratch.0.as_path();
    std::fs::create_dir_all(dir).expect("a directory");
    let (code, said) = import(dir, &["--from", "127.0.0.1:1"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("no session with the source: 127.0.0.1:1"), "{said}");
    let secret = dir.join("secret");
    std::fs::write(&secret, format!("{SUPERUSER}\n")).expect("our own");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("our own");
    let file = secret.to_str().expect("plain");
    for (arguments, why) in [
        (
            &["--from", "zk1", "--to", "127.0.0.1,gw1", "--to-digest", file][..],
            "the way to gw1:2181 would read",
        ),
        (&["--from", "zk1:port"], "no port"),
        (&["--from", "zk1", "--path", "/zookeeper"], "quotas"),
        (&["--from", "zk1", "--kind", "/a=ttl:0"], "MILLISECONDS"),
        (&["--from", "zk1", "--delete-extra", "--keep-extra"], "cannot be used with"),
        (&["--from", "zk1", "--from-tls-key", "key.pem"], "--from-tls-certificates"),
    ] {
        let (code, said) = import(dir, arguments);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

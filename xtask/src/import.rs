//! `import`: a tree of Apache ZooKeeper's is brought into a Troth group, and ZooKeeper's own command line is shown both.

use crate::cli::{Arguments, Command, Opt, Report};
use crate::zkcli::compare::{blocks, difference};
use crate::zkcli::servers::{self, Servers};
use crate::zkcli::{mark, said};
use crate::{peers, workspace};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

/// The command.
pub const COMMAND: Command = Command {
    name: "import",
    words: "",
    summary: "bring a tree of ZooKeeper's into Troth and have ZooKeeper's own command line show both",
    details: "
Starts three servers of Apache ZooKeeper 3.9.5 and a local Troth group with a gateway, has ZooKeeperMain make nodes of all kinds, with
access control lists, quotas and sequential names, some of which are gone again, in the first; brings them into the group
with `troth import zookeeper`, twice; and compares what ZooKeeperMain prints of both: it holds where names, data, lists and
limits are equal, the second run writes nothing, and no name that was given is given again. Needs a JDK and `mvn`; what is
fetched stays below target/peers.",
    options: &[Opt { name: "--troth", value: "PATH", help: "a troth that is built already, in the place of a release" }],
    run,
};

/// Who owns what not everybody may see.
const OWNER: &str = "me:mine";
const LOGIN: &str = "addauth digest me:mine";

/// What the tree is made with, in one session: its ephemeral nodes go at the end.
const MADE: &[&str] = &[
    LOGIN,
    "create /app one",
    "create /app/empty",
    "create /app/a data",
    "create /app/a/deep deeper",
    "create -s /app/q- x",
    "create -s /app/q- y",
    "create -s /app/q- z",
    "delete /app/q-0000000004",
    "create /locks",
    "create -e -s /locks/l- 1",
    "create -e -s /locks/l- 2",
    "create -c /container",
    "create -c /container/c",
    "create -t 3600000 /ttl v",
    "create /own secret digest:me:7EWDTUlOEqjDRjFUxaaUYXYKnfA=:cdrwa",
    "create /mixed m world:anyone:r,ip:10.0.0.0/8:rw,ip:127.0.0.1:cdrwa",
    "setAcl / world:anyone:cdrwa,ip:10.0.0.1:r",
    "set / root",
    "setquota -n 100 /app",
    "setquota -B 100000 /locks",
];

/// What is compared of both.
const SHOWN: &[&str] = &[
    LOGIN,
    "ls -R /app",
    "ls /",
    "get /",
    "getAcl /",
    "get /app",
    "get /app/empty",
    "get /app/a",
    "get /app/a/deep",
    "get /app/q-0000000002",
    "get /app/q-0000000003",
    "getAcl /app",
    "ls -R /locks",
    "ls -R /container",
    "get /ttl",
    "get /own",
    "getAcl /own",
    "get /mixed",
    "getAcl /mixed",
    "listquota /app",
    "listquota /locks",
    "create -s /app/q- n",
    "create -s /locks/l- n",
    "create -s /s- n",
];

/// Some of what ZooKeeper must show, or nothing was compared.
const CERTAIN: &[&str] = &[
    "secret",
    "deeper",
    "Created /app/q-0000000005",
    "Created /locks/l-0000000002",
    "Output quota for /app count=100",
];

/// A file that is gone with this.
struct Secret(PathBuf);

impl Secret {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("troth-import-owner-{}", std::process::id()));
        let written = fs::write(&path, format!("{OWNER}\n"))
            .and_then(|()| fs::set_permissions(&path, PermissionsExt::from_mode(0o600)));
        written.map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs the import; what it prints.
fn import(troth: &Path, from: &str, to: &str, owner: &Path) -> Result<String, String> {
    let mut program = Program::new(troth);
    program.args(["import", "zookeeper", "--from", from, "--to", to]);
    program.arg("--from-digest").arg(owner).arg("--to-digest").arg(owner);
    let output = program.output().map_err(|why| format!("{} does not start: {why}", troth.display()))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("{said}");
    if output.status.success() {
        Ok(said)
    } else {
        Err(format!("the import failed ({}):\n{said}", output.status))
    }
}

fn run(arguments: &Arguments) -> Result<Report, String> {
    let root = workspace::root();
    let products = workspace::target(&root).join("peers");
    fs::create_dir_all(&products).map_err(|why| format!("{}: {why}", products.display()))?;
    let classes = peers::zookeeper(&root, &products)?;
    let troth = match arguments.all("--troth").pop() {
        Some(path) => PathBuf::from(path),
        None => {
            println!("building troth");
            servers::built(&root)?
        }
    };
    let (zookeeper, group) = (Servers::zookeeper(&classes)?, Servers::troth(&troth)?);
    for one in [&zookeeper, &group] {
        one.wait()?;
    }
    // Both have a leader then; the mark, by which output is cut, is imported from the first into the second.
    mark(&classes, &zookeeper.address)?;
    said(&classes, &zookeeper.address, MADE)?;
    let owner = Secret::new()?;
    import(&troth, &zookeeper.address, &group.address, &owner.0)?;
    let again = import(&troth, &zookeeper.address, &group.address, &owner.0)?;
    let mut unequal = Vec::new();
    if !again.contains("Written: nothing") {
        unequal.push("the second run writes something".to_string());
    }
    let mut shown = Vec::new();
    for one in [&zookeeper, &group] {
        shown.push(blocks(&said(&classes, &one.address, SHOWN)?, SHOWN)?);
    }
    let theirs = || shown[0].iter().flatten();
    if let Some(missing) = CERTAIN.iter().find(|words| !theirs().any(|line| line.contains(*words))) {
        return Err(format!("ZooKeeper does not show '{missing}': its tree was not made"));
    }
    for ((command, theirs), ours) in SHOWN.iter().zip(&shown[0]).zip(&shown[1]) {
        if let Some(how) = difference(theirs, ours) {
            println!("{command}\n{how}");
            unequal.push((*command).to_string());
        }
    }
    let all = SHOWN.len() + 1;
    let summary = format!(
        "{} of {all} comparisons of a tree of ZooKeeper 3.9.5 with what was imported of it are equal",
        all - unequal.len()
    );
    let json = json!({ "summary": summary, "compared": all, "unequal": unequal });
    Ok(Report { ok: unequal.is_empty(), summary, json })
}

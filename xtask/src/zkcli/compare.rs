//! Output of one and of the other, cut at the marks, without what must differ.

/// What one command printed: its lines, without identifiers and times, sorted.
pub type Block = Vec<String>;

/// What the mark's node holds, as a line of its own.
const MARKED: &str = "======";
/// Fields of a node's stat, and words before a number, that are identifiers or times.
const VARYING: [&str; 6] =
    ["cZxid = ", "mZxid = ", "pZxid = ", "ctime = ", "mtime = ", "ephemeralOwner = 0x"];

/// What is told of connections: when it comes is a matter of time.
const CONNECTIONS: [&str; 4] = [
    "WATCHER::",
    "Connecting to ",
    "WatchedEvent state:SyncConnected type:None",
    "WatchedEvent state:Closed type:None",
];
/// How a line begins that describes the servers of one or the other, which are identifiers.
const SERVERS: [&str; 5] = ["server.", "replica.", "protocol=", "# Group ", "version="];

/// Takes the watch events out of the blocks: a thread of its own prints them, before or after what the next command says.
pub fn events(blocks: &mut [Block]) -> Block {
    let mut events = Vec::new();
    for block in blocks {
        let (watched, rest): (Block, Block) =
            std::mem::take(block).into_iter().partition(|line| line.starts_with("WatchedEvent "));
        events.extend(watched);
        *block = rest;
    }
    events.sort();
    events
}

/// Cuts the output at the marks: as many blocks as there are commands, unless a command ended the session.
pub fn blocks(said: &str, commands: &[&str]) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut block = Vec::new();
    for line in said.lines() {
        if line.trim() == MARKED {
            blocks.push(finished(std::mem::take(&mut block)));
        } else {
            block.push(line.to_owned());
        }
    }
    let rest = finished(block);
    // After `quit` and where a connection was closed nothing answers the mark.
    while blocks.len() < commands.len() {
        blocks.push(if rest.is_empty() { Vec::new() } else { rest.clone() });
    }
    if blocks.len() > commands.len() {
        return Err(format!("{} marks for {} commands:\n{said}", blocks.len(), commands.len()));
    }
    Ok(blocks)
}

fn finished(lines: Vec<String>) -> Block {
    let mut lines: Vec<String> =
        lines.iter().map(|line| without_identifiers(line)).filter(|line| !line.is_empty()).collect();
    lines.sort();
    lines
}

/// The line without identifiers and times.
pub fn without_identifiers(line: &str) -> String {
    let line = line.trim();
    if CONNECTIONS.iter().chain(&SERVERS).any(|beginning| line.starts_with(beginning)) {
        return String::new();
    }
    for field in VARYING {
        if line.strip_prefix(field).is_some() {
            // Whether a node has an owner is none of that.
            let none = field.ends_with("0x") && line == "ephemeralOwner = 0x0";
            return if none { line.to_owned() } else { format!("{field}…") };
        }
    }
    let mut out = String::new();
    let mut rest = line;
    // Numbers in hexadecimal are sessions and transactions.
    while let Some(at) = rest.find("0x") {
        out += &rest[..at];
        let digits = rest[at + 2..].chars().take_while(char::is_ascii_hexdigit).count();
        out += "0x…";
        rest = &rest[at + 2 + digits..];
    }
    out += rest;
    for (before, after) in [("zxid: ", " "), ("zxid:", " ")] {
        if let Some(at) = out.find(before) {
            let from = at + before.len();
            let end = out[from..].find(after).map_or(out.len(), |end| from + end);
            out.replace_range(from..end, "…");
            break;
        }
    }
    out
}

/// How two blocks differ; nothing where they do not.
pub fn difference(theirs: &Block, ours: &Block) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let only = |these: &Block, those: &Block, sign: &str| -> String {
        these.iter().filter(|line| !those.contains(line)).map(|line| format!("  {sign} {line}\n")).collect()
    };
    let how = only(theirs, ours, "ZooKeeper alone:") + &only(ours, theirs, "Troth alone:    ");
    Some(if how.is_empty() { format!("  {} lines and {}\n", theirs.len(), ours.len()) } else { how })
}

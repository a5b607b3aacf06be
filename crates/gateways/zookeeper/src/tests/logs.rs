//! What writes the lines of logs: files that are bounded, disks that are full, and readers that do not read.

use super::marks::covers;
use crate::shell::{Files, Sink, Writer};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use tempfile::tempdir;

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn files_are_bounded_in_size_and_number() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    let mut files = Files::open(&path, 20, 3).expect("a file");
    for number in 0..9 {
        files.write_line(&format!("line {number}")).expect("room");
    }
    // Each has seven bytes.
    let expected =
        [("audit.log", "line 8\n"), ("audit.log.1", "line 6\nline 7\n"), ("audit.log.2", "line 4\nline 5\n")];
    for (name, lines) in expected {
        assert_eq!(text(&directory.path().join(name)), lines);
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 3);
    // A line that is too long for any file has one of its own.
    files.write_line(&"x".repeat(50)).expect("room");
    files.write_line("after").expect("room");
    assert_eq!(text(&path), "after\n");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).expect("a file"));
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn where_a_file_cannot_be_put_aside_no_older_one_is_lost() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    let mut files = Files::open(&path, 10, 3).expect("a file");
    for number in 0..3 {
        files.write_line(&format!("line {number}")).expect("room");
    }
    // Something stands in the way, and goes again.
    let way = directory.path().join("audit.log.0");
    std::fs::create_dir_all(way.join("below")).expect("our own");
    for _ in 0..5 {
        assert!(files.write_line("line 3").is_err());
    }
    std::fs::remove_dir_all(&way).expect("our own");
    files.write_line("line 4").expect("room");
    for (name, line) in [("audit.log", "line 4\n"), ("audit.log.1", "line 2\n"), ("audit.log.2", "line 1\n")]
    {
        assert_eq!(text(&directory.path().join(name)), line);
    }
    // Somebody else has put it aside.
    std::fs::remove_file(&path).expect("our own");
    files.write_line("line 5").expect("room");
    assert_eq!(text(&path), "line 5\n");
}

#[test]
fn a_line_that_was_cut_off_ends_before_the_next() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    std::fs::write(&path, "{\"half").expect("our own");
    allow(&path, 0o600);
    let mut files = Files::open(&path, 1000, 3).expect("a file");
    files.write_line("whole").expect("room");
    files.write_line("more").expect("room");
    assert_eq!(text(&path), "{\"half\nwhole\nmore\n");
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own");
}

#[test]
fn nothing_is_written_where_others_read_or_say_so() {
    covers!("ZKG-W6");
    let directory = tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    for mode in [0o640, 0o604, 0o620, 0o602] {
        std::fs::write(at("open"), "").expect("our own");
        allow(&at("open"), mode);
        assert!(Files::open(&at("open"), 100, 3).is_err(), "{mode:o}");
    }
    allow(&at("open"), 0o600);
    assert!(Files::open(&at("open"), 100, 3).is_ok());
    std::os::unix::fs::symlink(at("open"), at("link")).expect("our own");
    assert!(Files::open(&at("link"), 100, 3).is_err());
    // Nobody reads it, or somebody does.
    let pipe = at("pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).expect("our own");
    assert!(Files::open(&pipe, 100, 3).is_err());
    let _reader = std::fs::File::options().read(true).write(true).open(&pipe).expect("our own");
    assert!(Files::open(&pipe, 100, 3).is_err());
}

#[test]
fn a_file_that_was_being_put_aside_is_put_aside_and_none_is_lost() {
    covers!("ZKG-W6");
    let directory = tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    for (name, text) in [("log.0", "c\n"), ("log.2", "b\n"), ("log.3", "a\n")] {
        std::fs::write(at(name), text).expect("our own");
    }
    drop(Files::open(&at("log"), 4, 4).expect("a file"));
    assert_eq!(["log.1", "log.2", "log.3"].map(|name| text(&at(name))), ["c\n", "b\n", "a\n"]);
    assert!(!at("log.0").exists());
    // Where none is free the oldest goes.
    std::fs::rename(at("log.3"), at("log.0")).expect("our own");
    drop(Files::open(&at("log"), 4, 3).expect("a file"));
    assert_eq!(["log.1", "log.2"].map(|name| text(&at(name))), ["a\n", "c\n"]);
}

#[test]
fn one_file_alone_begins_anew() {
    let directory = tempdir().expect("a directory");
    let path = directory.path().join("slow.log");
    let mut files = Files::open(&path, 10, 1).expect("a file");
    for number in 0..3 {
        files.write_line(&format!("line {number}")).expect("room");
    }
    assert_eq!(text(&path), "line 2\n");
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
}

/// Writes a line when it is told how that goes.
struct Told {
    how: Receiver<bool>,
    lines: Sender<String>,
}

impl Sink for Told {
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        // Whoever tells is gone at the end: then all goes well.
        if !self.how.recv().unwrap_or(true) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.lines.send(line.to_owned()).map_err(io::Error::other)
    }
}

fn told() -> (Writer, Sender<bool>, Receiver<String>) {
    let (how, hows) = channel();
    let (lines, written) = channel();
    (Writer::to(Box::new(Told { how: hows, lines })).expect("a thread"), how, written)
}

#[tokio::test]
async fn lines_that_a_full_disk_does_not_take_are_counted_and_told_of() {
    covers!("ZKG-W4");
    let (writer, how, written) = told();
    let counts = writer.counts();
    for (line, outcomes) in [("a", &[true][..]), ("b", &[false]), ("c", &[false]), ("d", &[true, true])] {
        writer.write(line.to_owned());
        outcomes.iter().for_each(|outcome| how.send(*outcome).expect("it listens"));
    }
    drop(how);
    writer.end().await;
    let lines: Vec<String> = written.iter().collect();
    assert_eq!(lines, ["a", "{\"lost_lines\":2}", "d"]);
    assert_eq!((counts.written.get(), counts.lost.get()), (2, 2));
}

#[tokio::test]
async fn a_reader_that_does_not_read_stops_nobody() {
    covers!("ZKG-W4");
    // More than may wait, in bytes and in number: it would never end where somebody waited.
    for (lines, length, least_lost) in [(200, 1 << 20, 180), (100_000, 1, 80_000)] {
        let (writer, how, written) = told();
        let counts = writer.counts();
        for _ in 0..lines {
            writer.write("x".repeat(length));
        }
        assert!(counts.lost.get() > least_lost, "{}", counts.lost.get());
        drop(how);
        writer.end().await;
        let told = written
            .iter()
            .filter_map(|line| line.strip_prefix("{\"lost_lines\":")?.strip_suffix('}')?.parse::<u64>().ok());
        assert_eq!(told.sum::<u64>(), counts.lost.get());
        assert_eq!(counts.written.get() + counts.lost.get(), lines);
    }
}

#[tokio::test]
async fn what_was_not_done_leaves_room_for_what_was() {
    covers!("ZKG-W5");
    for (length, lines) in [(1, 20_000), (1 << 20, 40)] {
        let (writer, how, written) = told();
        let counts = writer.counts();
        for _ in 0..lines {
            writer.write_if_idle("x".repeat(length));
        }
        let lost = counts.lost.get();
        assert!(lost > lines / 2, "{lost}");
        for _ in 0..4 {
            writer.write("done".to_owned());
        }
        assert_eq!(counts.lost.get(), lost);
        writer.lose(3);
        drop(how);
        writer.end().await;
        assert_eq!(counts.lost.get(), lost + 3);
        assert_eq!(written.iter().filter(|line| line == "done").count(), 4);
    }
}

#[tokio::test]
async fn what_waits_when_the_gateway_ends_is_counted_as_lost() {
    covers!("ZKG-W4");
    let (writer, how, _written) = told();
    let counts = writer.counts();
    for _ in 0..3 {
        writer.write("x".to_owned());
    }
    writer.end().await;
    assert_eq!((counts.written.get(), counts.lost.get()), (0, 3));
    drop(how);
}

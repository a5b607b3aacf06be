//! Printing. `println!` and `eprintln!` panic where a line cannot be written (a closed pipe, a full
//! disk), and a release build aborts on a panic, with keys and processes left behind.

use crate::failure::Failure;
use std::fmt::{Arguments, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};

/// Prints a line for whoever reads; it is no failure where nobody does.
macro_rules! say {
    ($($words:tt)*) => { $crate::print::line(std::io::stdout(), format_args!($($words)*)) };
}

/// Prints a line on standard error; it is no failure where nobody reads it.
macro_rules! note {
    ($($words:tt)*) => { $crate::print::line(std::io::stderr(), format_args!($($words)*)) };
}

pub(crate) use {note, say};

/// Writes a line where it can be written.
pub(crate) fn line(mut to: impl Write, words: Arguments<'_>) {
    let _ = writeln!(to, "{words}").and_then(|()| to.flush());
}

/// Writes part of a line where it can be written, and shows it at once.
#[cfg(feature = "demo-adversary")]
pub(crate) fn part(words: &str) {
    let mut to = std::io::stdout();
    let _ = to.write_all(words.as_bytes()).and_then(|()| to.flush());
}

/// Prints what the command was asked for.
///
/// # Errors
/// Where it cannot be written. A reader that has seen enough and hung up needs no message.
pub(crate) fn output(bytes: &[u8]) -> Result<(), Failure> {
    let mut to = std::io::stdout();
    to.write_all(bytes).and_then(|()| to.flush()).map_err(|why| match why.kind() {
        ErrorKind::BrokenPipe => Failure::new(crate::failure::NOT_DONE, ""),
        _ => Failure::system("cannot print", &why),
    })
}

/// Prints a key or value: byte by byte to a file or a program, without what commands a terminal to a
/// terminal. Whoever may write to the store is not thereby allowed to write to the reader's screen.
///
/// # Errors
/// As [`output`].
pub(crate) fn stored(bytes: &[u8]) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        output(escaped(&String::from_utf8_lossy(bytes), &['\n', '\t']).as_bytes())
    } else {
        output(bytes)
    }
}

/// Text that came from outside, fit to stand in a line: control characters as `\u{1b}`.
pub(crate) fn foreign(text: &str) -> String {
    escaped(text, &[])
}

/// JSON as one line, with the control characters escaped that JSON itself allows in a string.
pub(crate) fn json(value: &serde_json::Value) -> String {
    let mut line = String::new();
    for character in value.to_string().chars() {
        if character.is_control() {
            write!(line, "\\u{:04x}", u32::from(character)).expect("a string takes all");
        } else {
            line.push(character);
        }
    }
    line
}

fn escaped(text: &str, but: &[char]) -> String {
    let mut line = String::new();
    for character in text.chars() {
        if character.is_control() && !but.contains(&character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

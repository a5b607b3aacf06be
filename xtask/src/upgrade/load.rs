//! Writes by several clients at once, and whether they are all there.

use super::group::Group;
use std::collections::BTreeMap;
use std::thread;

/// Clients at work at once; each write is a process of its own.
const WRITERS: usize = 4;

/// What was acknowledged, by key.
#[derive(Default)]
pub struct Written(BTreeMap<String, String>);

impl Written {
    /// Has so many writes ordered; each must be acknowledged.
    pub fn write(&mut self, group: &Group, phase: &str, count: usize) -> Result<(), String> {
        let done: Vec<Result<Vec<(String, String)>, String>> = thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    scope.spawn(move || {
                        let mut done = Vec::new();
                        for number in (writer..count).step_by(WRITERS) {
                            let (key, value) = (format!("{phase}/{}", number % 100), number.to_string());
                            group.troth(&["kv", "put", &key, &value])?;
                            done.push((key, value));
                        }
                        Ok(done)
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().expect("a writer does not panic")).collect()
        });
        for done in done {
            // Every key belongs to one writer, so the last one acknowledged is the one that is there.
            self.0.extend(done?);
        }
        Ok(())
    }

    /// Whether every acknowledged write is there; says how many keys.
    pub fn check(&self, group: &Group) -> Result<usize, String> {
        for (key, value) in &self.0 {
            let found = group.troth(&["kv", "get", key])?;
            if found.trim_end() != value {
                return Err(format!("{key} holds {found:?} and {value} was acknowledged last"));
            }
        }
        Ok(self.0.len())
    }
}

//! I8, second half: what a replica holds stays within bounds, whatever others send.

/// Judges sizes.
#[derive(Debug, Default)]
pub struct Bounded {
    /// The longest log (records) of any correct node.
    pub longest_log: usize,
}

impl Bounded {
    /// A correct node's log has this many records, of at most `most`; `excess` is what its protocol
    /// finds out of bounds in its memory.
    pub fn look(&mut self, log: usize, most: usize, excess: Option<String>) -> Result<(), String> {
        self.longest_log = self.longest_log.max(log);
        match excess {
            Some(excess) => Err(excess),
            None if log > most => Err(format!("the log has {log} records, at most {most} were expected")),
            None => Ok(()),
        }
    }
}

//! The last things that happened, kept only where somebody wants to read them.

use std::cell::RefCell;
use std::collections::VecDeque;

std::thread_local! {
    /// The lines of the run on this thread: one that ends in a panic has nobody to hand them to.
    static LINES: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// A ring of lines; empty and free where no trace was asked for.
#[derive(Debug, Default)]
pub struct Trace {
    most: usize,
}

impl Trace {
    /// Keeps at most so many lines, of the one run that this thread has.
    pub fn new(most: usize) -> Self {
        take();
        Self { most }
    }

    pub fn note(&mut self, now: u64, line: impl FnOnce() -> String) {
        if self.most == 0 {
            return;
        }
        let mut text = line();
        if text.len() > 600 {
            let cut = (0..=600).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
            text.push('…');
        }
        LINES.with_borrow_mut(|lines| {
            if lines.len() == self.most {
                lines.pop_front();
            }
            lines.push_back(format!("{now:>9} {text}"));
        });
    }
}

/// Takes out the lines of this thread's last run.
pub fn take() -> Vec<String> {
    LINES.take().into()
}

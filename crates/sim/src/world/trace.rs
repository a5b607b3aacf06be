//! The last things that happened, kept only where somebody wants to read them.

use std::collections::VecDeque;

/// A ring of lines; empty and free where no trace was asked for.
#[derive(Debug, Default)]
pub struct Trace {
    most: usize,
    lines: VecDeque<String>,
}

impl Trace {
    /// Keeps at most so many lines.
    pub fn new(most: usize) -> Self {
        Self { most, lines: VecDeque::new() }
    }

    pub fn note(&mut self, now: u64, line: impl FnOnce() -> String) {
        if self.most == 0 {
            return;
        }
        if self.lines.len() == self.most {
            self.lines.pop_front();
        }
        let mut text = line();
        if text.len() > 600 {
            let cut = (0..=600).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
            text.push('…');
        }
        self.lines.push_back(format!("{now:>9} {text}"));
    }

    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}

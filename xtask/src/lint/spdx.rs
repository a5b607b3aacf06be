//! Licence expressions: enough of SPDX to decide whether a set of licences satisfies one.

/// Whether an expression such as `(MIT OR Apache-2.0) AND Unicode-3.0` can be met with allowed
/// licences alone; an error where it is no expression. The old form `MIT/Apache-2.0` means OR.
pub fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, at: 0, allowed };
    let verdict = parser.either()?;
    match parser.words.get(parser.at) {
        None => Ok(verdict),
        Some(word) => Err(format!("'{word}' is out of place in the licence '{expression}'")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at) == Some(&word);
        self.at += usize::from(found);
        found
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut verdict = self.both()?;
        while self.take("OR") {
            verdict |= self.both()?;
        }
        Ok(verdict)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut verdict = self.one()?;
        while self.take("AND") {
            verdict &= self.one()?;
        }
        Ok(verdict)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let verdict = self.either()?;
            return if self.take(")") { Ok(verdict) } else { Err("a parenthesis is not closed".to_string()) };
        }
        let licence = *self.words.get(self.at).ok_or("the licence ends too early")?;
        if matches!(licence, "OR" | "AND" | "WITH" | ")") {
            return Err(format!("'{licence}' stands where a licence should"));
        }
        self.at += 1;
        if self.take("WITH") {
            let exception = *self.words.get(self.at).ok_or("an exception is missing after WITH")?;
            self.at += 1;
            return Ok((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.allowed)(licence))
    }
}

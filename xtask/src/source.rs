//! A small reader of Rust source: identifiers, punctuation and string literals with their lines,
//! without comments. Enough for the lints, which must not trip over words in comments.

use crate::workspace::SourceFile;

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Ident(String),
    /// A string literal of any form; the text between the quotes, escapes left as written.
    Text(String),
    /// A single character of punctuation.
    Punct(char),
}

/// A token with its line, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where it starts.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
}

impl Token {
    /// Whether it is this identifier.
    pub fn is(&self, ident: &str) -> bool {
        matches!(&self.kind, Kind::Ident(found) if found == ident)
    }

    /// Whether it is this character.
    pub fn is_punct(&self, punct: char) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

/// Whether a path holds Rust source.
pub fn is_rust(file: &SourceFile) -> bool {
    file.path.ends_with(".rs")
}

/// Whether a path holds Go source.
pub fn is_go(file: &SourceFile) -> bool {
    file.path.ends_with(".go")
}

/// Whether a file holds tests, benchmarks or examples rather than what ships.
pub fn is_test(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| {
        matches!(part, "tests" | "benches" | "examples" | "tests.rs") || part.ends_with("_test.go")
    })
}

/// Splits source into tokens. Numbers, characters and lifetimes are left out.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { chars: &chars, at: 0, line: 1, tokens: Vec::new() };
    while reader.at < reader.chars.len() {
        reader.step();
    }
    reader.tokens
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn advance(&mut self, count: usize) {
        for _ in 0..count {
            if self.peek(0) == '\n' {
                self.line += 1;
            }
            self.at += 1;
        }
    }

    fn step(&mut self) {
        match self.peek(0) {
            '/' if self.peek(1) == '/' => {
                while self.at < self.chars.len() && self.peek(0) != '\n' {
                    self.advance(1);
                }
            }
            '/' if self.peek(1) == '*' => self.block_comment(),
            '"' => self.text(),
            '\'' => self.quote(),
            c if c.is_ascii_digit() => {
                while is_word(self.peek(0)) {
                    self.advance(1);
                }
            }
            c if is_word(c) => self.word(),
            c => {
                if !c.is_whitespace() {
                    self.tokens.push(Token { line: self.line, kind: Kind::Punct(c) });
                }
                self.advance(1);
            }
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => {
                    depth += 1;
                    self.advance(2);
                }
                ('*', '/') => {
                    depth -= 1;
                    self.advance(2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.advance(1),
            }
        }
    }

    fn text(&mut self) {
        let line = self.line;
        self.advance(1);
        let mut content = String::new();
        while self.at < self.chars.len() && self.peek(0) != '"' {
            let length = if self.peek(0) == '\\' { 2 } else { 1 };
            content.extend((0..length).map(|ahead| self.peek(ahead)));
            self.advance(length);
        }
        self.advance(1);
        self.tokens.push(Token { line, kind: Kind::Text(content) });
    }

    fn raw_text(&mut self) {
        let line = self.line;
        let mut hashes = 0;
        while self.peek(0) == '#' {
            hashes += 1;
            self.advance(1);
        }
        self.advance(1);
        let mut content = String::new();
        while self.at < self.chars.len() {
            if self.peek(0) == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == '#') {
                self.advance(1 + hashes);
                break;
            }
            content.push(self.peek(0));
            self.advance(1);
        }
        self.tokens.push(Token { line, kind: Kind::Text(content) });
    }

    /// A character or a lifetime.
    fn quote(&mut self) {
        if self.peek(1) == '\\' {
            self.advance(3);
            while self.at < self.chars.len() && self.peek(0) != '\'' {
                self.advance(1);
            }
            self.advance(1);
        } else if self.peek(2) == '\'' {
            self.advance(3);
        } else {
            self.advance(1);
            while is_word(self.peek(0)) {
                self.advance(1);
            }
        }
    }

    fn word(&mut self) {
        let line = self.line;
        let mut word = String::new();
        while is_word(self.peek(0)) {
            word.push(self.peek(0));
            self.advance(1);
        }
        match (word.as_str(), self.peek(0)) {
            ("b" | "c", '"') => self.text(),
            ("b", '\'') => self.quote(),
            ("r" | "br" | "cr", '"') => self.raw_text(),
            ("br" | "cr", '#') => self.raw_text(),
            ("r", '#') if self.peek(1) == '"' || self.peek(1) == '#' => self.raw_text(),
            ("r", '#') => self.advance(1),
            _ => self.tokens.push(Token { line, kind: Kind::Ident(word) }),
        }
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The server's parser. It needs no other part of the server, which takes a long time to build.
#[path = "../../cli/src/serve/resp/frames.rs"]
mod parser;

/// The input is a byte for the limit, a byte for the position of a split, and the bytes a client sends. No
/// matter where those are split in transit, the commands must be the same, and the server must never keep
/// more than the limit.
pub fn frames(data: &[u8]) {
    let Some(([limit, at], sent)) = data.split_first_chunk() else { return };
    let limit = 16 + usize::from(*limit);
    let whole = Connection::new(limit).receive(&[sent]);
    // Testing all positions would take too long for a fuzzer.
    let at = usize::from(*at).min(sent.len());
    for at in if cfg!(feature = "libfuzzer") { at..at + 1 } else { 0..sent.len() } {
        let (first, rest) = sent.split_at(at);
        assert!(Connection::new(limit).receive(&[first, rest]) == whole, "split at {at}");
    }
    for size in [1, 2, 7] {
        let pieces: Vec<_> = sent.chunks(size).collect();
        assert!(Connection::new(limit).receive(&pieces) == whole, "pieces of {size}");
    }
    // Other clients send the same commands as lists.
    for words in whole.commands.iter().filter(|words| !words.is_empty()) {
        let list = list(words);
        let again = Connection::new(list.len().max(16)).receive(&[&list]);
        assert!(again.commands == [words.clone()] && again.refusal.is_none() && again.input.is_empty());
    }
}

/// Does what the server does with a connection's bytes, except for running the commands.
#[derive(Debug, PartialEq)]
struct Connection {
    limit: usize,
    input: Vec<u8>,
    commands: Vec<Vec<Vec<u8>>>,
    refusal: Option<String>,
}

impl Connection {
    const fn new(limit: usize) -> Self {
        Self { limit, input: Vec::new(), commands: Vec::new(), refusal: None }
    }

    fn receive(mut self, pieces: &[&[u8]]) -> Self {
        for mut piece in pieces.iter().copied() {
            while !piece.is_empty() && self.refusal.is_none() {
                // As much as the server reads at once.
                let room = self.limit.saturating_sub(self.input.len()).max(1).min(piece.len());
                self.input.extend_from_slice(&piece[..room]);
                piece = &piece[room..];
                assert!(self.input.len() <= self.limit);
                self.parse();
            }
        }
        if self.refusal.is_some() {
            // The connection is closed, so the remaining input does not matter.
            self.input.clear();
        }
        self
    }

    fn parse(&mut self) {
        let mut words = Vec::new();
        loop {
            match parser::command(&self.input, self.limit, &mut words) {
                Ok(Some(used)) => {
                    assert!(0 < used && used <= self.input.len() && words.len() <= 64);
                    let ends: Vec<_> = words.iter().flat_map(|word| [word.start, word.end]).collect();
                    assert!(ends.is_sorted() && ends.last().is_none_or(|&end| end <= used));
                    let texts = words.iter().map(|word| self.input[word.clone()].to_vec());
                    self.commands.push(texts.collect());
                    self.input.drain(..used);
                }
                Ok(None) => return assert!(self.input.len() < self.limit),
                Err(why) => {
                    assert!(
                        !why.is_empty()
                            && why.len() < 100
                            && why.bytes().all(|byte| (b' '..=b'~').contains(&byte))
                    );
                    self.refusal = Some(why);
                    return;
                }
            }
        }
    }
}

fn list(words: &[Vec<u8>]) -> Vec<u8> {
    let mut list = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        list.extend(format!("${}\r\n", word.len()).bytes());
        list.extend_from_slice(word);
        list.extend_from_slice(b"\r\n");
    }
    list
}

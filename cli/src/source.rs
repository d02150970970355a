//! Reads many IDs: from lines, a CSV column, or a key of JSON lines. Memory use is bounded for any input.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::failure::Failure;
use crate::reading::{bare, shortened};

/// Receives a source's strings, one after the other.
pub(crate) trait Sink {
    /// Takes a string that should be an ID, and its position: `line 7`.
    fn write(&mut self, text: &str, place: &str, number: u64) -> Result<(), Failure>;

    /// Does the same for a CSV row, given the row and the column's index.
    fn write_row(&mut self, text: &str, line: u64, _: &csv::ByteRecord, _: usize) -> Result<(), Failure> {
        self.write(text, "line", line)
    }

    /// Takes the first CSV row, if it contains names.
    fn write_names(&mut self, _: &csv::ByteRecord) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes a value that cannot be an ID, and the reason.
    fn refuse(&mut self, place: &str, number: u64, why: &str);

    /// Whether the text in the first row can only be a column's name.
    fn is_name(&self, text: &str) -> bool;

    /// Says why a string is not an ID.
    fn complaint(&self, text: &str) -> Option<String>;

    /// Writes the output so far.
    fn flush(&mut self) -> Result<(), Failure>;
}

/// The longest line or row. An ID has at most 36 characters; JSON lines and CSV rows contain much more.
const LONGEST: u64 = 16 * 1024 * 1024;
/// A file of at least this size gets a progress bar.
const LONG_FILE: u64 = 32 * 1024 * 1024;
const BUFFER: usize = 256 * 1024;
/// The byte order mark in UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Standard input or a file.
pub(crate) struct Source {
    from: Box<dyn Read>,
    name: String,
    bar: ProgressBar,
}

impl Source {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let (from, name, length) = if let Some(path) = path {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| Failure::io(&name, &error))?;
            let length = length_of(&file);
            (Box::new(file) as Box<dyn Read>, name, length)
        } else {
            (Box::new(io::stdin()) as Box<dyn Read>, "standard input".into(), length_of_stdin())
        };
        let bar = bar(length);
        Ok(Self { from: Box::new(Unmarked::new(bar.wrap_read(from))), name, bar })
    }

    /// Reads one ID per line. Empty lines are skipped.
    pub(crate) fn lines(self, writer: &mut impl Sink) -> Result<(), Failure> {
        self.each_line(writer, |writer, number, line| {
            if let Ok(text) = std::str::from_utf8(line) {
                return writer.write(bare(text), "line", number);
            }
            writer.refuse("line", number, "it is not UTF-8");
            Ok(())
        })
    }

    /// Reads a key from one JSON object per line.
    pub(crate) fn json(self, key: &str, writer: &mut impl Sink) -> Result<(), Failure> {
        let path: Vec<&str> = key.split('.').collect();
        self.each_line(writer, |writer, number, line| {
            // When files are joined into one stream, each has its own mark.
            let line = line.strip_prefix(MARK).unwrap_or(line);
            let mut from = serde_json::Deserializer::from_slice(line);
            let found = Key(&path).deserialize(&mut from).and_then(|found| from.end().map(|()| found));
            match found {
                Ok(Some(text)) => writer.write(bare(&text), "line", number)?,
                Ok(None) => writer.refuse("line", number, &format!("it has no key `{}`", shortened(key))),
                Err(error) => {
                    // serde's own position is always in line 1.
                    let text = error.to_string();
                    let text = text.split(" at line 1 ").next().unwrap_or_default();
                    writer.refuse("line", number, &format!("{text}, at character {}", error.column()));
                }
            }
            Ok(())
        })
    }

    /// Reads a CSV column. The first line is skipped only if it has names, so no row is lost.
    pub(crate) fn csv(
        self,
        column: &str,
        may_have_names: bool,
        delimiter: u8,
        writer: &mut impl Sink,
    ) -> Result<(), Failure> {
        let mut index = index_of(column, may_have_names)?;
        let end = End::of(delimiter);
        let limited = Limited { from: self.from, left: LONGEST };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .buffer_capacity(BUFFER)
            .from_reader(limited.chain(&*end.text));
        let failed = |error: &dyn Display| Failure::Io(format!("{}: {error}", self.name));
        let mut row = csv::ByteRecord::new();
        let mut line = 1;
        let mut is_first = true;
        loop {
            reader.get_mut().get_mut().0.left = LONGEST;
            if !reader.read_byte_record(&mut row).map_err(|error| failed(&error))? {
                return Err(failed(&format_args!(
                    "the quote in the row that begins in line {line} is never closed"
                )));
            }
            if end.is(&row) {
                break;
            }
            line = row.position().map_or(0, csv::Position::line);
            let was_first = std::mem::take(&mut is_first) && may_have_names;
            let Some(index) = index else {
                index = Some(named(column, &row)?);
                writer.write_names(&row)?;
                continue;
            };
            if was_first && index >= row.len() {
                let columns = row.len();
                let plural = if columns == 1 { "" } else { "s" };
                let column = shortened(column);
                return Err(Failure::option(format!(
                    "column is `{column}`; the first line has {columns} column{plural}"
                )));
            }
            match row.get(index).map(std::str::from_utf8) {
                Some(Ok(text)) if was_first => first(bare(text), line, &row, index, writer)?,
                Some(Ok(text)) => writer.write_row(bare(text), line, &row, index)?,
                Some(Err(_)) => writer.refuse("line", line, "it is not UTF-8"),
                None => writer.refuse("line", line, &format!("it has {} columns", row.len())),
            }
        }
        if reader.read_byte_record(&mut row).map_err(|error| failed(&error))? {
            return Err(failed(&format_args!("line {}: it is not text", reader.position().line())));
        }
        if index.is_none() {
            named(column, &csv::ByteRecord::new())?;
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    /// Calls `take` with the number and the bytes of each line that is not empty.
    fn each_line<S: Sink>(
        self,
        writer: &mut S,
        mut each: impl FnMut(&mut S, u64, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut from = BufReader::with_capacity(BUFFER, self.from);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = (&mut from).take(LONGEST).read_until(b'\n', &mut line);
            let read = read.map_err(|error| Failure::io(&self.name, &error))?;
            if read == 0 {
                break;
            }
            if line.last() != Some(&b'\n') && line.len() as u64 >= LONGEST {
                return Err(too_long(&self.name, &format!("line {number}")));
            }
            let trimmed = line.trim_ascii();
            if !trimmed.is_empty() {
                each(writer, number, trimmed)?;
            }
            if from.buffer().is_empty() {
                // The next line may take a while, as in `tail -f ids.txt | polyflake decode | grep worker=7`.
                writer.flush()?;
            }
        }
        self.bar.finish_and_clear();
        Ok(())
    }
}

/// The character between CSV columns.
pub(crate) fn delimiter(text: &str) -> Result<u8, Failure> {
    match *text.as_bytes() {
        [delimiter] if !b"\"\r\n".contains(&delimiter) => Ok(delimiter),
        _ => Err(Failure::option(
            "delimiter is one character of ASCII, such as `;` or a tab, and neither a quote nor a line's end",
        )),
    }
}

fn too_long(name: &str, what: &str) -> Failure {
    Failure::Io(format!("{name}: {what} has more than {} MiB", LONGEST >> 20))
}

fn length_of(file: &File) -> Option<u64> {
    file.metadata().ok().filter(std::fs::Metadata::is_file).map(|it| it.len())
}

#[cfg(unix)]
fn length_of_stdin() -> Option<u64> {
    use std::os::fd::AsFd as _;
    // A second handle to the same file, so that closing it does not close standard input.
    let handle = io::stdin().as_fd().try_clone_to_owned().ok()?;
    length_of(&File::from(handle))
}

#[cfg(not(unix))]
fn length_of_stdin() -> Option<u64> {
    None
}

/// A progress bar for a long file whose lines do not go to the screen; otherwise hidden.
fn bar(length: Option<u64>) -> ProgressBar {
    let is_shown = io::stderr().is_terminal() && !io::stdout().is_terminal();
    let Some(length) = length.filter(|&length| is_shown && length >= LONG_FILE) else {
        return ProgressBar::hidden();
    };
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let style = "{percent:>3}% {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The index of a column given by its number from 1. The index of a column given by name is not known until
/// the first line has been read.
fn index_of(column: &str, may_have_names: bool) -> Result<Option<usize>, Failure> {
    let is_number = !column.is_empty() && column.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number && may_have_names {
        return Ok(None);
    }
    let index = column.parse::<usize>().ok().filter(|_| is_number).and_then(|number| number.checked_sub(1));
    index.map(Some).ok_or_else(|| {
        let column = shortened(column);
        let names = if may_have_names { "" } else { "without names in the first line " };
        Failure::option(format!("column is `{column}`; {names}it takes a number from 1"))
    })
}

/// The index of the column with this name.
fn named(column: &str, names: &csv::ByteRecord) -> Result<usize, Failure> {
    let is_it = |name: &[u8]| name.strip_prefix(MARK).unwrap_or(name).trim_ascii() == column.as_bytes();
    names.iter().position(is_it).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(String::from_utf8_lossy).collect();
        Failure::option(format!(
            "column is `{}`; the first line has {}",
            shortened(column),
            shortened(&names.join(", "))
        ))
    })
}

/// Takes the first line of a column given by number: its name, or its first ID.
fn first(
    text: &str,
    line: u64,
    row: &csv::ByteRecord,
    index: usize,
    writer: &mut impl Sink,
) -> Result<(), Failure> {
    if writer.is_name(text) {
        return writer.write_names(row);
    }
    match writer.complaint(text) {
        Some(why) => {
            writer.refuse("line", line, &format!("{why}; if this line has names, give --column a name"));
            Ok(())
        }
        None => writer.write_row(text, line, row, index),
    }
}

/// Appends our own row after the last one. If it is not read back, an open quote has swallowed it, and
/// possibly many rows before it.
struct End {
    text: Vec<u8>,
}

impl End {
    fn of(delimiter: u8) -> Self {
        let byte = u8::from(delimiter == 0);
        Self { text: [&b"\n"[..], &[byte; 16], b"\n"].concat() }
    }

    fn is(&self, row: &csv::ByteRecord) -> bool {
        row.len() == 1 && row.get(0) == Some(self.text.trim_ascii())
    }
}

/// Skips the mark that Windows editors put before UTF-8.
struct Unmarked<R> {
    from: R,
    first: Vec<u8>,
    is_begun: bool,
}

impl<R: Read> Unmarked<R> {
    const fn new(from: R) -> Self {
        Self { from, first: Vec::new(), is_begun: false }
    }

    /// Reads only as much as the answer needs, since more may take a long time to arrive.
    fn begin(&mut self) -> io::Result<()> {
        while matches!(*self.first, [] | [_] | [0xef, 0xbb]) {
            let mut byte = [0];
            match self.from.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => self.first.extend(byte),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match *self.first {
            [0xef, 0xbb, 0xbf] => self.first.clear(),
            [0xff, 0xfe] | [0xfe, 0xff] | [0, _] | [_, 0] => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is UTF-16; it must be UTF-8"));
            }
            _ => {}
        }
        Ok(())
    }
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_begun {
            self.begin()?;
            self.is_begun = true;
        }
        if self.first.is_empty() {
            return self.from.read(buffer);
        }
        let read = self.first.as_slice().read(buffer)?;
        self.first.drain(..read);
        Ok(read)
    }
}

/// Fails if one row takes up the whole limit.
struct Limited {
    from: Box<dyn Read>,
    left: u64,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(format!("a row has more than {} MiB", LONGEST >> 20)));
        }
        let read = self.from.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// Finds the value at a path of keys, and keeps nothing else. A string is kept unchanged, and a number as its digits.
struct Key<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() { from.deserialize_any(Value) } else { from.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let Some((first, rest)) = self.0.split_first() else { return Ok(None) };
        while let Some(is_it) = map.next_key_seed(Name(first))? {
            if is_it {
                found = map.next_value_seed(Key(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Returns true if a key is the one being searched for.
struct Name<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// An ID.
struct Value;

impl Visitor<'_> for Value {
    type Value = Option<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an ID as a string or a whole number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_u64<E>(self, id: u64) -> Result<Self::Value, E> {
        Ok(Some(id.to_string()))
    }

    fn visit_i64<E>(self, id: i64) -> Result<Self::Value, E> {
        Ok(Some(id.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(E::custom("the number has a fraction or more than 64 bits, so it is not an ID"))
    }
}

//! The parts of ZooKeeper's wire format that records need. Numbers are big-endian. Strings, buffers and lists
//! begin with their length.

/// A message being written.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn int(&mut self, it: i32) -> &mut Self {
        self.0.extend(it.to_be_bytes());
        self
    }

    pub(super) fn long(&mut self, it: i64) -> &mut Self {
        self.0.extend(it.to_be_bytes());
        self
    }

    pub(super) fn bool(&mut self, it: bool) -> &mut Self {
        self.0.push(it.into());
        self
    }

    /// Writes a buffer or a string.
    pub(super) fn bytes(&mut self, it: &[u8]) -> &mut Self {
        self.int(i32::try_from(it.len()).unwrap_or(i32::MAX));
        self.0.extend(it);
        self
    }

    /// Returns a message that consists of its length, the numbers in `head` and the written bytes.
    pub(super) fn frame(&self, head: &[i32]) -> Vec<u8> {
        let mut message = Self::default();
        for it in head {
            message.int(*it);
        }
        message.0.extend(&self.0);
        let mut frame = Self::default();
        frame.bytes(&message.0);
        frame.0
    }
}

/// The part of a message that has not been read yet. A read returns `None` if the message does not have the
/// expected form.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (it, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(it)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.take(8)?.try_into().ok().map(i64::from_be_bytes)
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        self.take(1).map(|it| it != [0])
    }

    /// Reads a buffer. A null buffer (-1) reads as an empty one.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.int()? {
            -1 => Some(&[]),
            count => self.take(usize::try_from(count).ok()?),
        }
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.into()).ok()
    }
}

/// The fields of a znode's `Stat` that Polyflake needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// The time of the last change, according to the leader's clock.
    pub(super) mtime_ms: u64,
    /// The number of times the znode has been changed.
    pub(super) version: i32,
    /// The number of the znode's children.
    pub(super) children: i32,
}

impl Stat {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        // Skip czxid, mzxid and ctime.
        from.take(3 * 8)?;
        let mtime_ms = from.long()?.try_into().ok()?;
        let version = from.int()?;
        // Skip cversion, aversion, ephemeralOwner and dataLength.
        from.take(4 + 4 + 8 + 4)?;
        let children = from.int()?;
        // Skip pzxid.
        from.take(8)?;
        Some(Self { mtime_ms, version, children })
    }
}

/// The access rights for a new znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everyone may use the znode.
    Everyone,
    /// Only its creator may use the znode.
    Creator,
}

/// A request, which names a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    Create(String, String, Access),
    /// Deletes a znode that has this version, or any version if `None`.
    Delete(String, Option<i32>),
    /// Sets the data of a znode that has this version, or any version if `None`.
    Set(String, String, Option<i32>),
    Check(String, i32),
    Get(String),
    Children(String),
}

/// The result of a request that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Stat(Stat),
    Data(Vec<u8>, Stat),
    Names(Vec<String>),
}

/// The request code for a transaction.
pub(super) const MULTI: i32 = 14;
/// The request code that closes a session.
pub(super) const CLOSE: i32 = -11;
/// The request code for `addauth`.
pub(super) const AUTH: i32 = 100;

impl Op {
    pub(super) const fn code(&self) -> i32 {
        match self {
            // This is not `create2`, which does not answer with a `Stat` in a transaction.
            Self::Create(..) => 1,
            Self::Delete(..) => 2,
            Self::Get(_) => 4,
            Self::Set(..) => 5,
            Self::Children(_) => 8,
            Self::Check(..) => 13,
        }
    }

    pub(super) fn path(&self) -> &str {
        match self {
            Self::Create(path, ..)
            | Self::Delete(path, _)
            | Self::Set(path, ..)
            | Self::Check(path, _)
            | Self::Get(path)
            | Self::Children(path) => path,
        }
    }

    pub(super) fn write(&self, to: &mut Writer) {
        to.bytes(self.path().as_bytes());
        match self {
            Self::Create(_, data, access) => {
                let (scheme, id) = match access {
                    Access::Everyone => ("world", "anyone"),
                    Access::Creator => ("auth", ""),
                };
                // The access list has one entry, with all rights. Without flags, the znode persists.
                to.bytes(data.as_bytes()).int(1).int(31).bytes(scheme.as_bytes()).bytes(id.as_bytes()).int(0);
            }
            Self::Delete(_, version) => {
                to.int(version.unwrap_or(-1));
            }
            Self::Set(_, data, version) => {
                to.bytes(data.as_bytes()).int(version.unwrap_or(-1));
            }
            Self::Check(_, version) => {
                to.int(*version);
            }
            // The request sets no watch.
            Self::Get(_) | Self::Children(_) => {
                to.bool(false);
            }
        }
    }

    pub(super) fn read(&self, from: &mut Reader<'_>) -> Option<Answer> {
        Some(match self {
            Self::Create(..) => {
                from.bytes()?;
                Answer::Nothing
            }
            Self::Set(..) => Answer::Stat(Stat::read(from)?),
            Self::Delete(..) | Self::Check(..) => Answer::Nothing,
            Self::Get(_) => {
                let data = from.bytes()?.into();
                Answer::Data(data, Stat::read(from)?)
            }
            Self::Children(_) => {
                let count = from.int()?;
                Answer::Names((0..count).map(|_| from.text()).collect::<Option<_>>()?)
            }
        })
    }
}

/// Writes a transaction.
pub(super) fn write_multi(ops: &[Op], to: &mut Writer) {
    for op in ops {
        to.int(op.code()).bool(false).int(-1);
        op.write(to);
    }
    to.int(-1).bool(true).int(-1);
}

/// Returns the result of a transaction: all answers, or the code of the request that failed.
pub(super) fn read_multi(ops: &[Op], from: &mut Reader<'_>) -> Option<Result<Vec<Answer>, i32>> {
    let (mut answers, mut failed) = (Vec::new(), None);
    for op in ops {
        let (kind, _is_done, _error) = (from.int()?, from.bool()?, from.int()?);
        if kind == -1 {
            // The code is 0 for requests before the failed one, and -2 for requests after it.
            let code = from.int()?;
            failed = failed.or(Some(code).filter(|it| ![0, -2].contains(it)));
        } else if kind == op.code() {
            answers.push(op.read(from)?);
        } else {
            return None;
        }
    }
    if let Some(code) = failed {
        return Some(Err(code));
    }
    (answers.len() == ops.len()).then_some(Ok(answers))
}

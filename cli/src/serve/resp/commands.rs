//! The commands.

use std::sync::Arc;
use std::time::Instant;

use polyflake::{Format, Layout, Number};

use super::reply::{Reply, Version};
use crate::reading::{read_id, shortened, shown};
use crate::serve::clients::{Client, SMALL};
use crate::serve::error::{Error, NOT_READY};
use crate::serve::generators::Ids;
use crate::serve::memory::{Output, Room};
use crate::serve::service::Service;
use crate::when;

/// Clients check this to find out what they may send: HELLO was added in version 6.
const REDIS_VERSION: &str = "7.0.0";

/// Every command and its number of words; a negative number is a minimum.
const COMMANDS: [(&str, i64); 16] = [
    ("auth", -2),
    ("client", -2),
    ("command", -1),
    ("echo", 2),
    ("hello", -1),
    ("incr", 2),
    ("incrby", 3),
    ("info", -1),
    ("pf.decode", -2),
    ("pf.next", -2),
    ("pf.seq", 3),
    ("ping", -1),
    ("quit", -1),
    ("readonly", 1),
    ("reset", 1),
    ("select", 2),
];

const WRONGPASS: &str = "WRONGPASS";

/// What happens to a connection after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    GoOn,
    Close,
}

/// A client's connection.
pub(super) struct Session {
    service: Arc<Service>,
    client: Arc<Client>,
    version: Version,
    is_admitted: bool,
    name: String,
    /// The room for replies that have not been sent.
    room: Option<Room>,
}

/// The outcome of a command.
type Done = Result<Reply, Reply>;

impl Session {
    pub(super) fn new(service: Arc<Service>, client: Arc<Client>) -> Self {
        let is_admitted = !service.token.is_wanted();
        Self { service, client, version: Version::Two, is_admitted, name: String::new(), room: None }
    }

    pub(super) const fn version(&self) -> Version {
        self.version
    }

    pub(super) const fn is_admitted(&self) -> bool {
        self.is_admitted
    }

    /// The most bytes that a command may have.
    pub(super) fn limit(&self) -> usize {
        let limit = self.service.limits.frame;
        if self.is_admitted { limit } else { limit.min(SMALL) }
    }

    /// Whether there is room for more replies than the few that each connection may have.
    pub(super) fn has_room(&mut self, bytes: usize) -> bool {
        self.room = self.room.take().or_else(|| self.service.output.room_now(bytes));
        self.room.is_some()
    }

    /// Called when the replies have been sent.
    pub(super) fn sent(&mut self) {
        self.room = None;
    }

    /// Called when all replies have been written to the buffer; they take up `bytes` bytes.
    pub(super) fn keep(&mut self, bytes: usize) {
        if let Some(room) = &mut self.room {
            Output::keep(room, bytes);
        }
    }

    /// A generator's next ID, if the client may have it and no wait is needed.
    pub(super) fn next_at_once(&self, name: &str) -> Option<Reply> {
        let id = self.is_admitted.then(|| self.service.next_at_once(name))??;
        self.service.metrics.resp().request();
        Some(Reply::Number(id))
    }

    /// Runs a command of at least one word.
    pub(super) async fn run(&mut self, words: &[&[u8]]) -> (Reply, After) {
        self.service.metrics.resp().request();
        let [command, arguments @ ..] = words else { return (Reply::Null, After::GoOn) };
        let command = String::from_utf8_lossy(command).to_ascii_lowercase();
        if command == "quit" {
            return (Reply::ok(), After::Close);
        }
        if let ("ping" | "echo", [bytes], true) = (&*command, arguments, self.is_admitted) {
            // Words may contain any bytes: redis-cli --pipe ends with arbitrary ones.
            return (Reply::Bytes(bytes.to_vec()), After::GoOn);
        }
        let start = Instant::now();
        let done = self.run_one(&command, arguments).await;
        self.service.metrics.resp().took(start.elapsed());
        if matches!(&done, Err(Reply::Error(text)) if text.starts_with(WRONGPASS)) {
            self.client.admit(false);
            self.service.refuse(&self.client).await;
            if self.client.is_late() {
                return (done.unwrap_or_else(|error| error), After::Close);
            }
        }
        (done.unwrap_or_else(|error| error), After::GoOn)
    }

    async fn run_one(&mut self, command: &str, arguments: &[&[u8]]) -> Done {
        let arguments: Vec<&str> = arguments
            .iter()
            .map(|word| std::str::from_utf8(word))
            .collect::<Result<_, _>>()
            .map_err(|_| Reply::error("ERR", "a word of the command is not UTF-8"))?;
        if !self.is_admitted && !["auth", "hello", "reset"].contains(&command) {
            self.service.metrics.refuse();
            return Err(Reply::error("NOAUTH", "Authentication required."));
        }
        let wrong_count = || {
            Reply::error("ERR", &format!("wrong number of arguments for '{}' command", shortened(command)))
        };
        match (command, &*arguments) {
            ("incr", [name]) => self.block(name, Number::from(1_u64)).await,
            ("incrby", [name, n]) => self.block(name, Number::parse(n)).await,
            ("pf.next", [name]) => {
                let (ids, _) =
                    self.service.ids(name, Number::from(1_u64)).await.map_err(|error| refused(&error))?;
                Ok(replies(ids).next().unwrap_or(Reply::Null))
            }
            ("pf.next", [name, n]) => {
                let ids = self.service.ids(name, Number::parse(n)).await.map_err(|error| refused(&error))?;
                let (ids, room) = ids;
                match (&mut self.room, room) {
                    (Some(room), Some(more)) => room.merge(more),
                    (room, more) => *room = room.take().or(more),
                }
                Ok(Reply::List(replies(ids).collect()))
            }
            ("pf.seq", [name, key]) => {
                self.service.of_key(name, key).await.map(Reply::Number).map_err(|error| refused(&error))
            }
            ("pf.decode", [id]) => decode(id, &self.service.layout()),
            ("pf.decode", [id, layout]) => decode(id, &Layout::parse(layout).map_err(of_core)?),
            ("ping", []) => Ok(Reply::Simple("PONG")),
            ("hello", arguments) => self.hello(arguments),
            ("auth", [token] | [_, token]) => self.auth(token),
            ("client", [what, rest @ ..]) => self.client(&what.to_ascii_lowercase(), rest),
            ("command", rest) => Ok(command_reply(rest)),
            ("info", _) => Ok(Reply::Text(self.info())),
            ("select", ["0"]) | ("readonly", []) => Ok(Reply::ok()),
            ("select", [_]) => Err(Reply::error("ERR", "DB index is out of range: there is only 0")),
            ("reset", []) => {
                *self = Self::new(Arc::clone(&self.service), Arc::clone(&self.client));
                Ok(Reply::Simple("RESET"))
            }
            _ if COMMANDS.iter().any(|(name, _)| *name == command) => Err(wrong_count()),
            _ => Err(Reply::error("ERR", &format!("unknown command '{}'", shortened(command)))),
        }
    }

    async fn block(&self, name: &str, n: Number) -> Done {
        self.service.block(name, n).await.map(Reply::Number).map_err(|error| refused(&error))
    }

    fn auth(&mut self, token: &str) -> Done {
        if !self.service.token.is_wanted() {
            return Err(Reply::error("ERR", "AUTH was called without any token configured for this server"));
        }
        if self.service.token.admits(token.as_bytes()) {
            self.is_admitted = true;
            return Ok(Reply::ok());
        }
        self.is_admitted = false;
        Err(Reply::error(WRONGPASS, "invalid username-password pair or user is disabled."))
    }

    fn hello(&mut self, arguments: &[&str]) -> Done {
        let mut rest = arguments;
        let mut version = self.version;
        if let [first, after @ ..] = rest {
            version = match *first {
                "2" => Version::Two,
                "3" => Version::Three,
                _ => return Err(Reply::error("NOPROTO", "unsupported protocol version")),
            };
            rest = after;
        }
        let mut name = None;
        loop {
            match rest {
                [] => break,
                [option, _, token, after @ ..] if option.eq_ignore_ascii_case("auth") => {
                    self.auth(token)?;
                    rest = after;
                }
                [option, given, after @ ..] if option.eq_ignore_ascii_case("setname") => {
                    name = Some(given);
                    rest = after;
                }
                _ => return Err(Reply::error("ERR", "Syntax error in HELLO")),
            }
        }
        if !self.is_admitted {
            let why = "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
                       <pass> option can be used to authenticate the client and select the RESP protocol version at the same \
                       time";
            return Err(Reply::error("NOAUTH", why));
        }
        self.version = version;
        if let Some(name) = name {
            (*name).clone_into(&mut self.name);
        }
        let number = match version {
            Version::Two => 2,
            Version::Three => 3,
        };
        Ok(Reply::Map(vec![
            ("server", Reply::text("redis")),
            ("version", Reply::text(REDIS_VERSION)),
            ("proto", Reply::Number(number)),
            ("id", Reply::Number(0)),
            ("mode", Reply::text("standalone")),
            ("role", Reply::text("master")),
            ("modules", Reply::List(Vec::new())),
        ]))
    }

    /// Answers `CLIENT`, with which clients describe themselves or ask about their connections.
    fn client(&mut self, what: &str, rest: &[&str]) -> Done {
        match (what, rest) {
            ("setname", [name]) => {
                (*name).clone_into(&mut self.name);
                Ok(Reply::ok())
            }
            ("getname", []) if self.name.is_empty() => Ok(Reply::Null),
            ("getname", []) => Ok(Reply::text(self.name.clone())),
            ("setinfo", [_, _]) | ("no-evict" | "no-touch", [_]) => Ok(Reply::ok()),
            ("id", []) => Ok(Reply::Number(0)),
            _ => Err(Reply::error("ERR", &format!("unknown subcommand '{}'", shortened(what)))),
        }
    }

    fn info(&self) -> String {
        let names: Vec<_> = self.service.names().collect();
        format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\npolyflake_version:{}\r\n\
             generators:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\n",
            env!("CARGO_PKG_VERSION"),
            shown(&names.join(","))
        )
    }
}

fn replies(ids: Ids) -> Box<dyn Iterator<Item = Reply> + Send> {
    match ids {
        Ids::Numbers(numbers) => Box::new(numbers.into_iter().map(Reply::Number)),
        Ids::Texts(texts) => Box::new(texts.into_iter().map(|id| Reply::Text(id.text))),
    }
}

fn refused(error: &Error) -> Reply {
    // Redis clients retry it.
    let kind = if error.name() == NOT_READY { "LOADING" } else { "ERR" };
    Reply::error(kind, &error.to_string())
}

fn of_core(error: polyflake::Error) -> Reply {
    refused(&error.into())
}

fn decode(id: &str, layout: &Layout) -> Done {
    let decoded = read_id(id, Format::Decimal).and_then(|id| layout.decode(id)).map_err(of_core)?;
    let fields = decoded.fields().flat_map(|(name, value)| [Reply::text(name), Reply::Number(value)]);
    Ok(Reply::Map(vec![
        ("id", Reply::text(decoded.id().to_string())),
        ("time", when::utc(decoded.timestamp_ms()).map_or(Reply::Null, Reply::Text)),
        ("timestamp_ms", Reply::Number(decoded.timestamp_ms())),
        ("ticks", Reply::Number(decoded.ticks())),
        ("node", Reply::Number(decoded.node())),
        ("fields", Reply::List(fields.collect())),
        ("sequence", Reply::Number(decoded.sequence())),
    ]))
}

/// `COMMAND`, `COMMAND COUNT`, `COMMAND DOCS` and the other subcommands.
fn command_reply(arguments: &[&str]) -> Reply {
    match arguments {
        [] => Reply::List(COMMANDS.iter().map(about).collect()),
        [what] if what.eq_ignore_ascii_case("count") => Reply::Number(COMMANDS.len() as u64),
        [what, names @ ..] if what.eq_ignore_ascii_case("info") => {
            let find = |name: &&str| COMMANDS.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
            Reply::List(names.iter().map(|name| find(name).map_or(Reply::Null, about)).collect())
        }
        [what, ..] if what.eq_ignore_ascii_case("docs") => Reply::Map(Vec::new()),
        _ => Reply::error("ERR", "unknown subcommand of COMMAND"),
    }
}

/// Describes a command: its name, its number of words, its flags, no keys, and none of the fields that Redis
/// 7 adds.
fn about((name, words): &(&'static str, i64)) -> Reply {
    Reply::List(vec![
        Reply::text(*name),
        Reply::Signed(*words),
        Reply::List(vec![Reply::Simple("fast")]),
        Reply::Number(0),
        Reply::Number(0),
        Reply::Number(0),
        Reply::List(Vec::new()),
        Reply::List(Vec::new()),
        Reply::List(Vec::new()),
        Reply::List(Vec::new()),
    ])
}

//! The server's configuration, from flags and a TOML file. Flags take precedence.

mod file;

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use polyflake::{MAX_BATCH, Number};
use serde::Deserialize;

use super::error::Error;
use super::generators::{CommonStore, Generator, KindFlags, Made, Options, Registry, SNOWFLAKE};
use super::logs::Style;
use crate::failure::Failure;
use file::{File, Place};

/// Serve IDs to programs in any language, over HTTP and the Redis protocol
///
/// Without options, it leases its node from a file in your state folder and gives Snowflakes, to this host only.
#[derive(Debug, Args)]
#[command(after_help = "\
A generator without a store of its own uses the one of --lease.

  polyflake serve
  polyflake serve --lease redis://host/0 --counter orders=postgres://host/shop --http 0.0.0.0:8080 --token-file token
  curl 'http://127.0.0.1:8080/v1/ids/snowflake?n=3'
  redis-cli -p 6380 incr snowflake")]
pub(crate) struct Serve {
    /// A TOML file with the same options, and those of each generator
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address of the store that leases the node, such as `redis://host/0`: adds the generator `snowflake`. If the address
    /// contains a password, put it into the environment or the file, where other users do not see it
    #[arg(long, value_name = "URL", env = "POLYFLAKE_LEASE", hide_env_values = true)]
    lease: Option<String>,
    /// The layout of the Snowflakes [default: twitter]
    #[arg(long, short, value_name = "LAYOUT", env = "POLYFLAKE_LAYOUT", hide_env_values = true)]
    layout: Option<String>,
    #[command(flatten)]
    kinds: KindFlags,
    /// Where to listen for HTTP, or `none` [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Where to listen for Redis clients, or `none` [default: 127.0.0.1:6380]
    #[arg(long, value_name = "ADDR")]
    resp: Option<String>,
    /// If there is no token: a name by which HTTP clients may call the server, besides its addresses and localhost, since a web
    /// page could otherwise read IDs through its own name. Repeat it for more names
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Where to listen for probes and Prometheus, without a token, or `none` [default: 127.0.0.1:9080]
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Confirm that no other server gives these IDs: listen for other hosts even if this server keeps a store or state in a
    /// file, or its node is not leased
    #[arg(long)]
    only_instance: bool,
    /// A file with the token that clients must send (or the variable `POLYFLAKE_TOKEN`). With two tokens, one per line, it
    /// accepts either. SIGHUP rereads it, and the certificates and key for TLS
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificates for TLS, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key for TLS, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The most IDs per request [default: 10000]
    #[arg(long, value_name = "N")]
    max_n: Option<u64>,
    /// The most connections at a time; further clients wait [default: 10000]
    #[arg(long, value_name = "N")]
    max_connections: Option<u64>,
    /// The most connections from one address [default: half of --max-connections]
    #[arg(long, value_name = "N")]
    max_per_address: Option<u64>,
    /// The longest Redis command, and the longest head of an HTTP request, in bytes [default: 65536]
    #[arg(long, value_name = "BYTES")]
    max_frame: Option<u64>,
    /// The most memory for answers that clients have not read, in MiB [default: 256]
    #[arg(long, value_name = "MIB")]
    max_output: Option<u64>,
    /// How long a connection may be idle, in seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle: Option<u64>,
    /// How long to keep answering after SIGTERM while reporting that it is not ready, in seconds [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    lame_duck: Option<u64>,
    /// Whether `/readyz` needs any generator to be ready, or all of them; `/readyz/NAME` is about one [default: any]
    #[arg(long, value_name = "WHICH")]
    ready_when: Option<ReadyWhen>,
    /// The style of the log on standard error
    #[arg(long, value_name = "STYLE")]
    log: Option<Style>,
}

/// The tokens, and the file from which they came.
pub(crate) type Tokens = (Vec<Vec<u8>>, Option<PathBuf>);

/// The addresses for HTTP, for RESP, and for operators.
type Addresses = (Vec<SocketAddr>, Vec<SocketAddr>, Vec<SocketAddr>);

/// The validated configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) http: Vec<SocketAddr>,
    pub(crate) resp: Vec<SocketAddr>,
    pub(crate) admin: Vec<SocketAddr>,
    pub(crate) hosts: Vec<String>,
    pub(crate) token: Option<Tokens>,
    /// Certificates and key.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) limits: Limits,
    pub(crate) log: Style,
    pub(crate) generators: Vec<Checked>,
}

/// The limits for clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) n: u64,
    pub(crate) connections: usize,
    pub(crate) per_address: Option<usize>,
    pub(crate) frame: usize,
    /// The memory for answers, in KiB.
    pub(crate) output_kib: usize,
    pub(crate) idle_s: u64,
    pub(crate) lame_duck_s: u64,
    pub(crate) ready_when: ReadyWhen,
}

/// When a server with several generators is ready.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadyWhen {
    /// If any of its generators is.
    #[default]
    Any,
    /// If all of them are.
    All,
}

/// A generator whose options are valid.
#[derive(Debug)]
pub(crate) struct Checked {
    name: String,
    made: Made,
    places: BTreeMap<String, Place>,
    whole: Place,
    /// Whether it uses the store that generators share.
    uses_common: bool,
    /// Why a server on another host cannot know about its IDs.
    is_alone: Option<String>,
}

/// A generator that has not been checked yet.
struct Wanted {
    kind: String,
    values: BTreeMap<String, Vec<String>>,
    places: BTreeMap<String, Place>,
    whole: Place,
}

impl Serve {
    pub(crate) fn run(self, registry: &Registry) -> Result<(), Failure> {
        super::run(self.config(registry)?)
    }

    fn config(self, registry: &Registry) -> Result<Config, Failure> {
        let file = self.config.as_deref().map(File::read).transpose()?.unwrap_or_default();
        let generators = self.generators(&file, registry)?;
        let (http, resp, admin) = self.addresses(&file)?;
        if !(self.only_instance || file.only_instance.unwrap_or_default()) {
            let open = http.iter().chain(&resp).find(|address| !address.ip().is_loopback());
            let alone = generators.iter().find_map(|it| Some((&it.name, it.is_alone.as_ref()?)));
            if let Some((open, (name, why))) = open.zip(alone) {
                return Err(Failure::option(format!(
                    "{open} is for other hosts, and `{name}` {why}: a server elsewhere may give the same IDs. Name a store that \
                     servers share, such as --lease redis://HOST/0, or confirm with --only-instance that there is no second server"
                )));
            }
        }
        Ok(Config {
            http,
            resp,
            admin,
            token: self.token(&file)?,
            hosts: if self.host.is_empty() { file.host.unwrap_or_default() } else { self.host },
            tls: self.tls_cert.zip(self.tls_key).or_else(|| file.tls.map(|tls| (tls.cert, tls.key))),
            limits: limits(
                [
                    self.max_n,
                    self.max_connections,
                    self.max_per_address,
                    self.max_frame,
                    self.max_output,
                    self.idle,
                    self.lame_duck,
                ],
                self.ready_when.or(file.ready_when).unwrap_or_default(),
                &file.limits.unwrap_or_default(),
            )?,
            log: self.log.or(file.log).unwrap_or_default(),
            generators,
        })
    }

    /// The generators from the file and the flags, and the Snowflakes that a server issues by default.
    fn generators(&self, file: &File, registry: &Registry) -> Result<Vec<Checked>, Failure> {
        let lease = match (&self.lease, &file.lease) {
            (Some(lease), _) => Some((lease.clone(), Place::flag("--lease"))),
            (None, Some(lease)) => Some((lease.get_ref().clone(), file.place("lease", lease))),
            (None, None) => None,
        };
        let store = Arc::new(CommonStore::new(lease.as_ref().map(|(lease, _)| lease.clone())));
        let mut wanted = self.wanted(file)?;
        let snowflake = wanted.remove(SNOWFLAKE);
        let mut generators: Vec<_> =
            wanted.into_iter().map(|it| check(it, registry, &store)).collect::<Result<_, _>>()?;
        // If no generator is named, the server issues Snowflakes. It also does so if counters or sequences use the
        // default file, since leasing a node from that file is just as safe.
        let uses_file = |it: &Checked| it.uses_common && !it.made.gives_snowflakes();
        let is_default = generators.is_empty() || generators.iter().any(uses_file);
        if snowflake.is_some() || lease.is_some() || is_default {
            let whole = lease.as_ref().map_or_else(|| Place::flag("--lease"), |(_, place)| place.clone());
            let mut snowflake = snowflake.unwrap_or_else(|| Wanted::of(SNOWFLAKE, whole));
            if let Some((lease, place)) = lease {
                snowflake.set("lease", lease, place);
            }
            if let Some(layout) = &self.layout {
                snowflake.set("layout", layout.clone(), Place::flag("--layout"));
            }
            generators.push(check((SNOWFLAKE.into(), snowflake), registry, &store)?);
        }
        // No one has to wait for an empty store, so lease nodes before counters are created.
        generators.sort_by_cached_key(|it| (!it.made.gives_snowflakes(), it.name.clone()));
        Ok(generators)
    }

    /// The generators named in the file and the flags.
    fn wanted(&self, file: &File) -> Result<BTreeMap<String, Wanted>, Failure> {
        let mut all = file.generators()?;
        for (kind, option, values) in self.kinds.all() {
            let flag = format!("--{kind}");
            let mut of_flag: BTreeMap<&str, Wanted> = BTreeMap::new();
            for value in values {
                let (name, value) = match value.split_once('=') {
                    Some((name, value)) if !option.is_empty() => (name, Some(value)),
                    _ => (value.as_str(), None),
                };
                // Not shown, since it may contain a password.
                if name.contains("//") {
                    return Err(Failure::option(format!(
                        "{flag} takes a generator's name first, without `//`, as in orders=redis://host/0"
                    )));
                }
                let it = of_flag.entry(name).or_insert_with(|| Wanted::of(kind, Place::flag(&flag)));
                it.places.insert(option.into(), Place::flag(&flag));
                if let Some(value) = value {
                    it.values.entry(option.into()).or_default().push(value.into());
                }
            }
            for (name, it) in of_flag {
                if all.insert(name.into(), it).is_some() {
                    return Err(Failure::option(format!("{flag}: there are two generators called `{name}`")));
                }
            }
        }
        Ok(all)
    }

    /// If neither HTTP nor RESP has an address, both listen on the loopback interface; otherwise, they listen
    /// only on the given addresses. The listener for operators uses the loopback interface unless it has an
    /// address.
    fn addresses(&self, file: &File) -> Result<Addresses, Failure> {
        let of = |name: &str, flag: &Option<String>, key: &Option<file::Text>| match (flag, key) {
            (Some(text), _) => Some((text.clone(), Place::flag(&format!("--{name}")))),
            (None, Some(text)) => Some((text.get_ref().clone(), file.place(name, text))),
            (None, None) => None,
        };
        let (http, resp) = (of("http", &self.http, &file.http), of("resp", &self.resp, &file.resp));
        let is_default = http.is_none() && resp.is_none();
        let resolve = |said: Option<(String, Place)>, default: Option<&str>| match said {
            None => default.map_or(Ok(Vec::new()), |text| resolve(text).map_err(Failure::option)),
            Some((text, _)) if text == "none" => Ok(Vec::new()),
            Some((text, place)) => resolve(&text).map_err(|why| place.failure(&Error::invalid(why))),
        };
        let http = resolve(http, is_default.then_some("127.0.0.1:8080"))?;
        let resp = resolve(resp, is_default.then_some("127.0.0.1:6380"))?;
        if http.is_empty() && resp.is_empty() {
            return Err(Failure::option("nothing to listen on: give --http or --resp an address"));
        }
        let admin = resolve(of("admin", &self.admin, &file.admin), Some("127.0.0.1:9080"))?;
        Ok((http, resp, admin))
    }

    fn token(&self, file: &File) -> Result<Option<Tokens>, Failure> {
        if let Some(path) = self.token_file.as_ref().or(file.token_file.as_ref()) {
            return Ok(Some((tokens_in(path)?, Some(path.clone()))));
        }
        match std::env::var("POLYFLAKE_TOKEN") {
            Ok(text) => Ok(Some((tokens(&text).map_err(Failure::option)?, None))),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(_) => Err(Failure::option("POLYFLAKE_TOKEN is not UTF-8")),
        }
    }
}

/// The tokens from a file, one per line.
pub(crate) fn tokens_in(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io(path.display(), &error))?;
    tokens(&text).map_err(|why| Failure::option(format!("{}: {why}", path.display())))
}

fn tokens(text: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let tokens: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // An empty token would admit everyone.
    if tokens.is_empty() {
        return Err("the token is empty");
    }
    if !tokens.iter().all(|token| token.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Err("a token takes ASCII characters without spaces; write one token a line");
    }
    Ok(tokens.into_iter().map(Into::into).collect())
}

impl Wanted {
    fn of(kind: &str, whole: Place) -> Self {
        Self { kind: kind.into(), values: BTreeMap::new(), places: BTreeMap::new(), whole }
    }

    fn set(&mut self, option: &str, value: String, place: Place) {
        self.values.insert(option.into(), vec![value]);
        self.places.insert(option.into(), place);
    }
}

/// Checks a generator's options.
fn check(
    (name, Wanted { kind, values, places, whole }): (String, Wanted),
    registry: &Registry,
    store: &Arc<CommonStore>,
) -> Result<Checked, Failure> {
    let options = Options { name: name.clone(), values, store: Arc::clone(store) };
    let made = registry.make(&kind, &options).unwrap_or_else(|| {
        let kinds = registry.kinds().join(", ");
        Err(Error::option("kind", format!("no kind of generator is called `{kind}`; the kinds are {kinds}")))
    });
    let made = made.map_err(|error| at(&places, &whole, &error))?;
    let common = store.take_used();
    let mut own = options.all().filter(|(name, _)| matches!(*name, "lease" | "store"));
    let is_in_file =
        common.is_some_and(is_file) || own.any(|(_, addresses)| addresses.iter().any(|it| is_file(it)));
    let is_alone = if is_in_file {
        Some("keeps its store in a file on this host".into())
    } else {
        made.why_alone().map(Into::into)
    };
    Ok(Checked { name, uses_common: common.is_some(), is_alone, made, places, whole })
}

fn is_file(address: &str) -> bool {
    address.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("sqlite"))
}

fn at(places: &BTreeMap<String, Place>, whole: &Place, error: &Error) -> Failure {
    error.about().and_then(|option| places.get(option)).unwrap_or(whole).failure(error)
}

impl Config {
    /// Opens the generators, one after the other: all of them or none. This may wait for their stores.
    pub(crate) fn open(generators: Vec<Opening>, begun: &Begun) -> Result<(), Failure> {
        for Opening(Checked { name, made, places, whole, .. }) in generators {
            match made.open() {
                Ok(generator) => {
                    if !begun.add((name, generator)) {
                        return Ok(());
                    }
                }
                Err(error) => {
                    begun.give_back();
                    return Err(at(&places, &whole, &error));
                }
            }
        }
        Ok(())
    }

    /// The generators to open.
    pub(crate) fn take_generators(&mut self) -> Vec<Opening> {
        std::mem::take(&mut self.generators).into_iter().map(Opening).collect()
    }
}

/// A generator, and its name.
pub(crate) type Named = (String, Box<dyn Generator>);

/// The generators that are already open while others wait for their stores; `None` once no one needs them.
pub(crate) struct Begun(Mutex<Option<Vec<Named>>>);

impl Begun {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// Takes all of them. Any that are opened later are closed at once.
    pub(crate) fn take(&self) -> Vec<Named> {
        self.all().take().unwrap_or_default()
    }

    pub(crate) fn give_back(&self) {
        self.take().iter().for_each(|(_, generator)| generator.close());
    }

    fn add(&self, named: Named) -> bool {
        if let Some(all) = &mut *self.all() {
            all.push(named);
            return true;
        }
        named.1.close();
        false
    }

    fn all(&self) -> MutexGuard<'_, Option<Vec<Named>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A generator to open.
#[derive(Debug)]
pub(crate) struct Opening(Checked);

fn resolve(text: &str) -> Result<Vec<SocketAddr>, String> {
    // A store's address, given by mistake, may contain a password, which must not reach a name server.
    let found = if text.contains(['/', '@']) { None } else { text.to_socket_addrs().ok() };
    // A name may have several addresses, and the server cannot listen on the same address twice.
    let mut once: Vec<SocketAddr> = Vec::new();
    for address in found.into_iter().flatten() {
        if !once.contains(&address) {
            once.push(address);
        }
    }
    if once.is_empty() {
        return Err(format!(
            "`{text}` is not an address to listen on: it takes a host and a port, such as 127.0.0.1:8080 or [::]:8080, or `none`"
        ));
    }
    Ok(once)
}

/// `5` or `5s`.
fn seconds(text: &str) -> Result<u64, String> {
    let digits = text.strip_suffix('s').unwrap_or(text);
    digits.parse().map_err(|_| "it takes whole seconds, such as 5".into())
}

fn limits(flags: [Option<u64>; 7], ready_when: ReadyWhen, file: &file::Limits) -> Result<Limits, Failure> {
    let [n, connections, per_address, frame, output_mib, idle_s, lame_duck_s] = flags;
    let within = |name: &str, flag: Option<u64>, key: Option<u64>, default: u64, min: u64, max: u64| {
        Number::from(flag.or(key).unwrap_or(default)).in_range(name, min, max)
    };
    let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    Ok(Limits {
        n: within("max_n", n, file.max_n, 10_000, 1, MAX_BATCH)?,
        connections: size(within(
            "max_connections",
            connections,
            file.max_connections,
            10_000,
            1,
            1_000_000,
        )?),
        per_address: per_address
            .or(file.max_per_address)
            .map(|n| within("max_per_address", Some(n), None, 0, 1, 1_000_000).map(size))
            .transpose()?,
        frame: size(within("max_frame", frame, file.max_frame, 65_536, 8_192, 16_777_216)?),
        output_kib: 1024 * size(within("max_output", output_mib, file.max_output, 256, 1, 65_536)?),
        idle_s: within("idle", idle_s, file.idle, 300, 1, 86_400)?,
        lame_duck_s: within("lame_duck", lame_duck_s, file.lame_duck, 5, 0, 3_600)?,
        ready_when,
    })
}

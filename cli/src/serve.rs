//! `polyflake serve`: a server that issues IDs over HTTP and RESP.
//!
//! A request's path: `listen` → `http` or `resp` → `service` → a [`Generator`]. To add your own generator, add it to a
//! [`Registry`] and call [`main_with`](crate::main_with).

mod auth;
mod clients;
mod config;
mod error;
mod generators;
mod http;
mod listen;
mod logs;
mod memory;
mod metrics;
mod resp;
mod secrets;
mod service;
mod shutdown;
mod state;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::failure::Failure;
use clients::Places;
use config::{Begun, Config, Opening};
use listen::{Door, accept, allow_many, listen};
use secrets::Secrets;
use service::Service;
use shutdown::{Asked, Ending, Signals};

pub(crate) use config::Serve;
pub use error::Error;
pub use generators::{Generator, Ids, Later, Made, Options, Registry, TextId};

/// How long running requests may take once the server is shutting down.
const DRAIN: Duration = Duration::from_secs(10);
/// How long the server may take to give leases back.
const GIVE_BACK: Duration = Duration::from_secs(15);

/// How long opening a generator takes if its store answers.
const JUST_NOW: Duration = Duration::from_secs(2);

/// How many clients of --admin may be connected at a time, and how long each may stay silent.
const ADMINS: usize = 16;
const ADMIN_IDLE: Duration = Duration::from_secs(10);
/// The most files that a generator opens: an SQLite connection uses three, and there may be two connections while
/// one is being replaced.
const FILES_OF_GENERATOR: usize = 6;
/// The standard streams, listeners, certificates, and the runtime's own files.
const OTHER_FILES: usize = 24;

/// Serves until a signal stops the server.
pub(crate) fn run(config: Config) -> Result<(), Failure> {
    logs::begin(config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("threads", &error))?;
    let done = runtime.block_on(serve(config));
    // Calls that are still waiting for a store must not keep the process alive.
    runtime.shutdown_background();
    done
}

async fn serve(mut config: Config) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let generators = config.take_generators();
    let limits = &mut config.limits;
    limits.connections = connections(limits.connections, allow_many(), generators.len())?;
    let limits = config.limits;
    let (tokens, token_file) = config.token.take().unzip();
    let hosts = std::mem::take(&mut config.hosts);
    let service = Arc::new(Service::new(limits, auth::Token::new(tokens), hosts));
    let (secrets, tls) = Secrets::read(Arc::clone(&service), token_file.flatten(), config.tls.take())?;
    let per_address = limits.per_address.unwrap_or(limits.connections.div_ceil(2));
    let places = Places::new(limits.connections, per_address);
    let (end, ending) = Ending::new();
    let idle = Duration::from_secs(limits.idle_s);
    let is_open = !service.token.is_wanted();
    let door = Door { tls, places: Arc::clone(&places), idle, is_open, ending };
    // Done before leasing a node, because another program may be using one of the addresses.
    let accepting = accept_all(&config, &door, &service)?;
    let used = {
        let (service, places) = (Arc::clone(&service), Arc::clone(&places));
        move || service.output.used_kib() + 8 * places.taken()
    };
    tokio::spawn(memory::keep_little(used));
    if !open(generators, &service, &mut signals, &secrets).await? {
        tracing::info!("stopped before it had started");
        return Ok(());
    }

    let asked = signals.end(|| secrets.reload()).await;
    service.end();
    if asked == Asked::End && limits.lame_duck_s > 0 {
        // This tells load balancers that the server is not ready, so that they send no more requests.
        tracing::info!(seconds = limits.lame_duck_s, "lame duck");
        let lame_duck = Duration::from_secs(limits.lame_duck_s);
        let _ = timeout(lame_duck, signals.end(|| secrets.reload())).await;
    }
    tracing::info!("ending");
    let _ = end.send(true);
    tokio::select! {
        () = finish(accepting, &places, service) => tracing::info!("ended"),
        _ = signals.end(|| secrets.reload()) => tracing::warn!("stopped at once by a second signal"),
    }
    Ok(())
}

/// Listens on all addresses, and accepts connections until the server shuts down.
fn accept_all(config: &Config, door: &Door, service: &Arc<Service>) -> Result<JoinSet<()>, Failure> {
    let [of_admin, of_http, of_resp] =
        [("--admin", &config.admin), ("--http", &config.http), ("--resp", &config.resp)]
            .map(|(flag, addresses)| listeners(flag, addresses, door));
    // This listener always answers: if it is full, the oldest client still connected is dropped.
    let (tls, places, idle) = (None, Places::new(ADMINS, usize::MAX), door.idle.min(ADMIN_IDLE));
    let admin = Door { tls, places, idle, is_open: false, ..door.clone() };
    let mut accepting = JoinSet::new();
    for listener in of_admin? {
        accepting.spawn(accept(listener, admin.clone(), http::Http::admin(Arc::clone(service))));
    }
    for listener in of_http? {
        accepting.spawn(accept(listener, door.clone(), http::Http::new(Arc::clone(service))));
    }
    for listener in of_resp? {
        accepting.spawn(accept(listener, door.clone(), resp::Resp::new(Arc::clone(service))));
    }
    Ok(accepting)
}

/// Opens the generators. Returns false if a signal stopped the server before they were open.
async fn open(
    generators: Vec<Opening>,
    service: &Service,
    signals: &mut Signals,
    secrets: &Secrets,
) -> Result<bool, Failure> {
    let begun = Arc::new(Begun::new());
    let to_fill = Arc::clone(&begun);
    let mut opening = tokio::task::spawn_blocking(move || Config::open(generators, &to_fill));
    tokio::select! {
        opened = &mut opening => {
            opened.unwrap_or_else(|error| Err(Failure::Io(error.to_string()))).inspect_err(|_| begun.give_back())?;
        }
        _ = signals.end(|| secrets.reload()) => {
            let _ = timeout(GIVE_BACK, tokio::task::spawn_blocking(move || begun.give_back())).await;
            // A generator that has just been opened also gives back what it holds. One that is still waiting for its
            // store holds nothing.
            let _ = timeout(JUST_NOW, opening).await;
            return Ok(false);
        }
    }
    service.open(begun.take());
    service.watch();
    let names: Vec<_> = service.names().collect();
    tracing::info!(generators = names.join(","), "ready");
    if !names.iter().any(|name| service.has_snowflakes(name)) {
        tracing::info!("no Snowflakes are served: --lease URL adds them");
    }
    Ok(true)
}

/// Waits for the running requests, then gives leases back.
async fn finish(mut accepting: JoinSet<()>, places: &Places, service: Arc<Service>) {
    while accepting.join_next().await.is_some() {}
    let _ = timeout(DRAIN, places.are_left()).await;
    let _ = timeout(GIVE_BACK, tokio::task::spawn_blocking(move || service.close())).await;
}

/// Listens on each address.
fn listeners(flag: &str, addresses: &[SocketAddr], door: &Door) -> Result<Vec<TcpListener>, Failure> {
    let open = |&address| {
        let listener = listen(flag, address)?;
        let address = listener.local_addr().map_err(|error| Failure::io(address, &error))?;
        let (protocol, is_admin) = (flag.trim_start_matches('-'), flag == "--admin");
        tracing::info!(protocol, %address, tls = door.tls.is_some() && !is_admin, "listening");
        if !address.ip().is_loopback() && door.is_open && !is_admin {
            tracing::warn!(%address, "no token is set, so anyone who can reach this address gets IDs");
        }
        Ok(listener)
    };
    addresses.iter().map(open).collect()
}

/// How many connections fit within the number of files that the system lets the server open.
fn connections(wanted: usize, files: Option<u64>, generators: usize) -> Result<usize, Failure> {
    let Some(files) = files else { return Ok(wanted) };
    let reserve = OTHER_FILES + ADMINS + FILES_OF_GENERATOR * generators;
    let most = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(reserve);
    if most == 0 {
        return Err(Failure::option(format!(
            "the server may open {files} files, and its stores and --admin need {reserve} of them: raise `ulimit -n`, or \
             LimitNOFILE= of systemd"
        )));
    }
    if most < wanted {
        tracing::warn!(
            "--max-connections is {wanted}, but at most {most} are possible: the server may open {files} files (`ulimit -n`, \
             LimitNOFILE= of systemd), and keeps {reserve} of them for its stores and --admin"
        );
    }
    Ok(wanted.min(most))
}

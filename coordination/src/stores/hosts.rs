//! Chooses the host to try first, limits the time spent on each host, and detects connections that have been
//! idle for too long.

use core::cell::Cell;
use core::time::Duration;

use crate::lease::Time as _;
use crate::local::Clocks;
use crate::store::StoreError;
use crate::url::Address;

/// The shortest time after which a connection counts as idle. It is longer than the time between two checks
/// of an idle counter.
const LEAST_PAUSE_MS: u64 = 4_000;

/// The hosts in an address. Each attempt may start with a different host.
#[derive(Debug)]
pub(super) struct Hosts {
    address: Address,
    /// The host to try first.
    first: Cell<usize>,
}

impl Hosts {
    pub(super) fn new(address: &Address) -> Self {
        Self { address: address.clone(), first: Cell::new(0) }
    }

    /// Makes the next attempt start with the next host, since the current host may be silent or have no
    /// leader.
    pub(super) fn turn(&self) {
        self.first.set((self.first.get() + 1) % self.address.hosts().len().max(1));
    }

    /// Returns the time limit for connecting to each host. An equal share of the attempt is left for the
    /// request.
    fn share(&self) -> Duration {
        let hosts = u32::try_from(self.address.hosts().len()).unwrap_or(u32::MAX);
        self.address.attempt() / hosts.saturating_add(1)
    }

    /// Tries the hosts in turn until one of them answers.
    pub(super) async fn connect<C>(
        &self,
        connect: impl AsyncFn(&str, u16) -> Result<C, StoreError>,
    ) -> Result<C, StoreError> {
        let (address, hosts) = (&self.address, self.address.hosts());
        let prefix = format!("{address}: ");
        let (mut is_refused, mut said) = (false, Vec::new());
        for turn in 0..hosts.len() {
            let at = (self.first.get() + turn) % hosts.len();
            let Some((host, port)) = hosts.get(at) else { continue };
            let told = match tokio::time::timeout(self.share(), connect(host, *port)).await {
                Ok(Ok(connection)) => {
                    self.first.set(at);
                    return Ok(connection);
                }
                Ok(Err(error)) => {
                    is_refused |= matches!(error, StoreError::Refused(_));
                    error.text().strip_prefix(&prefix).unwrap_or(error.text()).to_owned()
                }
                Err(_) => "no answer in time".into(),
            };
            said.push(if hosts.len() == 1 { told } else { format!("{host}:{port}: {told}") });
        }
        let text = prefix + &said.join("; ");
        // A refusal is more helpful than an error from a host that is down.
        Err(if is_refused { StoreError::Refused(text) } else { StoreError::Unreachable(text) })
    }

    /// Returns true if a connection has been idle for longer than the time between renewals. The network may
    /// have silently dropped such a connection.
    pub(super) fn is_idle(&self, used: Used) -> bool {
        used.ago_ms() > self.longest_pause_ms()
    }

    /// Returns a third of the TTL plus the renewal jitter, but at least [`LEAST_PAUSE_MS`]. Counters check
    /// their stores every 3 s, even if the TTL is shorter.
    fn longest_pause_ms(&self) -> u64 {
        (self.address.ttl_ms * 2 / 5).max(LEAST_PAUSE_MS)
    }
}

/// The time when a connection was last used, according to a clock that keeps running while the machine
/// sleeps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used(u64);

impl Used {
    pub(super) fn now() -> Self {
        Self(Clocks.elapsed_ms())
    }

    pub(super) fn ago_ms(self) -> u64 {
        Clocks.elapsed_ms().saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Hosts {
        Hosts::new(&Address::parse(url).unwrap())
    }

    fn block<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn an_attempt_is_shared_and_leaves_a_share() {
        assert_eq!(hosts("etcd://a").share(), Duration::from_millis(2_500));
        assert_eq!(hosts("etcd://a,b,c").share(), Duration::from_millis(1_250));
        assert_eq!(
            hosts("etcd://a,b?ttl=6s").share(),
            Duration::from_micros(333_333) + Duration::from_nanos(333)
        );
    }

    #[test]
    fn hosts_are_asked_in_turn() {
        let hosts = hosts("etcd://u:hunter2@a,b:7,c?ttl=3s");
        let asked = Cell::new(String::new());
        let ask = |good: &'static str| {
            asked.take();
            let connect = async |host: &str, port| {
                asked.set(format!("{}{host}", asked.take()));
                match host {
                    _ if good.contains(host) => Ok(port),
                    // This host never answers.
                    "b" => core::future::pending().await,
                    _ => Err(StoreError::Unreachable(format!("{}: refused", hosts.address))),
                }
            };
            let answer = block(hosts.connect(connect));
            (answer, asked.take())
        };
        assert_eq!(ask("b"), (Ok(7), "ab".into()));
        // The silent host stays first until the attempt fails.
        assert_eq!(ask("b"), (Ok(7), "b".into()));
        hosts.turn();
        assert_eq!(ask("ab"), (Ok(2379), "ca".into()));
        let said = "etcd://a:2379,b:7,c:2379: a:2379: refused; b:7: no answer in time; c:2379: refused";
        assert_eq!(ask("").0, Err(StoreError::Unreachable(said.into())));
        for _ in 0..2 {
            hosts.turn();
        }
        assert_eq!(ask("c"), (Ok(2379), "c".into()));
    }

    #[test]
    fn a_host_that_refuses_says_more_than_one_that_is_down() {
        let hosts = hosts("zookeeper://a,b/shop");
        let connect = async |host: &str, _| -> Result<(), _> {
            Err(match host {
                "a" => StoreError::Refused("zookeeper://a:2181,b:2181/shop: NoAuth".into()),
                _ => StoreError::Unreachable("down".into()),
            })
        };
        let said = "zookeeper://a:2181,b:2181/shop: a:2181: NoAuth; b:2181: down";
        assert_eq!(block(hosts.connect(connect)), Err(StoreError::Refused(said.into())));
    }

    #[test]
    fn a_connection_outlives_the_pause_between_renewals() {
        let hosts = hosts("etcd://a?ttl=30s");
        assert_eq!(hosts.longest_pause_ms(), 12_000);
        // The limit is also longer than the time between two checks of an idle counter.
        assert_eq!(self::hosts("etcd://a?ttl=3s").longest_pause_ms(), 4_000);
        assert!(!hosts.is_idle(Used::now()));
    }
}

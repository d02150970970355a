//! What a namespace has: the names of its keys. Redis has no list of them but all its keys, which SCAN reads in pieces, without
//! keeping others waiting.

use std::collections::BTreeSet;

use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{FromRedisValue as _, RedisError, Value};

use super::{Connection, RedisStore};
use crate::store::StoreError;

/// How many keys a piece has, more or less.
const PIECE: u32 = 1000;

impl RedisStore {
    /// What is between `polyflake:{NAMESPACE/` and `}` in the keys that end in `end`.
    pub(super) async fn names(
        &mut self,
        namespace: &str,
        start: &str,
        end: &str,
    ) -> Result<BTreeSet<String>, StoreError> {
        let start = format!("polyflake:{{{namespace}/{start}");
        let (mut connection, is_new) = match self.connection.take() {
            Some(it) => (it, false),
            None => (self.connect(&start).await?, true),
        };
        let keys = connection.keys(&format!("{start}*{end}")).await.map_err(|e| self.told(&e, is_new))?;
        self.connection = Some(connection);
        let name = |key: String| Some(key.strip_prefix(&start)?.strip_suffix(end)?.to_owned());
        Ok(keys.into_iter().filter_map(name).collect())
    }
}

impl Connection {
    /// The keys like a pattern, on all masters. A key may come twice.
    async fn keys(&mut self, pattern: &str) -> Result<Vec<String>, RedisError> {
        let mut keys = Vec::new();
        for place in self.masters().await? {
            let mut cursor: u64 = 0;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(PIECE);
                let value = match (&mut *self, &place) {
                    (Self::Cluster(it), Some(place)) => {
                        it.route_command(scan, RoutingInfo::SingleNode(place.clone())).await?
                    }
                    (Self::Cluster(it), None) => {
                        it.route_command(scan, RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random)).await?
                    }
                    (Self::One(it), _) => it.send_packed_command(&scan).await?,
                };
                let (next, piece): (u64, Vec<Value>) = redis::from_redis_value(value.extract_error()?)?;
                // Keys of others may be no texts.
                keys.extend(piece.into_iter().filter_map(|key| String::from_redis_value(key).ok()));
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(keys)
    }

    /// Where the keys of a Cluster are.
    async fn masters(&mut self) -> Result<Vec<Option<SingleNodeRoutingInfo>>, RedisError> {
        let Self::Cluster(it) = self else { return Ok(vec![None]) };
        let nodes = it.route_command(
            redis::cmd("CLUSTER").arg("NODES").clone(),
            RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random),
        );
        let nodes: String = redis::from_redis_value(nodes.await?.extract_error()?)?;
        Ok(nodes.lines().filter_map(master).map(Some).collect())
    }
}

/// A line of CLUSTER NODES: `ID HOST:PORT@BUS,NAME FLAGS ... SLOTS`.
fn master(line: &str) -> Option<SingleNodeRoutingInfo> {
    let mut words = line.split(' ');
    let (_, place, flags) = (words.next()?, words.next()?, words.next()?);
    let has = |flag| flags.split(',').any(|it| it == flag);
    if !has("master") || has("fail") || has("noaddr") {
        return None;
    }
    let place = place.split(['@', ',']).next()?;
    let (host, port) = place.rsplit_once(':')?;
    Some(SingleNodeRoutingInfo::ByAddress { host: host.into(), port: port.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_read_from_their_list() {
        let of = |line| master(line).map(|it| format!("{it:?}"));
        let master = of("07c3 127.0.0.1:30004@31004,name myself,master - 0 0 1 connected 0-5460").unwrap();
        assert!(master.contains("127.0.0.1") && master.contains("30004"), "{master}");
        assert_eq!(of("07c3 127.0.0.1:30004@31004 slave 67ed 0 1 4 connected"), None);
        assert_eq!(of("07c3 :0@0 master,noaddr - 0 0 1 disconnected"), None);
        assert_eq!(of("07c3"), None);
    }
}

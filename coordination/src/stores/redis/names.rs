//! Lists the keys in a namespace. Redis can find them only by going through all of its keys. SCAN does so in
//! batches, so that other clients do not have to wait.

use std::collections::BTreeSet;

use redis::{FromRedisValue as _, RedisError, Value};

use super::RedisStore;
use super::connection::{Connection, Place, read_place};
use crate::store::StoreError;
use crate::url::Scheme;

/// The approximate number of keys in a batch.
const PIECE: u32 = 1000;

impl RedisStore {
    /// Finds the keys that begin with `polyflake:{NAMESPACE/START` and end with `end`. Returns the part
    /// between the two.
    pub(super) async fn names(
        &mut self,
        namespace: &str,
        start: &str,
        end: &str,
    ) -> Result<BTreeSet<String>, StoreError> {
        let start = format!("polyflake:{{{namespace}/{start}");
        let (mut connection, is_new) = self.connection(&start).await?;
        let pattern = format!("{start}*{end}");
        let keys = self.keys(&mut connection, &pattern).await.map_err(|e| self.told(&e, is_new))?;
        self.connection = Some(connection);
        let name = |key: String| Some(key.strip_prefix(&start)?.strip_suffix(end)?.to_owned());
        Ok(keys.into_iter().filter_map(name).collect())
    }

    /// Returns the keys that match a pattern, on all masters. A key may occur twice.
    async fn keys(&self, connection: &mut Connection, pattern: &str) -> Result<Vec<String>, RedisError> {
        let mut keys = Vec::new();
        for place in self.masters(connection).await? {
            let mut cursor: u64 = 0;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(PIECE);
                let value = self.send_to(connection, &place, &scan).await?;
                let (next, piece): (u64, Vec<Value>) = redis::from_redis_value(value)?;
                // Other programs' keys may not be valid text.
                keys.extend(piece.into_iter().filter_map(|key| String::from_redis_value(key).ok()));
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(keys)
    }

    /// Returns the servers that hold keys. In a cluster, these are all masters.
    async fn masters(&self, connection: &mut Connection) -> Result<Vec<Place>, RedisError> {
        let entrance = connection.entrance.clone();
        if self.address.scheme() != Scheme::RedisCluster {
            return Ok(vec![entrance]);
        }
        let mut list = redis::cmd("CLUSTER");
        list.arg("NODES");
        let nodes = String::from_redis_value(self.send_to(connection, &entrance, &list).await?)?;
        Ok(nodes.lines().filter_map(|line| master(line, &entrance)).collect())
    }
}

/// Parses a line of CLUSTER NODES: `ID HOST:PORT@BUS,NAME FLAGS MASTER PING PONG EPOCH LINK SLOTS`. A master
/// without slots has no keys. A failed master with slots is included, since the list would be wrong without
/// its keys.
fn master(line: &str, answering: &Place) -> Option<Place> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[_, place, flags, _, _, _, _, _, _, ..] = &*words else { return None };
    if !flags.split(',').any(|it| it == "master") {
        return None;
    }
    read_place(place.split(['@', ',']).next()?, answering)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_read_from_their_list() {
        let of = |line| master(line, &("h".into(), 1));
        let at = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(
            of("07c3 127.0.0.1:30004@31004,name myself,master - 0 0 1 connected 0-5460"),
            at("127.0.0.1", 30004)
        );
        assert_eq!(of("07c3 ::1:30004@31004 master,fail - 0 0 1 disconnected 0 7"), at("::1", 30004));
        assert_eq!(of("07c3 :30004@31004 myself,master - 0 0 1 connected 7"), at("h", 30004));
        assert_eq!(of("07c3 127.0.0.1:30004@31004 master - 0 0 1 connected"), None);
        assert_eq!(of("07c3 127.0.0.1:30004@31004 slave 67ed 0 1 4 connected"), None);
        assert_eq!(of("07c3 :0@0 master,noaddr - 0 0 1 disconnected"), None);
        assert_eq!(of("07c3"), None);
    }
}

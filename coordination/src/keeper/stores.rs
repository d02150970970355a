//! One connection for each store.

use std::collections::HashMap;
use std::rc::{Rc, Weak};

use tokio::sync::Mutex;

use crate::store::{Store, StoreError};
use crate::stores;
use crate::url::Address;

/// A store that leases share.
pub(super) type Shared = Rc<Mutex<Box<dyn Store>>>;

/// The stores that are in use, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Stores(HashMap<String, Weak<Mutex<Box<dyn Store>>>>);

impl Stores {
    pub(super) fn get(&mut self, address: &Address) -> Result<Shared, StoreError> {
        // The time to live bounds how long a Redis waits for its replicas.
        let Address { replicas, is_durability_none, ttl_ms, .. } = address;
        let key = format!("{} {replicas} {is_durability_none} {ttl_ms}", address.key());
        if let Some(store) = self.0.get(&key).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let store = Rc::new(Mutex::new(stores::open(address)?));
        self.0.retain(|_, store| store.strong_count() > 0);
        self.0.insert(key, Rc::downgrade(&store));
        Ok(store)
    }
}

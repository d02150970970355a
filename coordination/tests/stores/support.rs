//! Code shared by the tests of all stores.

use std::thread;
use std::time::Duration;

use polyflake_coordination::StoreError;
use polyflake_coordination::records::Store;

/// Runs a future to completion, as the keeper's thread does.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Repeats a call while the store is busy, as the keeper does.
pub(crate) async fn retry<T>(
    store: &mut Box<dyn Store>,
    mut call: impl AsyncFnMut(&mut Box<dyn Store>) -> Result<T, StoreError>,
) -> T {
    for _ in 0..600 {
        match call(store).await {
            Ok(value) => return value,
            Err(StoreError::Unreachable(_)) => {
                store.disconnect();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("unreachable for too long");
}

/// Repeats a call until it succeeds, since a server may take a while to apply a new configuration.
pub(crate) fn until<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> T {
    for _ in 0..200 {
        if let Ok(value) = call() {
            return value;
        }
        thread::sleep(Duration::from_millis(50));
    }
    call().unwrap()
}

/// Returns the number of asynchronous replicas that the server currently reports.
pub(crate) async fn asynchronous_replicas(store: &mut Box<dyn Store>) -> u64 {
    // The client checks this when it connects.
    store.disconnect();
    super::records::read(&mut **store, "head").await;
    store.facts().asynchronous_replicas
}

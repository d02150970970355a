//! What the tests of all stores share.

use std::thread;
use std::time::Duration;

use polyflake_coordination::StoreError;
use polyflake_coordination::records::Store;

/// Runs a call, as the keeper's thread does.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// As the keeper: a store that is busy is asked again.
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

/// Tries until it works: a server takes a new configuration in its own time.
pub(crate) fn until<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> T {
    for _ in 0..200 {
        if let Ok(value) = call() {
            return value;
        }
        thread::sleep(Duration::from_millis(50));
    }
    call().unwrap()
}

/// How many the server shows at present.
pub(crate) async fn asynchronous_replicas(store: &mut Box<dyn Store>) -> u64 {
    // It looks when it connects.
    store.disconnect();
    super::records::read(&mut **store, "head").await;
    store.facts().asynchronous_replicas
}

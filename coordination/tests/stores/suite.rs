//! What the tests of all stores share.

use std::thread;
use std::time::Duration;

use polyflake_coordination::{Address, Store, StoreError, stores};

/// Opens one more client of the same store.
pub(crate) type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

/// The store at an address.
pub(crate) fn open(url: &str) -> Box<dyn Store> {
    stores::open(&Address::parse(url).unwrap()).unwrap()
}

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

/// Polls at most this often, and then drops the call.
pub(crate) async fn give_up<T>(call: impl Future<Output = T>, polls: u64) {
    let mut call = std::pin::pin!(call);
    let mut polled = 0;
    let ended = std::future::poll_fn(|context| {
        if polled == polls {
            return std::task::Poll::Ready(());
        }
        polled += 1;
        call.as_mut().poll(context).map(drop)
    });
    // A wait of this length is longer than any that goes on by itself on this host.
    let _ = tokio::time::timeout(Duration::from_secs(2), ended).await;
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

//! Histories: processes use a Snowflake, a counter and sequences in one store, through a proxy, while something goes
//! wrong. Everything they receive is recorded, and judged once everything is over.
//!
//! The histories are in `history.rs`, and each runs on each store named below. `POLYFLAKE_SEED` reruns a random
//! history.
#![cfg(unix)]

use polyflake_test_support::{backend, faketime, journals, proxy, servers};

mod checker;
mod history;
mod recorder;

/// Runs each history on a store.
macro_rules! stores {
    ($($store:ident: $backend:ty, [$($also:ident)*];)*) => {$(
        mod $store {
            type Store = $backend;

            fn shared() -> std::sync::Arc<Store> {
                static SHARED: crate::backend::Shared<Store> = crate::backend::Shared::new();
                SHARED.get()
            }

            stores!(histories: a_process_is_stopped a_process_is_killed a_mixture $($also)*);

            #[test]
            fn the_store_is_killed() {
                let mut own = <Store as crate::backend::Backend>::begin();
                crate::history::the_store_is_killed(&mut own);
            }

            #[test]
            #[ignore = "it takes minutes"]
            fn longer_mixtures() {
                crate::history::longer_mixtures(&*shared());
            }
        }
    )*};
    (histories: $($history:ident)*) => {$(
        #[test]
        fn $history() {
            crate::history::$history(&*shared());
        }
    )*};
}

stores! {
    sqlite: crate::backend::Sqlite, [];
    redis: crate::servers::redis::Redis, [the_network_is_bad clocks_differ replies_are_cut all_is_frozen connections_are_dropped all_is_slow one_of_two_stores_is_cut_off];
    postgres: crate::servers::postgres::Postgres, [the_network_is_bad clocks_differ replies_are_cut all_is_frozen connections_are_dropped all_is_slow one_of_two_stores_is_cut_off];
    mariadb: crate::servers::mariadb::MariaDb, [the_network_is_bad clocks_differ replies_are_cut all_is_frozen connections_are_dropped all_is_slow one_of_two_stores_is_cut_off];
    etcd: crate::servers::etcd::Etcd, [the_network_is_bad clocks_differ replies_are_cut all_is_frozen connections_are_dropped all_is_slow one_of_two_stores_is_cut_off];
    zookeeper: crate::servers::zookeeper::Zookeeper, [the_network_is_bad clocks_differ replies_are_cut all_is_frozen connections_are_dropped all_is_slow one_of_two_stores_is_cut_off];
}

//! Tests leases with real processes and real servers. The tests for every store are in `every_store.rs`. Each of them
//! runs on each store named below.
#![cfg(unix)]

use polyflake_test_support::{backend, faketime, journals, proxy, servers};

mod clock;
mod cluster;
mod every_store;
mod holder;
mod network;
mod process;
mod refused;
mod replicas;
mod sqlite_file;

/// Runs the tests for any store, and those for any server, on each of these stores.
macro_rules! stores {
    ($($store:ident: $backend:ty, $($network:ident)?;)*) => {$(
        mod $store {
            type Store = $backend;

            fn shared() -> std::sync::Arc<Store> {
                static SHARED: crate::backend::Shared<Store> = crate::backend::Shared::new();
                SHARED.get()
            }

            stores!(tests every_store: forty_processes_fight_for_32_nodes a_holder_that_stood_still_past_its_ttl
                a_holder_that_was_frozen fifty_kills_and_restarts as_many_pods_as_nodes a_longer_ttl_than_others);
            stores!(tests process: two_share_a_lease_and_close_amid_batches what_is_dropped_is_kept_for_a_ttl
                a_forked_child_leases_another_node no_thread_is_left);

            #[test]
            fn a_store_that_stops_and_one_that_dies() {
                crate::every_store::a_store_that_stops_and_one_that_dies::<Store>();
            }

            #[test]
            fn a_program_that_ends_without_close() {
                crate::process::a_program_that_ends_without_close::<Store>();
            }

            $(stores!(tests $network: a_cut_before_close a_silence_before_close a_store_far_away
                a_pause_and_a_connection_that_died);
            stores!(tests clock: a_clock_that_is_set);)?
        }
    )*};
    (tests $module:ident: $($test:ident)*) => {$(
        #[test]
        fn $test() {
            crate::$module::$test(&*shared());
        }
    )*};
}

stores! {
    sqlite: crate::backend::Sqlite,;
    redis: crate::servers::redis::Redis, network;
    postgres: crate::servers::postgres::Postgres, network;
    mariadb: crate::servers::mariadb::MariaDb, network;
    etcd: crate::servers::etcd::Etcd, network;
    zookeeper: crate::servers::zookeeper::Zookeeper, network;
}

//! Tests counters with real processes and real servers. The tests for every store are in `every_store.rs` and
//! `process.rs`. Each of them runs on each store named below.
#![cfg(unix)]

use polyflake_test_support::{backend, journals, proxy, servers, taken_numbers};

mod custom_store;
mod every_store;
mod forks_amid_calls;
mod network;
mod process;
mod refused;
mod replicas;
mod sequences;
mod several_stores;
mod taker;
mod waits;

/// A store that can lose everything.
pub(crate) trait Forgets: backend::Backend {
    fn forget(&self);
}

/// A store that can lose everything it keeps for sequences.
pub(crate) trait ForgetsSequences: backend::Backend {
    fn forget_sequences(&self);
}

/// Runs the tests for any store, and those for any server, on each of these stores.
macro_rules! stores {
    ($($store:ident: $backend:ty, |$this:ident| $forget:expr, $sequences:expr $(, $network:ident)?;)*) => {$(
        impl crate::Forgets for $backend {
            fn forget(&self) {
                let $this = self;
                $forget;
            }
        }

        impl crate::ForgetsSequences for $backend {
            fn forget_sequences(&self) {
                let $this = self;
                $sequences;
            }
        }

        mod $store {
            type Store = $backend;

            fn shared() -> std::sync::Arc<Store> {
                static SHARED: crate::backend::Shared<Store> = crate::backend::Shared::new();
                SHARED.get()
            }

            stores!(tests every_store: blocks_beside_numbers give_back_raced_by_others
                two_by_turns_with_a_step_of_1 processes_are_killed_for_ten_seconds);
            stores!(tests process: forked_processes_take_their_own the_end_of_all_numbers
                threads_share_questions_with_a_step_of_1);

            mod sequences {
                use super::{Store, shared};

                stores!(tests sequences: each_key_counts_for_itself a_key_has_its_last_number a_longer_ttl_is_told
                    a_child_has_none);

                #[test]
                fn owners_come_and_go() {
                    crate::sequences::owners_come_and_go::<Store>();
                }

                #[test]
                fn a_store_that_stops_and_one_that_dies() {
                    crate::sequences::a_store_that_stops_and_one_that_dies::<Store>();
                }

                #[test]
                fn a_store_that_forgets() {
                    crate::sequences::a_store_that_forgets::<Store>();
                }
            }

            #[test]
            #[ignore = "it takes a minute"]
            fn processes_are_killed_for_a_minute() {
                crate::every_store::processes_are_killed_for_a_minute(&*shared());
            }

            #[test]
            #[ignore = "it takes five minutes"]
            fn two_minutes_without_the_store() {
                crate::every_store::two_minutes_without_the_store::<Store>();
            }

            #[test]
            fn a_quiet_counter_has_no_gap() {
                crate::every_store::a_quiet_counter_has_no_gap::<Store>();
            }

            #[test]
            fn closed_amid_calls() {
                crate::process::closed_amid_calls::<Store>();
            }

            #[test]
            fn a_store_that_stops_and_one_that_dies() {
                crate::every_store::a_store_that_stops_and_one_that_dies::<Store>();
            }

            #[test]
            fn a_store_that_forgets() {
                crate::every_store::a_store_that_forgets::<Store>();
            }

            $(stores!(tests $network: a_bad_network);)?
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
    sqlite: crate::backend::Sqlite, |it| rusqlite::Connection::open(it.path()).unwrap().execute_batch("DELETE FROM polyflake_records").unwrap(),
        rusqlite::Connection::open(it.path()).unwrap().execute_batch("DELETE FROM polyflake_records").unwrap();
    redis: crate::servers::redis::Redis, |it| it.cli(&["FLUSHALL"]),
        it.cli(&["FLUSHALL"]), network;
    postgres: crate::servers::postgres::Postgres, |it| it.sql("test", "DELETE FROM polyflake_records"),
        it.sql("test", "DELETE FROM polyflake_records"), network;
    mariadb: crate::servers::mariadb::MariaDb, |it| it.sql("DELETE FROM test.polyflake_records"),
        it.sql("DELETE FROM test.polyflake_records"), network;
    etcd: crate::servers::etcd::Etcd, |it| it.ctl(&["del", "", "--prefix"]),
        it.ctl(&["del", "", "--prefix"]), network;
    zookeeper: crate::servers::zookeeper::Zookeeper, |it| it.cli(&["deleteall /polyflake"]),
        it.cli(&["deleteall /polyflake"]), network;
}

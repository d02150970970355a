//! A stand-in for `lease` in builds without an operating system, which have no leases.

use portable_atomic::AtomicU64;

use crate::error::Error;

/// A Snowflake's share of a lease.
#[derive(Debug)]
pub(crate) enum LeaseUse {}

impl LeaseUse {
    pub(crate) fn look(&self, _: impl FnOnce(u64, &'static AtomicU64)) {
        match *self {}
    }

    pub(crate) fn has_ended(&self) -> bool {
        match *self {}
    }

    pub(crate) fn node(&self) -> Option<u64> {
        match *self {}
    }

    pub(crate) fn wake(&self) {
        match *self {}
    }

    pub(crate) fn losses(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn has_panicked(&self) -> bool {
        match *self {}
    }

    pub(crate) fn lost(&self) -> Error {
        match *self {}
    }

    pub(crate) fn close(&self) {
        match *self {}
    }
}

//! The other crates, set to Twitter's widths and epoch wherever possible.

#![allow(unused, reason = "the features decide which adapters exist")]

use std::hint::spin_loop;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::measure::{BATCH, Batches};
use crate::suite::{BATCHES, DECODE, OWNED, Suite};
use crate::{TWITTER_EPOCH_MS, some_ids};

/// Batches small enough that a generator with 12 sequence bits does not have to wait.
const FEW: Batches = Batches { burst: 3, bursts: 40 };

pub fn add(suite: &mut Suite) {
    #[cfg(feature = "ferroid")]
    ferroid::add(suite);
    #[cfg(feature = "snowflaked")]
    snowflaked::add(suite);
    #[cfg(feature = "snowflake_me")]
    snowflake_me::add(suite);
    #[cfg(feature = "idgenerator")]
    idgenerator::add(suite);
    #[cfg(feature = "rs-snowflake")]
    rs_snowflake::add(suite);
    #[cfg(feature = "snowid")]
    snowid::add(suite);
}

fn twitter_epoch() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(TWITTER_EPOCH_MS)
}

/// A batch of single calls.
fn looped(mut next: impl FnMut() -> u64) -> impl FnMut(&mut [u64; BATCH]) {
    move |buffer| {
        for id in buffer {
            *id = next();
        }
    }
}

#[cfg(feature = "ferroid")]
mod ferroid {
    use ferroid::generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator, LockSnowflakeGenerator};
    use ferroid::id::SnowflakeTwitterId;
    use ferroid::time::{MonotonicClock, TWITTER_EPOCH, TimeSource};

    use super::{BATCHES, DECODE, FEW, SystemTime, looped, some_ids, spin_loop, twitter_epoch};
    use crate::suite::Suite;

    /// The wall clock, read in every call.
    struct WallClock {
        epoch: SystemTime,
    }

    impl TimeSource<u64> for WallClock {
        fn current_millis(&self) -> u64 {
            let since = self.epoch.elapsed().expect("the clock is past the epoch");
            since.as_secs() * 1000 + u64::from(since.subsec_millis())
        }
    }

    fn wall_clock() -> WallClock {
        WallClock { epoch: twitter_epoch() }
    }

    fn ticker() -> MonotonicClock {
        MonotonicClock::with_epoch(TWITTER_EPOCH)
    }

    fn atomic<T: TimeSource<u64>>(time: T) -> impl Fn() -> u64 {
        let ids = AtomicSnowflakeGenerator::<SnowflakeTwitterId, T>::new(1, time);
        move || ids.next_id(|_| spin_loop()).to_raw()
    }

    fn lock<T: TimeSource<u64>>(time: T) -> impl Fn() -> u64 {
        let ids = LockSnowflakeGenerator::<SnowflakeTwitterId, T>::new(1, time);
        move || ids.try_next_id(|_| spin_loop()).expect("no thread panicked").to_raw()
    }

    fn basic<T: TimeSource<u64>>(time: T) -> impl Fn() -> u64 {
        let ids = BasicSnowflakeGenerator::<SnowflakeTwitterId, T>::new(1, time);
        move || ids.next_id(|_| spin_loop()).to_raw()
    }

    pub fn add(suite: &mut Suite) {
        suite.shared("ferroid AtomicSnowflakeGenerator, SystemTime", || atomic(wall_clock()));
        suite.shared("ferroid LockSnowflakeGenerator, SystemTime", || lock(wall_clock()));
        suite.shared("ferroid AtomicSnowflakeGenerator, MonotonicClock", || atomic(ticker()));
        suite.shared("ferroid LockSnowflakeGenerator, MonotonicClock", || lock(ticker()));
        let basic_wall = "ferroid BasicSnowflakeGenerator, SystemTime";
        let basic_ticker = "ferroid BasicSnowflakeGenerator, MonotonicClock";
        suite.owned(basic_wall, || basic(wall_clock()));
        suite.owned(basic_ticker, || basic(ticker()));
        suite.batches(BATCHES, basic_wall, FEW, || looped(basic(wall_clock())));
        suite.batches(BATCHES, basic_ticker, FEW, || looped(basic(ticker())));
        suite.singles(DECODE, "ferroid SnowflakeTwitterId", || {
            some_ids(|id| {
                let id = SnowflakeTwitterId::from_raw(id);
                [id.timestamp(), id.machine_id(), id.sequence()]
            })
        });
    }
}

#[cfg(feature = "snowflaked")]
mod snowflaked {
    use snowflaked::{Builder, Generator, Snowflake, sync};

    use super::{BATCHES, DECODE, FEW, looped, some_ids, twitter_epoch};
    use crate::suite::Suite;

    fn owned() -> impl FnMut() -> u64 {
        let mut ids: Generator = Builder::new().instance(1).epoch(twitter_epoch()).build();
        move || ids.generate()
    }

    pub fn add(suite: &mut Suite) {
        suite.shared("snowflaked sync::Generator", || {
            let ids: sync::Generator = Builder::new().instance(1).epoch(twitter_epoch()).build();
            move || ids.generate()
        });
        let generator = "snowflaked Generator";
        suite.owned(generator, owned);
        suite.batches(BATCHES, generator, FEW, || looped(owned()));
        suite.singles(DECODE, "snowflaked Snowflake for u64", || {
            some_ids(|id| [id.timestamp(), id.instance(), id.sequence()])
        });
    }
}

#[cfg(feature = "snowflake_me")]
mod snowflake_me {
    use snowflake_me::{Snowflake, SnowflakeId};

    use super::{BATCH, BATCHES, Batches, DECODE, FEW, OWNED, TWITTER_EPOCH_MS, some_ids};
    use crate::suite::Suite;

    fn ids() -> Snowflake {
        let builder = Snowflake::builder().machine_id(&|| Ok(1)).data_center_id(&|| Ok(0));
        builder.start_time(TWITTER_EPOCH_MS.cast_signed()).finalize().expect("the options are right")
    }

    fn single() -> impl Fn() -> u64 {
        let ids = ids();
        move || ids.next_id().expect("an ID").as_u64()
    }

    /// 41 bits for the time and 22 for the sequence.
    fn wide() -> Snowflake {
        let builder = Snowflake::builder().machine_id(&|| Ok(0)).data_center_id(&|| Ok(0));
        let builder = builder.bit_len_sequence(22).bit_len_machine_id(0).bit_len_data_center_id(0);
        builder.start_time(TWITTER_EPOCH_MS.cast_signed()).finalize().expect("the options are right")
    }

    fn batch(ids: Snowflake) -> impl FnMut(&mut [u64; BATCH]) {
        let mut batch = Vec::with_capacity(BATCH);
        move |buffer| {
            batch.clear();
            ids.next_ids_into(BATCH, &mut batch).expect("IDs");
            for (id, taken) in buffer.iter_mut().zip(&batch) {
                *id = taken.as_u64();
            }
        }
    }

    pub fn add(suite: &mut Suite) {
        let single_ids = "snowflake_me next_id";
        suite.shared(single_ids, single);
        suite.singles(OWNED, single_ids, single);

        suite.batches(BATCHES, "snowflake_me next_ids_into", FEW, || batch(ids()));

        suite.batches(
            BATCHES,
            "snowflake_me next_ids_into, 22-bit sequence",
            Batches { burst: 1000, bursts: 8 },
            || batch(wide()),
        );
        suite.singles(DECODE, "snowflake_me decompose", || {
            let ids = ids();
            some_ids(move |id| {
                let parts = ids.decompose(SnowflakeId::new(id));
                [parts.time, parts.machine_id, parts.sequence]
            })
        });
    }
}

#[cfg(feature = "idgenerator")]
mod idgenerator {
    use idgenerator::{CoreIdGenerator, IdGeneratorOptions, IdInstance};

    use super::{BATCHES, FEW, TWITTER_EPOCH_MS, looped};
    use crate::suite::Suite;

    fn options() -> IdGeneratorOptions {
        let options = IdGeneratorOptions::new().base_time(TWITTER_EPOCH_MS.cast_signed()).worker_id(1);
        options.worker_id_bit_len(10).seq_bit_len(12)
    }

    fn owned() -> impl FnMut() -> u64 {
        let mut ids = CoreIdGenerator::default();
        ids.init(options()).expect("the options are right");
        move || ids.next_id().cast_unsigned()
    }

    pub fn add(suite: &mut Suite) {
        suite.shared("idgenerator IdInstance", || {
            IdInstance::init(options()).expect("the options are right");
            || IdInstance::next_id().cast_unsigned()
        });
        suite.owned("idgenerator CoreIdGenerator", owned);
        suite.batches(BATCHES, "idgenerator CoreIdGenerator", FEW, || looped(owned()));
    }
}

#[cfg(feature = "rs-snowflake")]
mod rs_snowflake {
    use snowflake::{SnowflakeIdBucket, SnowflakeIdGenerator};

    use super::{BATCHES, FEW, looped, twitter_epoch};
    use crate::suite::Suite;

    fn ids() -> SnowflakeIdGenerator {
        SnowflakeIdGenerator::with_epoch(0, 1, twitter_epoch())
    }

    fn lazy() -> impl FnMut() -> u64 {
        let mut ids = ids();
        move || ids.lazy_generate().cast_unsigned()
    }

    fn bucket() -> impl FnMut() -> u64 {
        let mut ids = SnowflakeIdBucket::with_epoch(0, 1, twitter_epoch());
        move || ids.get_id().cast_unsigned()
    }

    pub fn add(suite: &mut Suite) {
        suite.owned("rs-snowflake real_time_generate", || {
            let mut ids = ids();
            move || ids.real_time_generate().cast_unsigned()
        });
        suite.owned("rs-snowflake generate", || {
            let mut ids = ids();
            move || ids.generate().cast_unsigned()
        });
        suite.owned("rs-snowflake lazy_generate", lazy);
        suite.owned("rs-snowflake SnowflakeIdBucket", bucket);
        suite.batches(BATCHES, "rs-snowflake lazy_generate", FEW, || looped(lazy()));
        suite.batches(BATCHES, "rs-snowflake SnowflakeIdBucket", FEW, || looped(bucket()));
    }
}

#[cfg(feature = "snowid")]
mod snowid {
    use snowid::{SnowID, SnowIDConfig};

    use super::{BATCHES, DECODE, FEW, OWNED, TWITTER_EPOCH_MS, some_ids, spin_loop};
    use crate::suite::Suite;

    fn ids() -> SnowID {
        let config = SnowIDConfig::builder().epoch(TWITTER_EPOCH_MS).build();
        SnowID::with_config(1, config).expect("the options are right")
    }

    fn generate() -> impl Fn() -> u64 {
        let ids = ids();
        move || ids.generate()
    }

    fn try_generate() -> impl Fn() -> u64 {
        let ids = ids();
        move || {
            loop {
                match ids.try_generate() {
                    Ok(id) => break id,
                    Err(_) => spin_loop(),
                }
            }
        }
    }

    pub fn add(suite: &mut Suite) {
        suite.shared("snowid generate", generate);
        suite.shared("snowid try_generate", try_generate);
        suite.singles(OWNED, "snowid generate", generate);
        suite.batches(BATCHES, "snowid generate_batch", FEW, || {
            let ids = ids();
            move |buffer| ids.generate_batch(buffer)
        });
        suite.batches(BATCHES, "snowid try_generate_batch", FEW, || {
            let ids = ids();
            move |buffer| {
                let mut filled = 0;
                while filled < buffer.len() {
                    filled += ids.try_generate_batch(&mut buffer[filled..]);
                }
            }
        });
        suite.singles(DECODE, "snowid extract.decompose", || {
            let ids = ids();
            some_ids(move |id| {
                let (time, node, sequence) = ids.extract.decompose(id);
                [time, node.into(), sequence.into()]
            })
        });
    }
}

//! UUIDs, from the crate `uuid`.

use ::uuid::Uuid;

use super::{Generator, Ids, MANY, Made, Options, TextId};
use crate::serve::error::Error;

struct Uuids(fn() -> Uuid);

pub(super) fn make(options: &Options) -> Result<Made, Error> {
    let mut new: fn() -> Uuid = Uuid::now_v7;
    for (name, values) in options.all() {
        new = match (name, values) {
            ("version", [version]) if version == "4" => Uuid::new_v4,
            ("version", [version]) if version == "7" => Uuid::now_v7,
            ("version", _) => {
                return Err(Error::option(name, "a UUID's version is 4 (random) or 7 (sorts by time)"));
            }
            _ => return Err(Error::option(name, "a UUID has no such option; there is version")),
        };
    }
    Ok(Made::new(move || Ok(Box::new(Uuids(new)))))
}

impl Generator for Uuids {
    fn ids(&self, n: usize) -> Result<Ids, Error> {
        let ids = (0..n).map(|_| (self.0)());
        Ok(Ids::Texts(ids.map(|id| TextId { text: id.to_string(), bytes: id.as_bytes().to_vec() }).collect()))
    }

    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        if n > MANY {
            return Ok(Ids::Texts(Vec::new()));
        }
        self.ids(n)
    }
}

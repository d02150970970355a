//! `MongoDB`'s `ObjectId`s.

use super::{Generator, Ids, MANY, Made, Options, TextId};
use crate::object_id::{ObjectIds, text};
use crate::serve::error::Error;
use crate::when;

pub(super) fn make(options: &Options) -> Result<Made, Error> {
    if let Some((name, _)) = options.all().next() {
        return Err(Error::option(name, "an ObjectId has no options"));
    }
    Ok(Made::new(|| {
        let ids = ObjectIds::new().map_err(|error| Error::new("io", error.to_string()))?;
        Ok(Box::new(ids))
    }))
}

impl Generator for ObjectIds {
    fn ids(&self, n: usize) -> Result<Ids, Error> {
        let seconds = when::now_ms() / 1000;
        Ok(Ids::Texts((0..n).map(|_| made(self.next(seconds))).collect()))
    }

    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        if n > MANY {
            return Ok(Ids::Texts(Vec::new()));
        }
        self.ids(n)
    }
}

fn made(id: [u8; 12]) -> TextId {
    TextId { text: text(id), bytes: id.to_vec() }
}

//! sqlx and serde: a type for IDs. An ID is a BIGINT in a database and a string in JSON, since JavaScript rounds numbers
//! of this size.
//!
//! ```no_run
//! # use polyflake_recipes::Id;
//! # #[derive(serde::Serialize, sqlx::FromRow)]
//! struct Order {
//!     id: Id,
//!     parent: Option<Id>,
//! }
//! # async fn add(pool: &sqlx::PgPool, ids: &polyflake::Snowflake) -> Result<Order, Box<dyn std::error::Error>> {
//! let order: Order = sqlx::query_as("INSERT INTO orders (id) VALUES ($1) RETURNING *")
//!     .bind(Id::next(ids)?)
//!     .fetch_one(pool)
//!     .await?;
//! # Ok(order) }
//! ```

use polyflake::IdGenerator;
use serde::{Deserialize, Serialize};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Database, Decode, Encode, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(#[serde(with = "polyflake::serde_id")] pub u64);

impl Id {
    /// Takes the next ID from a Snowflake, a Counter or your own generator.
    ///
    /// # Errors
    ///
    /// Any error from the generator.
    pub fn next<G: IdGenerator>(ids: &G) -> Result<Self, G::Error> {
        ids.next_id().map(Self)
    }
}

impl<D: Database> Type<D> for Id
where
    i64: Type<D>,
{
    fn type_info() -> D::TypeInfo {
        i64::type_info()
    }

    fn compatible(info: &D::TypeInfo) -> bool {
        i64::compatible(info)
    }
}

impl<'q, D: Database> Encode<'q, D> for Id
where
    i64: Encode<'q, D>,
{
    /// Fails for an ID whose top bit is set, because it does not fit into a BIGINT.
    fn encode_by_ref(&self, buffer: &mut D::ArgumentBuffer<'q>) -> Result<IsNull, BoxDynError> {
        i64::try_from(self.0)?.encode_by_ref(buffer)
    }
}

impl<'r, D: Database> Decode<'r, D> for Id
where
    i64: Decode<'r, D>,
{
    fn decode(value: D::ValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(u64::try_from(i64::decode(value)?)?))
    }
}

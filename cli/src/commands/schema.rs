//! `polyflake schema`: prints the SQL that a database needs if programs may not create tables.

use clap::{Args, ValueEnum};
use polyflake_coordination::{Scheme, stores};

use crate::failure::Failure;
use crate::output;

/// Print the table for leases, counters and sequences, and a role's privileges, as SQL
#[derive(Debug, Args)]
#[command(after_help = "Such as: polyflake schema postgres | psql app")]
pub(crate) struct Schema {
    /// The database
    #[arg(value_enum)]
    kind: Kind,
    /// PostgreSQL: the table's schema, as in the `schema_name` of the addresses [default: public]
    #[arg(long, value_name = "NAME")]
    schema_name: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Postgres,
    Mysql,
    Sqlite,
}

impl Schema {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let scheme = match self.kind {
            Kind::Postgres => Scheme::Postgres,
            Kind::Mysql => Scheme::Mysql,
            Kind::Sqlite => Scheme::Sqlite,
        };
        let printed = stores::schema(scheme, self.schema_name.as_deref());
        let (table, grants) = printed.map_err(Failure::Usage)?;
        output::print(&format!("{table}{grants}"))
    }
}

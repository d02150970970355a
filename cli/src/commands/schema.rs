//! `polyflake schema`: what a database must have where programs may not make tables.

use clap::{Args, ValueEnum};
use polyflake_coordination::{Scheme, stores};

use crate::failure::Failure;
use crate::output;

/// Print the table of leases and sequences, and the rights of a role, as SQL
#[derive(Debug, Args)]
#[command(after_help = "Such as: polyflake schema postgres | psql app")]
pub(crate) struct Schema {
    /// The database
    #[arg(value_enum)]
    kind: Kind,
    /// PostgreSQL: the schema of the table, as `schema_name` in the addresses says [default: public]
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

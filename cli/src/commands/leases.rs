use crate::failure::Failure;
use clap::Args;
/// Leases
#[derive(Debug, Args)]
pub(crate) struct Leases {}
impl Leases {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        Ok(())
    }
}

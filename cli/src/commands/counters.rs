use crate::failure::Failure;
use clap::Args;
/// Counters
#[derive(Debug, Args)]
pub(crate) struct Counters {}
impl Counters {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        Ok(())
    }
}

//! `toolyard import`: takes over the servers of other clients.

use crate::{
    cli::ImportArgs,
    failure::{Code, Failure},
    folders::Workplace,
    output::Output,
};

/// Not written yet.
pub(crate) async fn run(
    _arguments: ImportArgs,
    _workplace: &Workplace,
    _output: &Output,
) -> Result<(), Failure> {
    Err(Failure::new(Code::Failed, "not written yet"))
}

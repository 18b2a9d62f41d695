//! `toolyard servers login` and `logout`: tokens for servers that want them.

use crate::{
    failure::{Code, Failure},
    folders::Workplace,
    output::Output,
};

/// Not written yet.
pub(crate) async fn login(_name: &str, _workplace: &Workplace, _output: &Output) -> Result<(), Failure> {
    Err(Failure::new(Code::Failed, "not written yet"))
}

/// Not written yet.
pub(crate) fn logout(_name: &str, _workplace: &Workplace, _output: &Output) -> Result<(), Failure> {
    Err(Failure::new(Code::Failed, "not written yet"))
}

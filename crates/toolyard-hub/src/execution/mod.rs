//! Executes one call on the candidates that routing chose.
//!
//! - `dispatch`: carries out the strategy; `race` and `gather` call several candidates at once.
//! - `attempt`: one candidate with breaker, concurrency limit, deadline and retries; `failure` combines errors.
//! - `share_key`: whose calls share slots and failures.
//! - `authorize`: which candidates the caller may call; `quota`: whether its quotas are used up.
//! - `argument_check`: which candidates accept the arguments; `validate`: arguments against one JSON Schema; `schema_patterns` drops patterns that do not compile.
//! - `journaled`: a call as a step of a run; `audit`: a call as an audit record; `options`: settings of one call.

pub(crate) mod argument_check;
pub(crate) mod attempt;
pub(crate) mod audit;
pub(crate) mod authorize;
pub(crate) mod dispatch;
pub(crate) mod failure;
pub(crate) mod gather;
pub(crate) mod journaled;
pub(crate) mod operation;
pub(crate) mod options;
pub(crate) mod quota;
pub(crate) mod race;
#[cfg(any(test, feature = "schema-validation"))]
pub(crate) mod schema_patterns;
pub(crate) mod share_key;
pub(crate) mod validate;

//! Extension traits ("ports"): what the hub and the agent need from outside. The store and the models implement them, and
//! the `toolyard` crate wires them together. One file per port.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod argument_examples;
pub(crate) mod audit;
pub(crate) mod authenticator;
pub(crate) mod call_policy;
pub(crate) mod call_quota;
pub(crate) mod callers;
pub(crate) mod conversations;
pub(crate) mod example_requests;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod person_sign_in;
pub(crate) mod policies;
pub(crate) mod quota_budgets;
pub(crate) mod result_shapes;
pub(crate) mod results;
pub(crate) mod run_log;
pub(crate) mod servers;
pub(crate) mod storage_error;
pub(crate) mod stored_settings;
pub(crate) mod synthesizer;

//! Who is calling, which tools a caller may call, and how much.

pub(crate) mod authenticator;
pub(crate) mod call_policy;
pub(crate) mod call_quota;
pub(crate) mod callers;
pub(crate) mod person_sign_in;
pub(crate) mod quota_budgets;

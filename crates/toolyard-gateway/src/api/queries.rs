//! Parameters in queries.

use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ToolQuery {
    /// What the tool shall do, in words: the best matches come first.
    pub(super) query: Option<String>,
    /// Only tools of this source.
    pub(super) source: Option<String>,
    /// Number of tools, 50 by default and 500 at most.
    pub(super) limit: Option<usize>,
    /// `next` of the previous page; not with `query`.
    pub(super) after: Option<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ResultQuery {
    /// Where the part begins, in bytes: `next` of the part before.
    pub(super) offset: usize,
    /// Bytes of the part, 100,000 by default and 1,000,000 at most.
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SourceQuery {
    /// The tool of this source.
    pub(super) source: Option<String>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditPageQuery {
    /// Number of records, 50 by default and 500 at most.
    pub(super) limit: Option<usize>,
    /// `next` of the previous page.
    pub(super) after: Option<i64>,
    /// Only records with `recorded_at` at this time or later, in Unix milliseconds.
    pub(super) since: Option<i64>,
    /// Only records before this time.
    pub(super) until: Option<i64>,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ClusterQuery {
    /// Whether the owners of sessions are read from the store: `true` by default. `false` answers without waiting for it.
    pub(super) sessions: Option<bool>,
}

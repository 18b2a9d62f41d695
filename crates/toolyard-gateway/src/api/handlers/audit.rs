//! `/api/v1/audit` and `/api/v1/statistics`.

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::{AuditLogRecord, AuditLogVerification, AuditSelection, CallStatistics},
    api::{
        ApiState,
        extract::{Admin, ApiQuery},
        openapi::ErrorBody,
        pagination::{cut_page, page_limit},
        queries::AuditPageQuery,
        response::{ApiResult, json_of},
    },
};

/// A page of the audit log.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// Newest first.
    pub records: Vec<AuditLogRecord>,
    /// To be given back as `after`; null if this is the last page.
    pub next: Option<String>,
}

/// Calls by tool and source.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct StatisticsList {
    /// By tool and source.
    pub statistics: Vec<CallStatistics>,
    /// Always null: the list is whole.
    pub next: Option<String>,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list_audit))
        .routes(routes!(verify_audit))
        .routes(routes!(list_statistics))
}

/// Lists audit records, newest first.
#[utoipa::path(get, path = "/audit", tag = "audit", params(AuditPageQuery),
    responses((status = 200, body = AuditPage), (status = 404, body = ErrorBody)))]
async fn list_audit(Admin(admin): Admin, ApiQuery(query): ApiQuery<AuditPageQuery>) -> ApiResult {
    let limit = page_limit(query.limit)?;
    let AuditPageQuery { after: before, since, until, .. } = query;
    let selection = AuditSelection { before, since, until, limit: limit.saturating_add(1) };
    let mut records = admin.audit(selection).await?;
    let next = cut_page(&mut records, limit, |record| record.number.to_string());
    Ok(json_of(StatusCode::OK, &AuditPage { records, next }))
}

/// Verifies the hash chain of the audit log.
#[utoipa::path(get, path = "/audit/verify", tag = "audit",
    responses((status = 200, body = AuditLogVerification), (status = 404, body = ErrorBody)))]
async fn verify_audit(Admin(admin): Admin) -> ApiResult {
    Ok(json_of(StatusCode::OK, &admin.verify_audit().await?))
}

/// Lists call statistics by tool and source.
#[utoipa::path(get, path = "/statistics", tag = "tools", responses((status = 200, body = StatisticsList)))]
async fn list_statistics(State(state): State<ApiState>) -> ApiResult {
    let statistics = state.admin.as_ref().map(|admin| admin.statistics()).unwrap_or_default();
    Ok(json_of(StatusCode::OK, &StatisticsList { statistics, next: None }))
}

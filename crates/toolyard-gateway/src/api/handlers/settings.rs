//! `/api/v1/settings`: the settings in effect. They name files and commands of this machine, so that only the operator sees them.

use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::SettingsReport,
    api::{
        ApiState,
        extract::{OperatorOnly, Settings},
        openapi::ErrorBody,
        response::{ApiResult, json_of},
    },
};

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show_settings))
}

/// Shows the settings in effect and where each value comes from. Secrets are left out. Operator only.
#[utoipa::path(get, path = "/settings", tag = "settings",
    responses((status = 200, body = SettingsReport), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
async fn show_settings(_: OperatorOnly, Settings(settings): Settings) -> ApiResult {
    Ok(json_of(StatusCode::OK, &settings.settings()?))
}

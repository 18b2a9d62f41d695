//! `/api/v1/settings`: the settings in effect.

use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiState,
    extract::Settings,
    openapi::ErrorBody,
    response::{ApiResult, json_of},
};
use crate::admin::SettingsReport;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show_settings))
}

/// Shows the settings in effect and where each value comes from. Secrets are left out.
#[utoipa::path(get, path = "/settings", tag = "settings",
    responses((status = 200, body = SettingsReport), (status = 404, body = ErrorBody)))]
async fn show_settings(Settings(settings): Settings) -> ApiResult {
    Ok(json_of(StatusCode::OK, &settings.settings()))
}

//! The settings in effect and where they come from.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};
use serde_json::Value;

use crate::{
    api::{SettingOrigin, SettingValue, SettingsReport},
    form_fields::FormFields,
    format::shorten,
    page::{Page, Pager, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::SettingsText,
};

const MAX_VALUE_CHARS: usize = 300;
const VALUES_PER_PAGE: usize = 150;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    page: Page,
    text: &'static SettingsText,
    files: Vec<String>,
    /// None if the gateway does not show its settings.
    rows: Option<Vec<SettingRow>>,
    shows_all: bool,
    pager: Pager,
}

struct SettingRow {
    setting: SettingValue,
    value: String,
    origin: &'static str,
    is_default: bool,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/settings", get(show))
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = SettingsText::of(visitor.language());
    let settings = match state.api.get_if_offered::<SettingsReport>(visitor.role(), "/settings").await {
        Ok(settings) => settings,
        Err(failure) => return render_failure(&visitor, Section::Settings, &failure),
    };
    let query = FormFields::parse(visitor.context.query.as_bytes());
    let shows_all = query.find("all").is_some();
    let start: usize = query.get("from").parse().unwrap_or_default();
    let page = Page::new(&visitor, Section::Settings, text.title);
    let mut next = None;
    let files = settings.as_ref().map(|settings| settings.files.clone());
    let rows = settings.map(|settings| {
        let shown = settings
            .values
            .into_iter()
            .filter(|setting| shows_all || setting.origin != SettingOrigin::Default);
        let mut shown = shown.skip(start);
        let rows =
            shown.by_ref().take(VALUES_PER_PAGE).map(|setting| SettingRow::of(setting, text)).collect();
        let end = start.saturating_add(VALUES_PER_PAGE).to_string();
        next = shown.next().map(|_| end);
        rows
    });
    let pager = Pager::new(&page, "from", next.as_deref());
    render(&SettingsPage { page, text, files: files.unwrap_or_default(), rows, shows_all, pager })
}

impl SettingRow {
    fn of(setting: SettingValue, text: &SettingsText) -> Self {
        let value = match &setting.value {
            _ if setting.secret => text.secret.to_owned(),
            Value::Null => "–".to_owned(),
            Value::String(value) => value.clone(),
            value => value.to_string(),
        };
        Self {
            value: shorten(&value, MAX_VALUE_CHARS).into_owned(),
            origin: text.origin_name(setting.origin),
            is_default: setting.origin == SettingOrigin::Default,
            setting,
        }
    }
}

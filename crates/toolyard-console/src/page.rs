//! [`Page`]: what the frame of every page needs, and how templates become responses.

use askama::Template;
use axum::response::{Html, IntoResponse as _, Response};
use http::StatusCode;

use crate::{
    api::ApiFailure,
    assets,
    format::url_encode,
    request_context::{Theme, Visitor},
    session::Role,
    text::{CommonText, Language, NavigationText},
};

/// The parts of the console, as in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Chat,
    Tools,
    Servers,
    Runs,
    Approvals,
    Agents,
    Audit,
    Settings,
    /// A page that is not in the navigation.
    Other,
}

/// An entry of the navigation.
#[derive(Debug)]
pub(crate) struct NavigationEntry {
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    /// The path data of its icon, 20 by 20.
    pub(crate) icon: &'static str,
    pub(crate) is_current: bool,
}

/// What the frame of every page needs. A template has it as its field `page`.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) language: Language,
    pub(crate) theme: Theme,
    pub(crate) role: Option<Role>,
    /// The hidden field of every form.
    pub(crate) csrf: String,
    pub(crate) nav: &'static NavigationText,
    pub(crate) common: &'static CommonText,
    pub(crate) version: &'static str,
    path: String,
    query: String,
}

impl Page {
    /// The frame of a page for a visitor.
    pub(crate) fn new(visitor: &Visitor, section: Section, title: impl Into<String>) -> Self {
        let context = &visitor.context;
        Self {
            title: title.into(),
            section,
            language: context.language,
            theme: context.theme,
            role: Some(visitor.session.role),
            csrf: visitor.csrf.clone(),
            nav: NavigationText::of(context.language),
            common: CommonText::of(context.language),
            version: visitor.version,
            path: context.path.clone(),
            query: context.query.clone(),
        }
    }

    /// The frame of a page for somebody who is not signed in.
    pub(crate) fn signed_out(
        context: &crate::request_context::RequestContext,
        title: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            section: Section::Other,
            language: context.language,
            theme: context.theme,
            role: None,
            csrf: String::new(),
            nav: NavigationText::of(context.language),
            common: CommonText::of(context.language),
            version: "",
            path: context.path.clone(),
            query: context.query.clone(),
        }
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.role == Some(Role::Operator)
    }

    pub(crate) fn style_url(&self) -> String {
        assets::STYLE.url()
    }

    pub(crate) fn script_url(&self) -> String {
        assets::CONSOLE_SCRIPT.url()
    }

    pub(crate) fn live_script_url(&self) -> String {
        assets::LIVE_SCRIPT.url()
    }

    /// This page with one parameter of its query replaced.
    pub(crate) fn with_parameter(&self, name: &str, value: &str) -> String {
        let kept =
            form_urlencoded::parse(self.query.as_bytes()).filter(|(key, _)| key != name && key != "code");
        let mut url = format!("{}?", self.path);
        for (key, value) in kept {
            url.push_str(&url_encode(&key));
            url.push('=');
            url.push_str(&url_encode(&value));
            url.push('&');
        }
        url + name + "=" + &url_encode(value)
    }

    pub(crate) fn navigation(&self) -> Vec<NavigationEntry> {
        let nav = self.nav;
        let entries = [
            (
                Section::Overview,
                "/",
                nav.overview,
                "M3 11h6V3H3v8Zm0 6h6v-4H3v4Zm8 0h6V9h-6v8Zm0-14v4h6V3h-6Z",
            ),
            (Section::Chat, "/console/chat", nav.chat, "M3 4h14v10H9l-4 3v-3H3V4Z"),
            (
                Section::Tools,
                "/console/tools",
                nav.tools,
                "M12.5 3.5a4 4 0 0 0-3.8 5.2L3.5 14v2.5H6l5.3-5.2a4 4 0 0 0 5.1-4.8l-2.4 2.3-2.3-.5-.5-2.3 2.3-2.3a4 4 0 0 0-1-.2Z",
            ),
            (
                Section::Servers,
                "/console/servers",
                nav.servers,
                "M3 4h14v5H3V4Zm0 7h14v5H3v-5Zm3-4.5h.01M6 13.5h.01",
            ),
            (Section::Runs, "/console/runs", nav.runs, "M5 5h4v4H5V5Zm6 6h4v4h-4v-4ZM7 9v4h4"),
            (
                Section::Approvals,
                "/console/approvals",
                nav.approvals,
                "M10 2.5 16 5v5c0 3.5-2.5 6-6 7.5C6.500 16 4 13.500 4 10V5l6-2.500ZM7.500 10l2 2 3.500-4",
            ),
            (
                Section::Agents,
                "/console/agents",
                nav.agents,
                "M10 3v2M5 6h10v8H5V6Zm2.500 3.500h.01m4.990 0h.01M8 12h4M7 14v3m6-3v3",
            ),
            (Section::Audit, "/console/audit", nav.audit, "M5 3h7l3 3v11H5V3Zm2.500 6h5m-5 3h5m-5-6h2"),
            (Section::Settings, "/console/settings", nav.settings, "M3 6h8m4 0h2M3 14h2m4 0h8M13 4v4M7 12v4"),
        ];
        let entry = |(section, path, label, icon)| NavigationEntry {
            path,
            label,
            icon,
            is_current: section == self.section,
        };
        entries.into_iter().map(entry).collect()
    }
}

/// A notice above the content of a page: what happened, or what failed and what to do.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

impl Notice {
    pub(crate) fn success(text: impl Into<String>) -> Self {
        Self { is_error: false, text: text.into(), hint: None }
    }

    pub(crate) fn failure(failure: &ApiFailure) -> Self {
        Self { is_error: true, text: failure.message.clone(), hint: failure.hint.clone() }
    }
}

/// A rendered page.
pub(crate) fn render(template: &impl Template) -> Response {
    render_with(StatusCode::OK, template)
}

/// A rendered page with another status.
pub(crate) fn render_with(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => (status, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render a page of the console");
            (StatusCode::INTERNAL_SERVER_ERROR, "failed to render the page").into_response()
        }
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    page: Page,
    failure: &'a ApiFailure,
}

/// A page that says what failed, in the frame of its section.
pub(crate) fn render_failure(visitor: &Visitor, section: Section, failure: &ApiFailure) -> Response {
    let title = CommonText::of(visitor.context.language).failed;
    let status = failure.status;
    render_with(status, &FailurePage { page: Page::new(visitor, section, title), failure })
}

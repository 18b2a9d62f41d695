//! [`Page`]: the frame of every page, and how templates become responses.

use askama::Template;
use axum::response::{Html, IntoResponse as _, Response};
use http::StatusCode;

use crate::{
    api::ApiFailure,
    assets,
    format::with_query,
    request_context::{Theme, Visitor},
    session::Role,
    text::{CommonText, FailureText, Language, NavigationText},
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
    /// The entry whose number of waiting approvals is kept up to date by a script.
    pub(crate) has_badge: bool,
}

/// A link to the same page in another language or theme.
#[derive(Debug)]
pub(crate) struct PreferenceLink {
    pub(crate) href: String,
    pub(crate) label: &'static str,
    /// The language of the label.
    pub(crate) tag: &'static str,
    pub(crate) is_current: bool,
}

/// The frame of a page: title, navigation, language and theme. A template has it as its field `page`.
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
    /// Approvals that wait for a decision; `None` if there are none or the number is not known.
    pub(crate) pending_approvals: Option<u64>,
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
            pending_approvals: visitor.pending_approvals.filter(|count| *count > 0),
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
            pending_approvals: None,
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
        with_query(&self.without_parameter(name), [(name, value)])
    }

    /// This page without one parameter of its query, and without a one-time code.
    pub(crate) fn without_parameter(&self, name: &str) -> String {
        let kept =
            form_urlencoded::parse(self.query.as_bytes()).filter(|(key, _)| key != name && key != "code");
        let kept: Vec<_> = kept.collect();
        with_query(&self.path, kept.iter().map(|(key, value)| (&**key, &**value)))
    }

    /// Links to this page in each language.
    pub(crate) fn language_links(&self) -> [PreferenceLink; 2] {
        [(Language::English, "English"), (Language::Chinese, "中文")].map(|(language, label)| {
            PreferenceLink {
                href: self.with_parameter("lang", language.code()),
                label,
                tag: language.tag(),
                is_current: language == self.language,
            }
        })
    }

    /// Links to this page in each theme.
    pub(crate) fn theme_links(&self) -> [PreferenceLink; 3] {
        let themes = [
            (Theme::System, self.common.theme_system),
            (Theme::Light, self.common.theme_light),
            (Theme::Dark, self.common.theme_dark),
        ];
        themes.map(|(theme, label)| PreferenceLink {
            href: self.with_parameter("theme", theme.name()),
            label,
            tag: self.language.tag(),
            is_current: theme == self.theme,
        })
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
            has_badge: section == Section::Approvals,
        };
        entries.into_iter().map(entry).collect()
    }
}

/// A notice above the content of a page: what happened, or what failed and what to do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notice {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    /// The message of the API, beside its translation. English.
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    /// Whether the text is English on a page in another language.
    pub(crate) is_english_text: bool,
    /// Whether the hint is English on a page in another language.
    pub(crate) is_english_hint: bool,
}

impl Notice {
    pub(crate) fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A failure in the language of the visitor.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::success(text) }
    }

    pub(crate) fn with_hint(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), is_english_hint: false, ..self }
    }

    /// A failure, with a translation of its code if the message is in another language.
    pub(crate) fn failure(failure: &ApiFailure, language: Language) -> Self {
        let notice = Self { hint: failure.hint.clone(), ..Self::error(failure.message.clone()) };
        if failure.is_translated || language == Language::English {
            return notice;
        }
        let code = failure.code.as_deref().unwrap_or("unexpected_status");
        let notice = Self { is_english_hint: true, ..notice };
        match FailureText::of(language).by_code(code) {
            Some(text) => Self { text: text.to_owned(), detail: Some(notice.text), ..notice },
            None => Self { is_english_text: true, ..notice },
        }
    }
}

/// Failures to read parts that a page can do without.
#[derive(Debug, Default)]
pub(crate) struct PartFailures(Option<ApiFailure>);

impl PartFailures {
    /// The part that was read, or else its default. A part that the gateway does not offer is no failure.
    pub(crate) fn keep<T: Default>(&mut self, part: Result<T, ApiFailure>) -> T {
        part.unwrap_or_else(|failure| {
            if !failure.is_not_offered() {
                tracing::warn!(status = %failure.status, message = %failure.message, "part of a console page cannot be read");
                self.0.get_or_insert(failure);
            }
            T::default()
        })
    }

    /// Says that the page is incomplete, with the first failure as a hint.
    pub(crate) fn notice(&self, language: Language) -> Option<Notice> {
        let failure = Notice::failure(self.0.as_ref()?, language);
        let text = CommonText::of(language).incomplete.to_owned();
        let (hint, is_english_hint) = (Some(failure.text), failure.is_english_text);
        Some(Notice { text, hint, is_english_hint, is_english_text: false, ..failure })
    }
}

/// Links to the first and the next page of a list.
#[derive(Debug, Default)]
pub(crate) struct Pager {
    pub(crate) first: Option<String>,
    pub(crate) next: Option<String>,
}

impl Pager {
    /// The links of a page whose query has its position in `parameter`; the other parameters are kept.
    pub(crate) fn new(page: &Page, parameter: &str, next: Option<&str>) -> Self {
        let has_position = form_urlencoded::parse(page.query.as_bytes())
            .any(|(name, value)| name == parameter && !value.is_empty() && value != "0");
        Self {
            first: has_position.then(|| page.without_parameter(parameter)),
            next: next.map(|next| page.with_parameter(parameter, next)),
        }
    }
}

/// A rendered page.
pub(crate) fn render(template: &impl Template) -> Response {
    render_with(StatusCode::OK, template)
}

/// The page that was loaded, or a page with the failure.
pub(crate) fn page_response(
    visitor: &Visitor,
    section: Section,
    loaded: Result<impl Template, ApiFailure>,
) -> Response {
    match loaded {
        Ok(page) => render(&page),
        Err(failure) => render_failure(visitor, section, &failure),
    }
}

/// The fragment of a page that was loaded for a script, or the status of the failure.
pub(crate) fn fragment_response(loaded: Result<impl Template, ApiFailure>) -> Response {
    match loaded {
        Ok(fragment) => render(&fragment),
        Err(failure) => failure.status.into_response(),
    }
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
struct FailurePage {
    page: Page,
    notice: Option<Notice>,
}

/// A page that says what failed, in the frame of its section.
pub(crate) fn render_failure(visitor: &Visitor, section: Section, failure: &ApiFailure) -> Response {
    let notice = Notice::failure(failure, visitor.language());
    render_failure_notice(visitor, section, failure.status, notice)
}

/// A page with a notice about a failure only.
pub(crate) fn render_failure_notice(
    visitor: &Visitor,
    section: Section,
    status: StatusCode,
    notice: Notice,
) -> Response {
    let title = CommonText::of(visitor.language()).failed;
    render_with(status, &FailurePage { page: Page::new(visitor, section, title), notice: Some(notice) })
}

//! [`CallQuota`]: limits how much callers and agents may use.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use crate::{BoxFuture, CallerIdentity, ErrorKind, SourceId, ToolError, WindowLimit};

/// Millionths of the operator's currency.
const MICROS_PER_UNIT: f64 = 1e6;

/// Counts calls and the use of language models against quotas. A hub without one limits nothing. [`Any`], so that a reload can
/// continue what the previous quotas counted.
pub trait CallQuota: Any + Send + Sync + fmt::Debug {
    /// Takes one call from all quotas that are about it, or from none. Called after the call is authorized and before anything
    /// is sent. The permit is held until the call has ended.
    fn take_call<'a>(
        &'a self,
        call: &QuotaCall<'_>,
    ) -> BoxFuture<'a, Result<QuotaPermit, Box<QuotaExceeded>>>;

    /// Whether a language model may be called: the quotas of tokens and money are not used up.
    fn admit_model_use<'a>(
        &'a self,
        subject: QuotaSubject<'_>,
    ) -> BoxFuture<'a, Result<(), Box<QuotaExceeded>>>;

    /// Counts what a call of a language model used.
    fn charge_model_use<'a>(&'a self, subject: QuotaSubject<'_>, used: ModelUse) -> BoxFuture<'a, ()>;

    /// Tells the store what it does not know yet, before this process ends: use that is not charged, and calls that have ended.
    fn settle(&self) -> BoxFuture<'_, ()>;

    /// How many calls and model calls each quota refused since the start of this process.
    fn refusals(&self) -> Vec<(Arc<str>, u64)>;
}

/// Who uses something.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuotaSubject<'a> {
    /// The caller; `None` for the person at this machine.
    pub identity: Option<&'a CallerIdentity>,
    /// The agent that works for the caller.
    pub agent: Option<&'a str>,
}

/// A call to count.
#[derive(Debug, Clone, Copy)]
pub struct QuotaCall<'a> {
    /// Who calls.
    pub subject: QuotaSubject<'a>,
    /// The tools that may be called: one, or several equivalent ones.
    pub tools: &'a [QuotaTool<'a>],
}

/// A tool as quotas see it.
#[derive(Debug, Clone, Copy)]
pub struct QuotaTool<'a> {
    /// Its name without the source.
    pub name: &'a str,
    /// Where it comes from.
    pub source: &'a SourceId,
}

/// What a call of a language model used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// Input and output tokens.
    pub tokens: u64,
    /// The cost in millionths of the operator's currency.
    pub cost_micros: u64,
}

/// Permission for a call. Dropping it ends the call, also if its future is dropped or its tool panics.
#[derive(Default)]
#[must_use]
pub struct QuotaPermit {
    /// Released on drop.
    _held: Option<Box<dyn Any + Send + Sync>>,
}

impl QuotaPermit {
    /// A permit that releases something when it is dropped.
    pub fn holding(held: impl Any + Send + Sync) -> Self {
        Self { _held: Some(Box::new(held)) }
    }
}

impl fmt::Debug for QuotaPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotaPermit").finish_non_exhaustive()
    }
}

/// What a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaLimit {
    /// Tool calls per window.
    Calls(WindowLimit),
    /// Tool calls at the same time.
    ConcurrentCalls(u64),
    /// Tokens of language models per window.
    Tokens(WindowLimit),
    /// Millionths of the operator's currency per window.
    Money(WindowLimit),
}

impl QuotaLimit {
    /// What is counted: `calls`, `permits` (for calls at the same time), `tokens` or `money`.
    pub fn meter(self) -> &'static str {
        match self {
            Self::Calls(_) => "calls",
            Self::ConcurrentCalls(_) => "permits",
            Self::Tokens(_) => "tokens",
            Self::Money(_) => "money",
        }
    }

    /// The limit and its window; `None` for calls at the same time.
    pub fn per_window(self) -> Option<WindowLimit> {
        match self {
            Self::Calls(limit) | Self::Tokens(limit) | Self::Money(limit) => Some(limit),
            Self::ConcurrentCalls(_) => None,
        }
    }
}

impl fmt::Display for QuotaLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(limit) => write!(f, "{} calls per {:?}", limit.limit, limit.window()),
            Self::ConcurrentCalls(limit) => write!(f, "{limit} calls at the same time"),
            Self::Tokens(limit) => write!(f, "{} tokens per {:?}", limit.limit, limit.window()),
            Self::Money(limit) => {
                write!(
                    f,
                    "{} units of currency per {:?}",
                    limit.limit as f64 / MICROS_PER_UNIT,
                    limit.window()
                )
            }
        }
    }
}

/// Why something is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct QuotaExceeded {
    /// The name of the quota.
    pub quota: Arc<str>,
    /// What it limits.
    pub limit: QuotaLimit,
    /// After this time another attempt may succeed.
    pub retry_after: Duration,
    /// Why the store could not be asked; `None` if the quota is used up.
    pub store_error: Option<String>,
}

impl QuotaExceeded {
    fn message(&self) -> String {
        let Self { quota, limit, retry_after, store_error } = self;
        let seconds = retry_after.as_secs_f64().ceil();
        match store_error {
            None => format!("quota `{quota}` is used up ({limit}); retry in {seconds} s"),
            Some(error) => format!(
                "quota `{quota}` ({limit}) cannot be checked because the store failed: {error}; retry in {seconds} s"
            ),
        }
    }

    /// The error of a tool call that is refused.
    pub fn to_tool_error(&self) -> ToolError {
        ToolError::new(ErrorKind::QuotaExceeded, self.message())
            .with_retry_after(self.retry_after)
            .with_operator_hint("the limits are in `[[quotas]]` of toolyard.toml; see `toolyard quotas`")
            .with_caller_hint("nothing was called; do not repeat the call before that time")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_retryable_and_says_when() {
        let limit = QuotaLimit::Money(WindowLimit { limit: 2_500_000, window_millis: 3_600_000 });
        let retry_after = Duration::from_millis(41_200);
        let exceeded = QuotaExceeded { quota: "ci".into(), limit, retry_after, store_error: None };
        let error = exceeded.to_tool_error();
        assert_eq!(error.message(), "quota `ci` is used up (2.5 units of currency per 3600s); retry in 42 s");
        assert!(error.retryable() && error.had_no_effect() && !error.is_source_fault());
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::QuotaExceeded, Some(retry_after)));
        let away = QuotaExceeded { store_error: Some("timed out".to_owned()), ..exceeded };
        assert!(away.to_string().contains("cannot be checked because the store failed: timed out"));
    }
}

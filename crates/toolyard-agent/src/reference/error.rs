//! Why a reference could not be resolved.

/// Why the references of an argument could not be resolved. A model that repairs the call reads these messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReferenceError {
    /// The step does not exist or has no value.
    #[error("`{reference}` refers to a step `{step}` that has no value")]
    NoValue { reference: String, step: String },
    /// A table cell received an object, and none of its fields is clearly the intended one.
    #[error("a cell takes one thing, not {outline}: refer to a part of it")]
    AmbiguousCell { outline: String },
    /// The path does not exist in the value.
    #[error("`{reference}` leads nowhere: the value of `{step}` is {outline}")]
    NoSuchPath { reference: String, step: String, outline: String },
    /// The resolved arguments exceed the size limit.
    #[error("its arguments would be larger than {limit_mb} MB with all that they refer to")]
    TooLarge { limit_mb: usize },
}

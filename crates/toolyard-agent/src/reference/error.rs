//! Why a reference could not be resolved.

/// Why the references of an argument could not be resolved. A model that repairs the call reads these messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReferenceError {
    /// A step refers to the result of a step that failed, was skipped or does not exist.
    ///
    /// Remedy: see why that step has no result: `toolyard runs show RUN`.
    #[error("`{reference}` refers to a step `{step}` that has no value")]
    NoValue { reference: String, step: String },
    /// A table cell was given a whole object, and none of its fields is clearly the intended one.
    ///
    /// Remedy: name the field in your request, such as "the name of each person".
    #[error("a cell takes one thing, not {outline}: refer to a part of it")]
    AmbiguousCell { outline: String },
    /// A reference leads to a part that the result of the step does not have. The message shows what the result looks
    /// like.
    ///
    /// Remedy: say in your request which value is meant, or call the tool yourself to see its result: `toolyard call
    /// TOOL`.
    #[error("`{reference}` leads nowhere: the value of `{step}` is {outline}")]
    NoSuchPath { reference: String, step: String, outline: String },
    /// A reference names a field of the result of a step, but the result is plain text or a number.
    ///
    /// Remedy: say in your request which part of the text is meant, or use a tool that returns fields.
    #[error("`{reference}`: step `{step}` returned {outline}, not an object with a field `{field}`")]
    NoFields { reference: String, step: String, outline: String, field: String },
    /// The arguments of a step, with the results that they refer to, exceed the size limit.
    ///
    /// Remedy: let an earlier step return less: filter or summarize first.
    #[error("its arguments would be larger than {limit_mb} MB with all that they refer to")]
    TooLarge { limit_mb: usize },
}

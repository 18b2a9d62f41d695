//! Evaluates tool search on test sets: how often the relevant tools are found, and how many tokens their definitions take.
//!
//! A test set is a folder of tools, queries and relevance judgements ([`dataset`]); half of its queries is for tuning, the
//! other half for reporting. [`evaluate`] runs every [`Engine`] on every query of a [`Suite`] and computes [`metrics`];
//! [`report`] renders tables and plots and checks the results against floors.

pub mod dataset;
pub mod engine;
pub mod metrics;
pub mod report;
mod runner;
mod steps;
mod tokens;

pub use dataset::{
    records::{DatasetError, ToolRecord},
    split::Split,
    suite::Suite,
    test_sets::TestSets,
};
pub use engine::{Engine, Retriever};
pub use report::results::{Report, Row};
pub use runner::{EvaluationOptions, evaluate};
pub use tokens::TokenCounter;

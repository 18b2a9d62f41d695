//! Models for tests and demonstrations: scripted replies, and recordings of a real model.

mod cassette;
mod scripted;

pub use self::{
    cassette::{Cassette, CassetteError, CassetteRecorder},
    scripted::ScriptedModel,
};

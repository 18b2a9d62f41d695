//! All servers behind a door as one: what they ask reaches whoever called, and what they offer besides tools is one list.

mod asking;

pub use asking::AskTheCaller;

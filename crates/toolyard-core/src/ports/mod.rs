//! Extension traits ("ports"): what the hub and the agent need from outside. The store and the models implement them, and
//! the `toolyard` crate wires them together. One file per port.
//!
//! - Who may call what, and how much: [`access`]
//! - Agents and their runs: [`runs`]
//! - What calls leave behind: [`records`]
//! - Others: [`embedder`], [`servers`], [`synthesizer`]; all report [`storage_error`]

pub(crate) mod access;
pub(crate) mod embedder;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod servers;
pub(crate) mod storage_error;
pub(crate) mod synthesizer;

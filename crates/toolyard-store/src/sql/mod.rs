//! The two SQL engines and everything that is not about one table.
//!
//! - `engine`: dialect differences between SQLite and PostgreSQL
//! - `connect`: opening and migrating a database
//! - `migrations`: the files below `migrations/`
//! - `writer`: group commit; every write goes through it
//! - `columns`, `compression`: how values are stored in columns
//! - `multi_row`, `tables`: statements over many rows and over all tables

mod columns;
mod compression;
pub(crate) mod connect;
mod engine;
mod migrations;
mod multi_row;
mod tables;
pub(crate) mod writer;

pub(crate) use columns::{
    enum_from_text, enum_to_text, json_from_text, read_enum, read_flag, read_hash, read_id,
    read_optional_hash, read_owner,
};
pub(crate) use compression::{compress, decompress};
pub use engine::Engine;
pub(crate) use engine::{Durability, statement};
pub(crate) use multi_row::{chunks, placeholders};
pub(crate) use tables::{ColumnType, DROPPED_TABLES, TABLES, Table};

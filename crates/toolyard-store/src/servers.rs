//! MCP servers, their tool definitions, trust decisions, and descriptions of skill programs.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{
    BoxFuture, ContentHash, RawJson, ServerRecord, Servers, SkillDescriptionCache, SourceId, StorageError,
    StoredDefinition, TrustDecision,
};

use crate::{
    error::StoreError,
    sql::{Durability, Engine, enum_from_text, enum_to_text, json_from_text, read_flag, read_hash, read_id},
    store::Store,
};

// Columns by name: a connection opened before a migration resolves `*` to the old columns.
const SELECT_SERVERS: &str = "SELECT id, configuration, revision_family, cached_tools, seen_at, tool_approvals, content FROM servers ORDER BY id";
const SELECT_SERVER: &str = "SELECT id, configuration, revision_family, cached_tools, seen_at, tool_approvals, content FROM servers WHERE id = $1";

// The ids of one name are neighbours: `name#…`, and `$` follows `#`. Only in the collation "C" is that so on PostgreSQL.
const SELECT_SERVERS_NAMED_SQLITE: &str = "SELECT id, configuration, revision_family, cached_tools, seen_at, tool_approvals, content FROM servers WHERE id >= $1 || '#' AND id < $1 || '$' ORDER BY id";
const SELECT_SERVERS_NAMED_POSTGRES: &str = "SELECT id, configuration, revision_family, cached_tools, seen_at, tool_approvals, content FROM servers WHERE id COLLATE \"C\" >= $1 || '#' AND id COLLATE \"C\" < $1 || '$' ORDER BY id";

type ServersFuture<'a, T> = BoxFuture<'a, Result<T, StorageError>>;

impl Servers for Store {
    fn put_server<'a>(&'a self, server: &'a ServerRecord) -> ServersFuture<'a, ()> {
        let data = server.clone();
        Box::pin(async move {
            let written = self.write(Durability::Relaxed, data, |connection, server| {
                Box::pin(async move {
                    let tools = serde_json::to_string(&server.cached_tools);
                    let tools = tools.map_err(StoreError::corrupt)?;
                    let next = sqlx::query("UPDATE server_revision SET last = last + 1 RETURNING last");
                    let revision: i64 = next.fetch_one(&mut *connection).await?.try_get("last")?;
                    // A server that was seen again with the same tools is not changed.
                    let sql = "INSERT INTO servers (id, configuration, revision_family, cached_tools, seen_at, tool_approvals, content, revision)
                               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                               ON CONFLICT (id) DO UPDATE SET configuration = excluded.configuration, revision_family = excluded.revision_family,
                               cached_tools = excluded.cached_tools, seen_at = excluded.seen_at,
                               tool_approvals = excluded.tool_approvals, content = excluded.content,
                               revision = CASE WHEN servers.revision_family IS NOT DISTINCT FROM excluded.revision_family
                                   AND servers.cached_tools = excluded.cached_tools
                                   AND servers.tool_approvals IS NOT DISTINCT FROM excluded.tool_approvals
                                   AND servers.content IS NOT DISTINCT FROM excluded.content
                                   THEN servers.revision ELSE excluded.revision END";
                    let query = sqlx::query(sql).bind(server.id.as_str()).bind(server.configuration.to_string());
                    let query = query.bind(server.revision_family.as_ref().map(enum_to_text)).bind(tools).bind(server.seen_at);
                    let text = |json: &Option<RawJson>| json.as_ref().map(|json| json.get().to_owned());
                    let query = query.bind(text(&server.tool_approvals)).bind(text(&server.content)).bind(revision);
                    query.execute(connection).await?;
                    Ok(())
                })
            });
            Ok(written.await?)
        })
    }

    fn servers(&self) -> ServersFuture<'_, Vec<ServerRecord>> {
        Box::pin(async move { Ok(self.select(sqlx::query(SELECT_SERVERS), server_record).await?) })
    }

    fn latest_server_revision(&self) -> ServersFuture<'_, i64> {
        Box::pin(async move {
            let query = sqlx::query("SELECT last FROM server_revision");
            Ok(self.select_optional(query, |row| Ok(row.try_get("last")?)).await?.unwrap_or_default())
        })
    }

    fn servers_changed_after(&self, revision: i64) -> ServersFuture<'_, Vec<(SourceId, i64)>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT id, revision FROM servers WHERE revision > $1 ORDER BY revision");
            Ok(self.select(query.bind(revision), server_revision).await?)
        })
    }

    fn servers_named<'a>(&'a self, name: &'a str) -> ServersFuture<'a, Vec<ServerRecord>> {
        let sql = match self.engine() {
            Engine::Sqlite => SELECT_SERVERS_NAMED_SQLITE,
            Engine::Postgres => SELECT_SERVERS_NAMED_POSTGRES,
        };
        Box::pin(async move { Ok(self.select(sqlx::query(sql).bind(name), server_record).await?) })
    }

    fn server<'a>(&'a self, id: &'a SourceId) -> ServersFuture<'a, Option<ServerRecord>> {
        Box::pin(async move {
            Ok(self.select_optional(sqlx::query(SELECT_SERVER).bind(id.as_str()), server_record).await?)
        })
    }

    fn forget_server<'a>(&'a self, id: &'a SourceId) -> ServersFuture<'a, bool> {
        let data = id.clone();
        Box::pin(async move {
            let forgotten = self.write(Durability::Relaxed, data, |connection, id| {
                Box::pin(async move {
                    let delete_definitions =
                        sqlx::query("DELETE FROM tool_definitions WHERE server = $1").bind(id.as_str());
                    delete_definitions.execute(&mut *connection).await?;
                    let delete_server = sqlx::query("DELETE FROM servers WHERE id = $1").bind(id.as_str());
                    Ok(delete_server.execute(connection).await?.rows_affected() > 0)
                })
            });
            Ok(forgotten.await?)
        })
    }

    fn put_definition<'a>(
        &'a self,
        server: &'a SourceId,
        definition: &'a StoredDefinition,
    ) -> ServersFuture<'a, ()> {
        let data = (server.clone(), definition.clone());
        Box::pin(async move {
            let written = self.write(Durability::Synced, data, |connection, (server, definition)| {
                Box::pin(async move {
                    let sql = "INSERT INTO tool_definitions (server, tool, hash, definition, approved, first_seen_at)
                               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (server, tool, hash) DO UPDATE
                               SET approved = CASE WHEN tool_definitions.approved = 1 THEN 1 ELSE excluded.approved END";
                    let query = sqlx::query(sql).bind(server.as_str()).bind(definition.tool.as_str());
                    let query = query.bind(definition.hash.to_string()).bind(definition.definition.get());
                    let query = query.bind(i64::from(definition.approved)).bind(definition.first_seen_at);
                    query.execute(connection).await?;
                    Ok(())
                })
            });
            Ok(written.await?)
        })
    }

    fn definitions<'a>(&'a self, server: &'a SourceId) -> ServersFuture<'a, Vec<StoredDefinition>> {
        Box::pin(async move {
            let sql = "SELECT * FROM tool_definitions WHERE server = $1 ORDER BY tool, first_seen_at, hash";
            Ok(self.select(sqlx::query(sql).bind(server.as_str()), tool_definition).await?)
        })
    }

    fn put_trust<'a>(&'a self, decision: &'a TrustDecision) -> ServersFuture<'a, ()> {
        let data = decision.clone();
        Box::pin(async move {
            let written = self.write(Durability::Synced, data, |connection, decision| {
                Box::pin(async move {
                    let sql = "INSERT INTO trust_decisions (kind, subject, content, decided_at) VALUES ($1, $2, $3, $4)
                               ON CONFLICT (kind, subject) DO UPDATE
                               SET content = excluded.content, decided_at = excluded.decided_at";
                    let query = sqlx::query(sql).bind(decision.kind.as_str()).bind(decision.subject.as_str());
                    let query = query.bind(decision.content.to_string()).bind(decision.decided_at);
                    query.execute(connection).await?;
                    Ok(())
                })
            });
            Ok(written.await?)
        })
    }

    fn remove_trust<'a>(&'a self, kind: &'a str, subject: &'a str) -> ServersFuture<'a, bool> {
        let data = (kind.to_owned(), subject.to_owned());
        Box::pin(async move {
            let removed = self.write(Durability::Synced, data, |connection, (kind, subject)| {
                Box::pin(async move {
                    let query = sqlx::query("DELETE FROM trust_decisions WHERE kind = $1 AND subject = $2");
                    let query = query.bind(kind.as_str()).bind(subject.as_str());
                    Ok(query.execute(connection).await?.rows_affected() > 0)
                })
            });
            Ok(removed.await?)
        })
    }

    fn trust_decisions<'a>(&'a self, kind: &'a str) -> ServersFuture<'a, Vec<TrustDecision>> {
        Box::pin(async move {
            let query =
                sqlx::query("SELECT * FROM trust_decisions WHERE kind = $1 ORDER BY subject").bind(kind);
            Ok(self.select(query, trust_decision).await?)
        })
    }
}

impl SkillDescriptionCache for Store {
    fn description<'a>(&'a self, program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT tools FROM program_descriptions WHERE program = $1")
                .bind(program.to_string());
            let row = query.fetch_optional(self.pool()).await.ok()??;
            RawJson::parse(row.try_get("tools").ok()?).ok()
        })
    }

    fn put_description<'a>(&'a self, program: &'a ContentHash, tools: &'a RawJson) -> BoxFuture<'a, ()> {
        let data = (program.to_string(), tools.clone());
        Box::pin(async move {
            let written = self.write(Durability::Relaxed, data, |connection, (program, tools)| {
                Box::pin(async move {
                    let sql = "INSERT INTO program_descriptions (program, tools) VALUES ($1, $2)
                               ON CONFLICT (program) DO UPDATE SET tools = excluded.tools";
                    sqlx::query(sql).bind(program.as_str()).bind(tools.get()).execute(connection).await?;
                    Ok(())
                })
            });
            if let Err(error) = written.await {
                tracing::warn!(%error, "failed to write a program description");
            }
        })
    }
}

fn server_record(row: &AnyRow) -> Result<ServerRecord, StoreError> {
    let family: Option<String> = row.try_get("revision_family")?;
    let json = |column: &str| {
        let text: Option<String> = row.try_get(column)?;
        text.map(json_from_text).transpose()
    };
    Ok(ServerRecord {
        id: read_id(row, "id")?,
        configuration: read_hash(row, "configuration")?,
        revision_family: family.map(enum_from_text).transpose()?,
        cached_tools: RawJson::items(row.try_get("cached_tools")?).map_err(StoreError::corrupt)?,
        seen_at: row.try_get("seen_at")?,
        tool_approvals: json("tool_approvals")?,
        content: json("content")?,
    })
}

fn server_revision(row: &AnyRow) -> Result<(SourceId, i64), StoreError> {
    Ok((read_id(row, "id")?, row.try_get("revision")?))
}

fn tool_definition(row: &AnyRow) -> Result<StoredDefinition, StoreError> {
    Ok(StoredDefinition {
        tool: row.try_get("tool")?,
        hash: read_hash(row, "hash")?,
        definition: json_from_text(row.try_get("definition")?)?,
        approved: read_flag(row, "approved")?,
        first_seen_at: row.try_get("first_seen_at")?,
    })
}

fn trust_decision(row: &AnyRow) -> Result<TrustDecision, StoreError> {
    Ok(TrustDecision {
        kind: row.try_get("kind")?,
        subject: row.try_get("subject")?,
        content: read_hash(row, "content")?,
        decided_at: row.try_get("decided_at")?,
    })
}

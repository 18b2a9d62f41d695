//! Known servers, definitions of their tools, decisions on trust, and what programs of skills said of themselves.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{
    BoxFuture, ContentHash, Descriptions, RawJson, ServerRecord, Servers, SourceId, ToolDefinition,
    TrustDecision,
};

use crate::{
    engine::Durability,
    error::StoreError,
    store::Store,
    words::{read_word, word},
};

/// By name: a connection that was opened before a migration still takes `*` for the columns of its day.
const SERVERS: &str =
    "SELECT id, configuration, era, cached_tools, seen_at, shelf, content FROM servers ORDER BY id";
const SERVER: &str =
    "SELECT id, configuration, era, cached_tools, seen_at, shelf, content FROM servers WHERE id = $1";

type Answer<'a, T> = BoxFuture<'a, Result<T, String>>;

impl Servers for Store {
    fn put_server<'a>(&'a self, server: &'a ServerRecord) -> Answer<'a, ()> {
        let data = server.clone();
        Box::pin(async move {
            let written = self.write(Durability::Relaxed, data, |connection, server| {
                Box::pin(async move {
                    let tools = serde_json::to_string(&server.cached_tools);
                    let tools = tools.map_err(|error| StoreError::Corrupt(error.to_string()))?;
                    let sql = "INSERT INTO servers (id, configuration, era, cached_tools, seen_at, shelf, content)
                               VALUES ($1, $2, $3, $4, $5, $6, $7)
                               ON CONFLICT (id) DO UPDATE SET configuration = excluded.configuration, era = excluded.era,
                               cached_tools = excluded.cached_tools, seen_at = excluded.seen_at, shelf = excluded.shelf,
                               content = excluded.content";
                    let query = sqlx::query(sql).bind(server.id.as_str()).bind(server.configuration.to_string());
                    let query = query.bind(server.era.as_ref().map(word)).bind(tools).bind(server.seen_at);
                    let text = |json: &Option<RawJson>| json.as_ref().map(|json| json.get().to_owned());
                    let query = query.bind(text(&server.shelf)).bind(text(&server.content));
                    query.execute(connection).await?;
                    Ok(())
                })
            });
            written.await.map_err(text)
        })
    }

    fn servers(&self) -> Answer<'_, Vec<ServerRecord>> {
        Box::pin(async move {
            let rows = sqlx::query(SERVERS).fetch_all(self.pool()).await;
            let rows = rows.map_err(|error| text(error.into()))?;
            rows.iter().map(server_record).collect::<Result<_, _>>().map_err(text)
        })
    }

    fn server<'a>(&'a self, id: &'a SourceId) -> Answer<'a, Option<ServerRecord>> {
        Box::pin(async move {
            let row = sqlx::query(SERVER).bind(id.as_str()).fetch_optional(self.pool()).await;
            let row = row.map_err(|error| text(error.into()))?;
            row.as_ref().map(server_record).transpose().map_err(text)
        })
    }

    fn forget_server<'a>(&'a self, id: &'a SourceId) -> Answer<'a, bool> {
        let data = id.clone();
        Box::pin(async move {
            let forgotten = self.write(Durability::Relaxed, data, |connection, id| {
                Box::pin(async move {
                    let tools =
                        sqlx::query("DELETE FROM tool_definitions WHERE server = $1").bind(id.as_str());
                    tools.execute(&mut *connection).await?;
                    let server = sqlx::query("DELETE FROM servers WHERE id = $1").bind(id.as_str());
                    Ok(server.execute(connection).await?.rows_affected() > 0)
                })
            });
            forgotten.await.map_err(text)
        })
    }

    fn put_definition<'a>(&'a self, server: &'a SourceId, definition: &'a ToolDefinition) -> Answer<'a, ()> {
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
            written.await.map_err(text)
        })
    }

    fn definitions<'a>(&'a self, server: &'a SourceId) -> Answer<'a, Vec<ToolDefinition>> {
        Box::pin(async move {
            let sql = "SELECT * FROM tool_definitions WHERE server = $1 ORDER BY tool, first_seen_at, hash";
            let rows = sqlx::query(sql).bind(server.as_str()).fetch_all(self.pool()).await;
            let rows = rows.map_err(|error| text(error.into()))?;
            rows.iter().map(definition).collect::<Result<_, _>>().map_err(text)
        })
    }

    fn put_trust<'a>(&'a self, decision: &'a TrustDecision) -> Answer<'a, ()> {
        let data = decision.clone();
        Box::pin(async move {
            let written = self.write(Durability::Synced, data, |connection, decision| {
                Box::pin(async move {
                    let sql = "INSERT INTO trust (kind, subject, content, decided_at) VALUES ($1, $2, $3, $4)
                               ON CONFLICT (kind, subject) DO UPDATE
                               SET content = excluded.content, decided_at = excluded.decided_at";
                    let query = sqlx::query(sql).bind(decision.kind.as_str()).bind(decision.subject.as_str());
                    let query = query.bind(decision.content.to_string()).bind(decision.decided_at);
                    query.execute(connection).await?;
                    Ok(())
                })
            });
            written.await.map_err(text)
        })
    }

    fn remove_trust<'a>(&'a self, kind: &'a str, subject: &'a str) -> Answer<'a, bool> {
        let data = (kind.to_owned(), subject.to_owned());
        Box::pin(async move {
            let removed = self.write(Durability::Synced, data, |connection, (kind, subject)| {
                Box::pin(async move {
                    let query = sqlx::query("DELETE FROM trust WHERE kind = $1 AND subject = $2");
                    let query = query.bind(kind.as_str()).bind(subject.as_str());
                    Ok(query.execute(connection).await?.rows_affected() > 0)
                })
            });
            removed.await.map_err(text)
        })
    }

    fn trusted<'a>(&'a self, kind: &'a str) -> Answer<'a, Vec<TrustDecision>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM trust WHERE kind = $1 ORDER BY subject").bind(kind);
            let rows = query.fetch_all(self.pool()).await.map_err(|error| text(error.into()))?;
            rows.iter().map(decision).collect::<Result<_, _>>().map_err(text)
        })
    }
}

impl Descriptions for Store {
    fn description<'a>(&'a self, program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>> {
        Box::pin(async move {
            let query =
                sqlx::query("SELECT tools FROM descriptions WHERE program = $1").bind(program.to_string());
            let row = query.fetch_optional(self.pool()).await.ok()??;
            RawJson::parse(row.try_get("tools").ok()?).ok()
        })
    }

    fn keep_description<'a>(&'a self, program: &'a ContentHash, tools: &'a RawJson) -> BoxFuture<'a, ()> {
        let data = (program.to_string(), tools.clone());
        Box::pin(async move {
            let kept = self.write(Durability::Relaxed, data, |connection, (program, tools)| {
                Box::pin(async move {
                    let sql = "INSERT INTO descriptions (program, tools) VALUES ($1, $2)
                               ON CONFLICT (program) DO UPDATE SET tools = excluded.tools";
                    sqlx::query(sql).bind(program.as_str()).bind(tools.get()).execute(connection).await?;
                    Ok(())
                })
            });
            if let Err(error) = kept.await {
                tracing::warn!(%error, "a program's description was not kept");
            }
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn text(error: StoreError) -> String {
    error.to_string()
}

fn hash(row: &AnyRow, column: &str) -> Result<ContentHash, StoreError> {
    row.try_get::<String, _>(column)?.parse().map_err(StoreError::Corrupt)
}

fn server_record(row: &AnyRow) -> Result<ServerRecord, StoreError> {
    let corrupt = |error: String| StoreError::Corrupt(error);
    let era: Option<String> = row.try_get("era")?;
    let json = |column: &str| {
        let text: Option<String> = row.try_get(column)?;
        text.map(RawJson::parse).transpose().map_err(|error| corrupt(error.to_string()))
    };
    Ok(ServerRecord {
        id: SourceId::from(row.try_get::<String, _>("id")?),
        configuration: hash(row, "configuration")?,
        era: era.map(|era| read_word(&era)).transpose()?,
        cached_tools: RawJson::items(row.try_get("cached_tools")?)
            .map_err(|error| corrupt(error.to_string()))?,
        seen_at: row.try_get("seen_at")?,
        shelf: json("shelf")?,
        content: json("content")?,
    })
}

fn definition(row: &AnyRow) -> Result<ToolDefinition, StoreError> {
    let definition = RawJson::parse(row.try_get("definition")?);
    Ok(ToolDefinition {
        tool: row.try_get("tool")?,
        hash: hash(row, "hash")?,
        definition: definition.map_err(|error| StoreError::Corrupt(error.to_string()))?,
        approved: row.try_get::<i64, _>("approved")? != 0,
        first_seen_at: row.try_get("first_seen_at")?,
    })
}

fn decision(row: &AnyRow) -> Result<TrustDecision, StoreError> {
    Ok(TrustDecision {
        kind: row.try_get("kind")?,
        subject: row.try_get("subject")?,
        content: hash(row, "content")?,
        decided_at: row.try_get("decided_at")?,
    })
}

//! The transitions of runs as rows, each write covered by the run's lease.

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{JournalError, JournalFuture, Lease, LoggedEvent, RawJson, RunId, RunLog, redact_json};

use crate::{
    compress::{compressed, uncompressed},
    engine::{Durability, Engine},
    error::StoreError,
    journal::check_lease,
    store::{Store, now},
};

impl RunLog for Store {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let events = events.iter().map(|event| compressed(redact_json(event).0.get().as_bytes()));
            let rows = Rows {
                engine: self.engine(),
                lease: lease.clone(),
                number,
                events: events.collect::<Result<_, _>>()?,
            };
            let written =
                self.write(Durability::Synced, rows, |connection, rows| Box::pin(insert(connection, rows)));
            Ok(written.await?)
        })
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        Box::pin(async move {
            let sql = "SELECT * FROM run_events WHERE run = $1 AND number >= $2 ORDER BY number";
            let query = sqlx::query(sql).bind(run.as_str()).bind(from);
            let rows = query.fetch_all(self.pool()).await.map_err(StoreError::from)?;
            Ok(rows.iter().map(logged).collect::<Result<_, _>>()?)
        })
    }
}

struct Rows {
    engine: Engine,
    lease: Lease,
    number: i64,
    events: Vec<Vec<u8>>,
}

async fn insert(connection: &mut AnyConnection, rows: &Rows) -> Result<(), StoreError> {
    check_lease(connection, rows.engine, &rows.lease).await?;
    let at = now();
    for (number, event) in (rows.number..).zip(&rows.events) {
        let sql =
            "INSERT INTO run_events (run, number, event, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let query = sqlx::query(sql).bind(rows.lease.run.as_str()).bind(number);
        let query = query.bind(event.as_slice()).bind(at);
        if query.execute(&mut *connection).await?.rows_affected() == 0 {
            return Err(JournalError::NumberTaken { run: rows.lease.run.clone(), number }.into());
        }
    }
    Ok(())
}

fn logged(row: &AnyRow) -> Result<LoggedEvent, StoreError> {
    let event = uncompressed(&row.try_get::<Vec<u8>, _>("event")?)?;
    let event = RawJson::parse(event).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let run = RunId::from(row.try_get::<String, _>("run")?);
    Ok(LoggedEvent { run, number: row.try_get("number")?, event, at: row.try_get("at")? })
}

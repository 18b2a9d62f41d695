//! The events of a run, appended under its lease.

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{
    JournalError, JournalFuture, Lease, LoggedEvent, RawJson, RunId, RunLog, redact_json, unix_millis,
};

use crate::{
    error::StoreError,
    journal::check_lease,
    large_text::{is_large, on_other_thread},
    sql::{Durability, Engine, compress, decompress, json_from_text, read_id},
    store::Store,
};

/// Events without secrets, compressed.
fn redact_events(events: &[RawJson]) -> Result<Vec<Vec<u8>>, StoreError> {
    events.iter().map(|event| compress(redact_json(event).0.get().as_bytes())).collect()
}

impl RunLog for Store {
    fn append_all<'a>(
        &'a self,
        lease: &'a Lease,
        first_number: i64,
        events: &'a [RawJson],
    ) -> JournalFuture<'a, ()> {
        Box::pin(async move {
            let events = if is_large(events.iter().map(|event| event.get().len()).sum()) {
                let events = events.to_vec();
                on_other_thread(move || redact_events(&events)).await?
            } else {
                redact_events(events)?
            };
            let data = NewEvents { engine: self.engine(), lease: lease.clone(), first_number, events };
            let written =
                self.write(Durability::Synced, data, |connection, data| Box::pin(insert(connection, data)));
            Ok(written.await?)
        })
    }

    fn events<'a>(&'a self, run: &'a RunId, from: i64) -> JournalFuture<'a, Vec<LoggedEvent>> {
        Box::pin(async move {
            let sql = "SELECT * FROM run_events WHERE run = $1 AND number >= $2 ORDER BY number";
            Ok(self.select(sqlx::query(sql).bind(run.as_str()).bind(from), logged_event).await?)
        })
    }

    fn last_event<'a>(&'a self, run: &'a RunId) -> JournalFuture<'a, Option<LoggedEvent>> {
        Box::pin(async move {
            let sql = "SELECT * FROM run_events WHERE run = $1 ORDER BY number DESC LIMIT 1";
            Ok(self.select_optional(sqlx::query(sql).bind(run.as_str()), logged_event).await?)
        })
    }
}

struct NewEvents {
    engine: Engine,
    lease: Lease,
    first_number: i64,
    events: Vec<Vec<u8>>,
}

async fn insert(connection: &mut AnyConnection, data: &NewEvents) -> Result<(), StoreError> {
    check_lease(connection, data.engine, &data.lease).await?;
    let at = unix_millis();
    for (number, event) in (data.first_number..).zip(&data.events) {
        let sql =
            "INSERT INTO run_events (run, number, event, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let query = sqlx::query(sql).bind(data.lease.run.as_str()).bind(number);
        let query = query.bind(event.as_slice()).bind(at);
        if query.execute(&mut *connection).await?.rows_affected() == 0 {
            return Err(JournalError::EventExists { run: data.lease.run.clone(), number }.into());
        }
    }
    Ok(())
}

fn logged_event(row: &AnyRow) -> Result<LoggedEvent, StoreError> {
    Ok(LoggedEvent {
        run: read_id(row, "run")?,
        number: row.try_get("number")?,
        event: json_from_text(decompress(&row.try_get::<Vec<u8>, _>("event")?)?)?,
        at: row.try_get("at")?,
    })
}

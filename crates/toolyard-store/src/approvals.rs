//! Questions that wait for a person, as rows.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{Answer, Approvals, BoxFuture, Question, QuestionKind, RunId, redact};

use crate::{
    engine::Durability,
    error::StoreError,
    store::{Store, now},
    words::{read_word, word},
};

impl Approvals for Store {
    fn ask<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: QuestionKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<i64, String>> {
        let data = (run.clone(), step.map(str::to_owned), word(&kind), redact(text).into_owned());
        Box::pin(async move {
            let asked = self.write(Durability::Synced, data, |connection, (run, step, kind, text)| {
                Box::pin(async move {
                    let sql =
                        "INSERT INTO questions (run, step, kind, text, asked_at) VALUES ($1, $2, $3, $4, $5)
                               RETURNING id";
                    let query = sqlx::query(sql).bind(run.as_str()).bind(step.clone()).bind(kind.as_str());
                    let row = query.bind(text.as_str()).bind(now()).fetch_one(connection).await?;
                    Ok(row.try_get("id")?)
                })
            });
            asked.await.map_err(|error| error.to_string())
        })
    }

    fn answer<'a>(&'a self, id: i64, answer: Answer, by: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        let data = (id, word(&answer), by.to_owned());
        Box::pin(async move {
            let answered = self.write(Durability::Synced, data, |connection, (id, answer, by)| {
                Box::pin(async move {
                    let sql = "UPDATE questions SET answer = $2, answered_by = $3, answered_at = $4
                               WHERE id = $1 AND answer IS NULL";
                    let query =
                        sqlx::query(sql).bind(*id).bind(answer.as_str()).bind(by.as_str()).bind(now());
                    Ok(query.execute(connection).await?.rows_affected() == 1)
                })
            });
            answered.await.map_err(|error| error.to_string())
        })
    }

    fn question(&self, id: i64) -> BoxFuture<'_, Result<Option<Question>, String>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM questions WHERE id = $1").bind(id);
            let row = query.fetch_optional(self.pool()).await.map_err(|error| error.to_string())?;
            row.as_ref().map(question).transpose().map_err(|error| error.to_string())
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, String>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM questions WHERE answer IS NULL ORDER BY id");
            let rows = query.fetch_all(self.pool()).await.map_err(|error| error.to_string())?;
            rows.iter().map(question).collect::<Result<_, _>>().map_err(|error| error.to_string())
        })
    }

    fn of_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Question>, String>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM questions WHERE run = $1 ORDER BY id").bind(run.as_str());
            let rows = query.fetch_all(self.pool()).await.map_err(|error| error.to_string())?;
            rows.iter().map(question).collect::<Result<_, _>>().map_err(|error| error.to_string())
        })
    }
}

fn question(row: &AnyRow) -> Result<Question, StoreError> {
    let answer: Option<String> = row.try_get("answer")?;
    Ok(Question {
        id: row.try_get("id")?,
        run: RunId::from(row.try_get::<String, _>("run")?),
        step: row.try_get("step")?,
        kind: read_word(&row.try_get::<String, _>("kind")?)?,
        text: row.try_get("text")?,
        answer: answer.map(|answer| read_word(&answer)).transpose()?,
        by: row.try_get("answered_by")?,
    })
}

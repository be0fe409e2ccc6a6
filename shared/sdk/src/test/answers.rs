//! Remote steps that the test answers itself, in advance or while they wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::payload::Json;

use super::{TestEnv, invalid};
use crate::client::ClientError;
use crate::codec;
use crate::error::Failure;

/// An answer without its types.
pub(super) type Answer = Arc<dyn Fn(&Json) -> Result<Json, Failure> + Send + Sync>;

/// Answers by kind of task.
#[derive(Default)]
pub(super) struct Answers(Mutex<BTreeMap<String, Answer>>);

impl Answers {
    pub(super) fn add<I, O, F>(&self, kind: String, answer: F)
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Fn(I) -> Result<O, Failure> + Send + Sync + 'static,
    {
        let erased: Answer = Arc::new(move |input| {
            let problem = |what: &str, error: &dyn std::fmt::Display| Failure::new(what, error.to_string());
            let input = codec::decode(input).map_err(|error| problem("invalid_input", &error))?;
            codec::encode(&answer(input)?).map_err(|error| problem("invalid_output", &error))
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, erased);
    }

    pub(super) fn of(&self, kind: &str) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }
}

impl TestEnv {
    /// Answers the remote steps of a kind that wait now, and all later ones. If no step of this kind waits, this is an
    /// error that names the kinds that wait. To answer later steps only, use [`Self::answer`].
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn greet(ctx: Ctx, name: String) -> Result<String> {
    /// #     Ok(ctx.step(remote("translate", &name)).await?)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(greet);
    /// let run = env.start(&greet, "Ada".to_owned()).await.unwrap();
    /// env.advance("1d").await.unwrap(); // nobody translates for a day
    /// env.answer_now("translate", |name: String| Ok(format!("salut {name}"))).await.unwrap();
    /// assert_eq!(run.result().await.unwrap(), "salut Ada");
    /// # }
    /// ```
    pub async fn answer_now<I, O, F>(&self, kind: &str, answer: F) -> Result<(), ClientError>
    where
        I: DeserializeOwned,
        O: Serialize,
        F: Fn(I) -> Result<O, Failure> + Send + Sync + 'static,
    {
        let waiting = self.unanswered();
        if !waiting.iter().any(|waits| waits == kind) {
            let which = if waiting.is_empty() { "no step does".to_owned() } else { waiting.join(", ") };
            return Err(invalid(
                "kind",
                &format!("no step of the kind `{kind}` waits to be answered; these do: {which}"),
            ));
        }
        self.world.answers.add(kind.to_owned(), answer);
        self.world.redeliver(kind).await;
        Ok(())
    }

    /// The kinds of the remote steps that wait because they have no answer.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # use tickover::test::TestEnv;
    /// # #[tickover::workflow]
    /// # async fn greet(ctx: Ctx, name: String) -> Result<String> {
    /// #     Ok(ctx.step(remote("translate", &name)).await?)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let env = TestEnv::new().workflow(greet);
    /// env.start(&greet, "Ada".to_owned()).await.unwrap();
    /// env.run_until_idle().await.unwrap();
    /// assert_eq!(env.unanswered(), ["translate"]);
    /// # }
    /// ```
    pub fn unanswered(&self) -> Vec<String> {
        self.world.unanswered().values().map(|task| task.kind.clone()).collect()
    }
}

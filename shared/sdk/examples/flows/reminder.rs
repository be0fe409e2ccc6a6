//! A survey with reminders: sleeps, and a wait for an event with a timeout.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

use crate::outside;

/// The result of the survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// The answer, if there was one.
    pub(crate) answer: Option<String>,
    /// Mails that were sent.
    pub(crate) mails: u32,
}

/// Sends a mail.
#[tickover::step]
pub(crate) async fn send_mail(text: String) -> Result<()> {
    outside::call().await;
    drop(text);
    Ok(())
}

/// Sends the question up to three times. After each mail it waits three days for an answer, and then one more day.
#[tickover::workflow("survey", timeout = "60d")]
pub(crate) async fn survey(ctx: Ctx, question: String) -> Result<Asked> {
    for mails in 1..=3 {
        ctx.step(send_mail(question.clone()).named(format!("mail[{mails}]"))).await?;
        match ctx.wait_for_event::<String>("answer", within("3d")).await {
            Ok(answer) => return Ok(Asked { answer: Some(answer), mails }),
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error.into()),
        }
        ctx.sleep(format!("pause[{mails}]"), "1d").await?;
    }
    Ok(Asked { answer: None, mails: 3 })
}

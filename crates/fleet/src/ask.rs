//! A question to one start of one host, and its answer.

use crate::{
    entry::{Entry, HostName},
    link::{Link, LinkError, REQUEST_TIMEOUT},
    words::{Answer, Question},
};
use async_nats::Subscriber;
use futures_util::{StreamExt as _, future::join_all};
use std::time::Duration;

/// A question that waits for its answer.
#[derive(Debug)]
pub struct Asked {
    pub question: Question,
    link: Link,
    reply: Option<async_nats::Subject>,
}

/// Where a host hears what it is asked.
pub struct Questions {
    link: Link,
    subscriber: Subscriber,
}

impl Link {
    /// Listens for questions to this start of a host.
    pub async fn questions_to(&self, host: &HostName) -> Result<Questions, LinkError> {
        let subject = self.questions(host, "*");
        let subscriber = self.client.subscribe(subject).await;
        let subscriber = subscriber.map_err(|it| LinkError::Away(it.to_string()))?;
        Ok(Questions { link: self.clone(), subscriber })
    }

    /// Asks. A host that is gone is told from one that is slow: nobody listens there, and that is known at
    /// once.
    pub async fn ask(
        &self,
        host: &HostName,
        question: &Question,
        timeout: Duration,
    ) -> Result<Answer, LinkError> {
        let body = serde_json::to_vec(question).expect("a question is plain data");
        let subject = self.questions(host, question.kind());
        let answer = self.request(subject, body.into(), timeout).await?;
        serde_json::from_slice(&answer).map_err(|it| LinkError::Away(it.to_string()))
    }

    /// Which of these hosts answer now. For who does not watch the list: for a while it has the dead, too.
    pub async fn roll_call(&self, hosts: &[Entry]) -> Vec<bool> {
        join_all(
            hosts
                .iter()
                .map(async |it| self.ask(&it.host, &Question::Here, REQUEST_TIMEOUT).await.is_ok()),
        )
        .await
    }
}

impl Questions {
    /// The next question; none once the connection is closed for good. What nobody understands is not
    /// answered.
    pub async fn next(&mut self) -> Option<Asked> {
        loop {
            let message = self.subscriber.next().await?;
            let kind = message.subject.rsplit('.').next().unwrap_or_default();
            match serde_json::from_slice::<Question>(&message.payload) {
                // The servers decide by the subject who may ask. A question of another kind is not what
                // they have let through.
                Ok(question) if question.kind() != kind => {
                    let asked = question.kind();
                    tracing::warn!(asked, subject = kind, "refused a question on a wrong subject");
                }
                Ok(question) => {
                    let link = self.link.clone();
                    return Some(Asked { question, link, reply: message.reply });
                }
                Err(error) => tracing::warn!(%error, "a question nobody understands"),
            }
        }
    }
}

impl Asked {
    pub async fn answer(self, answer: &Answer) {
        let body = serde_json::to_vec(answer).expect("an answer is plain data");
        if let Some(reply) = self.reply {
            let _unheard = self.link.client.publish(reply, body.into()).await;
        }
    }
}

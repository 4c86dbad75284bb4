//! A question to one start of one host, and its answer, both in words of whoever asks.

use crate::{
    entry::HostName,
    link::{Link, LinkError},
};
use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::time::Duration;

/// A question that waits for its answer.
#[derive(Debug)]
pub struct Asked {
    pub question: Bytes,
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
        let subject = self.questions(&host.name, &host.incarnation);
        let subscriber = self.client.subscribe(subject).await;
        let subscriber = subscriber.map_err(|it| LinkError::Away(it.to_string()))?;
        Ok(Questions { link: self.clone(), subscriber })
    }

    /// Asks. A host that is gone is told from one that is slow: nobody listens there, and that is known at
    /// once.
    pub async fn ask(
        &self,
        host: &HostName,
        question: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, LinkError> {
        self.request(self.questions(&host.name, &host.incarnation), question, timeout).await
    }
}

impl Questions {
    /// The next question; none once the connection is closed for good.
    pub async fn next(&mut self) -> Option<Asked> {
        let message = self.subscriber.next().await?;
        Some(Asked { question: message.payload, reply: message.reply })
    }

    pub async fn answer(&self, asked: Asked, answer: Bytes) {
        if let Some(reply) = asked.reply {
            let _unheard = self.link.client.publish(reply, answer).await;
        }
    }
}

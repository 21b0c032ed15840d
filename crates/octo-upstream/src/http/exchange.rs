//! One request and its answer, which comes as JSON or at the end of a stream.

use super::answer::{is_stream, whole};
use super::endpoint::Endpoint;
use super::events::{Events, Mark};
use super::headers::mirror;
use crate::fail::{Fail, Outcome};
use crate::inbox::{Inbox, Origin};
use crate::read::read;
use crate::wire::{Request, Wire};
use bytes::Bytes;
use http::Method;
use octo_wire::{Era, Id, Message};
use std::sync::Arc;
use std::time::Duration;

/// A broken stream is resumed so many times without a new event in between.
const RESUMPTIONS: u32 = 5;
/// The wait before that when the server has not named one.
const PAUSE: Duration = Duration::from_millis(300);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl Endpoint {
    pub(crate) async fn exchange(self: &Arc<Self>, inbox: &Arc<Inbox>, request: Request) -> Outcome {
        let mut headers = self.headers();
        mirror(&request, &mut headers);
        let (id, era) = (request.id, request.era);
        let opens = request.method == "initialize";
        let message = Message::Request { id: Id::number(id), method: request.method, params: request.params };
        let response = self.call(Method::POST, headers, message.to_bytes()).await?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        if opens {
            self.join(response.headers());
        }
        if is_stream(&response) {
            let events = Events::new(response.into_body(), self.limit, Mark::default());
            return self.streamed(inbox, id, era, events).await;
        }
        let text = whole(response.into_body(), self.limit).await?;
        self.pick(inbox, id, text)
            .unwrap_or_else(|| Err(Fail::Garbled("no valid answer in the response".to_owned())))
    }

    /// Follows the stream of one request until its answer; a legacy server's broken stream is resumed.
    async fn streamed(
        self: &Arc<Self>,
        inbox: &Arc<Inbox>,
        id: u64,
        era: Era,
        mut events: Events,
    ) -> Outcome {
        let mut tries = 0;
        let mut last = Mark::default();
        loop {
            let why = match self.until_answer(inbox, id, &mut events).await {
                Ok(Some(outcome)) => {
                    events.finish();
                    return outcome;
                }
                Ok(None) => Fail::Lost("the stream ended without an answer".to_owned()),
                Err(why @ Fail::Lost(_)) => why,
                Err(other) => return Err(other),
            };
            tries = if events.mark.id == last.id { tries + 1 } else { 0 };
            last = events.mark.clone();
            if era == Era::Modern || last.id.is_none() || tries > RESUMPTIONS {
                return Err(why);
            }
            events = self.resumed(&last).await.ok_or(why)?;
        }
    }

    async fn until_answer(
        self: &Arc<Self>,
        inbox: &Arc<Inbox>,
        id: u64,
        events: &mut Events,
    ) -> Outcome<Option<Outcome>> {
        while let Some(text) = events.next().await? {
            if let Some(outcome) = self.pick(inbox, id, text) {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Finds the answer among messages; what else there is goes to the inbox.
    fn pick(self: &Arc<Self>, inbox: &Arc<Inbox>, id: u64, text: Bytes) -> Option<Outcome> {
        let messages = match read(text) {
            Ok(messages) => messages,
            Err(broken) => {
                tracing::debug!(target: "upstream", server = %inbox.name, fault = %broken.fault, "not a message");
                return (broken.id == Some(id)).then(|| Err(Fail::Garbled(broken.fault.to_string())));
            }
        };
        let mut answer = None;
        for message in messages {
            match message {
                Message::Response { id: of, result } if is(id, Some(&of)) => answer = Some(Ok(result)),
                Message::Error { id: of, error } if is(id, of.as_ref()) => {
                    answer = Some(Err(Fail::Rpc(error)))
                }
                other => inbox.take(other, Origin::Call(id), &Wire::Http(self.clone())),
            }
        }
        answer
    }

    /// Takes up a stream where it broke. A connection that cannot be made is tried a few times.
    async fn resumed(&self, mark: &Mark) -> Option<Events> {
        for _ in 0..RESUMPTIONS {
            tokio::time::sleep(mark.retry.unwrap_or(PAUSE).max(SHORTEST_PAUSE)).await;
            match self.listen(mark).await {
                Ok(events) => return Some(events),
                Err(Fail::NotSent(_) | Fail::Reset(_)) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// An answer without an id, on a request's own stream, is that request's.
fn is(id: u64, of: Option<&Id>) -> bool {
    of.is_none_or(|of| of.to_number() == Some(id))
}

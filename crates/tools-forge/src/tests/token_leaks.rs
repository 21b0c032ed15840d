//! Tokens never appear in the log, even at the most verbose level.

use super::github_pull_request::{FakeRepo, SECRET, settings, url};
use crate::fake_server::bench;
use crate::{GitlabSettings, github_toolbox, gitlab_toolbox};
use octo_toolkit::Secret;
use serde_json::json;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Records every field of every event and span.
#[derive(Clone, Default)]
struct RecordingSubscriber(Arc<Mutex<String>>);

impl Visit for RecordingSubscriber {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{}={value:?}\n", field.name()));
    }
}

impl Subscriber for RecordingSubscriber {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_log_of_everything_has_no_token() {
    let log = RecordingSubscriber::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let (fake, _) = FakeRepo::default().serve().await;
    bench(github_toolbox(settings(&fake)))
        .call("github_pull_request", json!({"url": url(&fake)}))
        .await
        .unwrap();
    let token = Some(Secret::new(SECRET));
    let gitlab = GitlabSettings { url: Some(fake.url.clone()), token, ..GitlabSettings::default() };
    bench(gitlab_toolbox(gitlab))
        .call("gitlab_request", json!({"method": "GET", "path": "x"}))
        .await
        .unwrap();
    assert!(
        fake.requests().iter().any(|seen| seen.header("private-token") == Some(SECRET)),
        "both were sent"
    );
    tracing::trace!("the log hears");
    let log = log.0.lock().unwrap().clone();
    assert!(log.contains("the log hears"));
    assert!(!log.contains(SECRET), "{log}");
}

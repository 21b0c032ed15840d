//! Subscriber counts per resource: a source is notified of the first subscriber and of the last one's end.

use octo_model::ToolError;
use octo_toolkit::Source;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of subscribers per source and resource.
#[derive(Default)]
pub struct SubscriptionCounts(Mutex<HashMap<Key, Arc<SubscriberCount>>>);

/// A source by its address, which is not reused while a subscription holds the source.
type Key = (usize, String);
/// Locked during the request to the source, so that concurrent subscribers send one request and share the
/// answer.
type SubscriberCount = tokio::sync::Mutex<usize>;

impl SubscriptionCounts {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, Arc<SubscriberCount>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a subscriber after the source has accepted.
    pub async fn subscribe(
        self: &Arc<Self>,
        source: &Arc<dyn Source>,
        uri: &str,
    ) -> Result<Subscription, ToolError> {
        let interest = CountHandle::new(self, source, uri);
        let mut subscribers = interest.count.lock().await;
        if *subscribers == 0 {
            source.watch(uri, true).await?;
        }
        *subscribers += 1;
        drop(subscribers);
        Ok(Subscription(Some(interest)))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.all().len()
    }
}

/// Handle to a count. The last handle to be dropped removes a zero count from the table.
struct CountHandle {
    counts: Arc<SubscriptionCounts>,
    source: Arc<dyn Source>,
    key: Key,
    count: Arc<SubscriberCount>,
}

impl CountHandle {
    fn new(watches: &Arc<SubscriptionCounts>, source: &Arc<dyn Source>, uri: &str) -> Self {
        let key = (Arc::as_ptr(source).addr(), uri.to_owned());
        let count = Arc::clone(watches.all().entry(key.clone()).or_default());
        Self { counts: Arc::clone(watches), source: Arc::clone(source), key, count }
    }

    async fn unsubscribe(self) -> Result<(), ToolError> {
        let mut subscribers = self.count.lock().await;
        *subscribers = subscribers.saturating_sub(1);
        if *subscribers == 0 { self.source.watch(&self.key.1, false).await } else { Ok(()) }
    }
}

impl Drop for CountHandle {
    fn drop(&mut self) {
        let mut all = self.counts.all();
        // One reference is the table's, the other this handle's.
        let is_last = Arc::strong_count(&self.count) <= 2;
        if is_last && self.count.try_lock().is_ok_and(|subscribers| *subscribers == 0) {
            all.remove(&self.key);
        }
    }
}

/// One subscription of one client. Ends when dropped.
pub struct Subscription(Option<CountHandle>);

impl Subscription {
    /// Ends it and waits until the source has been notified.
    pub async fn end(mut self) -> Result<(), ToolError> {
        match self.0.take() {
            Some(interest) => interest.unsubscribe().await,
            None => Ok(()),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let (Some(interest), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(interest.unsubscribe());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::{JsonObject, Operation};
    use octo_toolkit::{BoxFuture, CallContext, ListingState, SourceState};
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::sync::watch;

    #[derive(Default)]
    struct RecordingSource {
        refuses: AtomicBool,
        watch_calls: Mutex<Vec<(String, bool)>>,
    }

    impl Source for RecordingSource {
        fn name(&self) -> &str {
            "diary"
        }

        fn is_native(&self) -> bool {
            true
        }

        fn listing(&self) -> watch::Receiver<ListingState> {
            watch::channel(ListingState { state: SourceState::Ready, listing: Arc::default(), version: 0 }).1
        }

        fn run<'a>(
            &'a self,
            _: Operation,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
            Box::pin(async { Ok(JsonObject::new()) })
        }

        fn watch<'a>(&'a self, uri: &'a str, on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                if on && self.refuses.load(Ordering::Relaxed) {
                    return Err(ToolError::invalid("no"));
                }
                self.watch_calls.lock().unwrap().push((uri.to_owned(), on));
                Ok(())
            })
        }
    }

    #[tokio::test]
    async fn a_source_hears_of_the_first_and_of_the_last() {
        let diary = Arc::new(RecordingSource::default());
        let source: Arc<dyn Source> = Arc::clone(&diary) as _;
        let watches = Arc::new(SubscriptionCounts::default());
        let (one, two) = tokio::join!(watches.subscribe(&source, "a:1"), watches.subscribe(&source, "a:1"));
        assert_eq!(*diary.watch_calls.lock().unwrap(), [("a:1".to_owned(), true)]);
        one.unwrap().end().await.unwrap();
        assert_eq!(diary.watch_calls.lock().unwrap().len(), 1, "the other one still wants it");
        drop(two.unwrap());
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(diary.watch_calls.lock().unwrap().last(), Some(&("a:1".to_owned(), false)));
        assert_eq!(watches.len(), 0);
    }

    #[tokio::test]
    async fn a_refused_subscription_leaves_nothing_behind() {
        let diary = Arc::new(RecordingSource::default());
        diary.refuses.store(true, Ordering::Relaxed);
        let source: Arc<dyn Source> = Arc::clone(&diary) as _;
        let watches = Arc::new(SubscriptionCounts::default());
        for number in 0..100 {
            assert!(watches.subscribe(&source, &format!("a:{number}")).await.is_err());
        }
        let (one, two) = tokio::join!(watches.subscribe(&source, "a"), watches.subscribe(&source, "a"));
        assert!(one.is_err() && two.is_err());
        // A subscription whose future was dropped is not counted either.
        drop(futures_util::FutureExt::now_or_never(watches.subscribe(&source, "b")));
        assert_eq!(watches.len(), 0);
        assert!(diary.watch_calls.lock().unwrap().is_empty());
    }
}

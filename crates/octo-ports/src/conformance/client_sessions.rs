use super::{Open, race};
use crate::sessions::{
    MAX_PART_EVENTS, SessionChange, SessionKey, StreamAppend, StreamEvent, StreamPart, StreamQuestion,
};
use crate::{Lease, Leases, Sessions, StoreError, StoreResult, Stores};
use octo_model::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn session(id: u128) -> SessionKey {
    SessionKey { tenant: "default".to_owned(), id }
}

fn sessions_of(stores: &Stores) -> StoreResult<Sessions> {
    stores.sessions.clone().ok_or_else(|| StoreError::internal("this backend has no sessions"))
}

async fn lease(leases: &Arc<dyn Leases>, name: &str) -> StoreResult<Lease> {
    leases.acquire(name, MINUTE).await?.ok_or_else(|| StoreError::internal("the lease is held"))
}

fn event(sequence: u64, is_droppable: bool) -> StreamEvent {
    // Also what no text column can store.
    StreamEvent { sequence, text: format!("event {sequence}\0").into_bytes(), is_droppable }
}

fn events(owner: &str, first: u64, count: u64) -> StreamAppend {
    StreamAppend {
        number: 7,
        owner: owner.to_owned(),
        request: "\"a\"".to_owned(),
        first,
        next: first + count,
        events: (first..first + count).map(|sequence| event(sequence, sequence % 2 == 1)).collect(),
        dropped_before: 0,
        question: None,
        is_finished: false,
    }
}

fn question(number: u64, call: Option<&str>) -> Option<StreamQuestion> {
    Some(StreamQuestion { number, call: call.map(str::to_owned) })
}

pub async fn changed_by_their_client(open: &Open) -> StoreResult<()> {
    let (one, two) = (sessions_of(&open())?, sessions_of(&open())?);
    let key = session(u128::MAX);
    assert_eq!(one.get(&key).await?, None);
    one.change(&key, SessionChange::LogLevel("info".to_owned())).await?;
    for uri in ["a", "b", "a"] {
        two.change(&key, SessionChange::Subscribe(uri.to_owned())).await?;
    }
    one.change(&key, SessionChange::Unsubscribe("b".to_owned())).await?;
    let record = two.get(&key).await?.unwrap_or_default();
    assert_eq!(record.log_level.as_deref(), Some("info"));
    assert_eq!((record.subscriptions, record.has_ended), (vec!["a".to_owned()], false));
    let other = SessionKey { tenant: "other".to_owned(), ..key.clone() };
    assert_eq!(two.get(&other).await?, None, "another tenant");
    assert_eq!(two.get(&session(1)).await?, None, "another session");
    two.change(&key, SessionChange::End).await?;
    assert!(one.get(&key).await?.is_some_and(|record| record.has_ended));
    Ok(())
}

pub async fn streams_are_read_elsewhere(open: &Open) -> StoreResult<()> {
    let stores = open();
    let (one, two) = (sessions_of(&stores)?, sessions_of(&open())?);
    let owner = lease(&stores.leases, "front/a").await?;
    let key = session(1);
    assert_eq!(two.read(&key, 7, 0).await?, None);
    assert!(one.append(&key, events("front/a", 0, 3)).await?);
    assert!(one.append(&key, events("front/a", 0, 3)).await?, "as after a lost answer of the database");
    let all = StreamPart { events: events("", 0, 3).events, ..StreamPart::default() };
    assert_eq!(two.read(&key, 7, 0).await?.as_ref(), Some(&all));
    let rest = two.read(&key, 7, 2).await?.unwrap_or_default();
    assert_eq!(rest.events, [event(2, false)]);
    assert!(!one.append(&key, events("front/a", 9, 1)).await?, "a gap");
    assert!(!two.append(&key, events("front/b", 3, 1)).await?, "not its stream");
    let elsewhere = [(SessionKey { tenant: "other".to_owned(), ..key.clone() }, 7), (session(2), 7)];
    for (key, number) in elsewhere.into_iter().chain([(key.clone(), 8)]) {
        assert_eq!(two.read(&key, number, 0).await?, None);
    }
    let many = MAX_PART_EVENTS as u64;
    assert!(one.append(&key, events("front/a", 3, many)).await?);
    let part = two.read(&key, 7, 0).await?.unwrap_or_default();
    assert!(part.has_more && part.events.len() == MAX_PART_EVENTS && !part.is_finished);
    let last = StreamAppend { dropped_before: 3 + many, is_finished: true, ..events("front/a", 3 + many, 1) };
    assert!(one.append(&key, last).await?);
    let part = two.read(&key, 7, 4 + many - 5).await?.unwrap_or_default();
    assert!(
        part.is_finished && part.events.iter().all(|event| !event.is_droppable || event.sequence >= 3 + many)
    );
    stores.leases.release(&owner).await?;
    let part = two.read(&key, 7, 0).await?.unwrap_or_default();
    assert!(part.is_finished && !part.is_orphaned, "what is finished is nobody's orphan");
    assert_eq!(two.adopt(&key, 7, "front/b").await?, None);
    Ok(())
}

pub async fn orphans_are_adopted_once(open: &Open) -> StoreResult<()> {
    let stores = open();
    let (one, two) = (sessions_of(&stores)?, sessions_of(&open())?);
    let first = lease(&stores.leases, "front/a").await?;
    lease(&stores.leases, "front/b").await?;
    lease(&stores.leases, "front/c").await?;
    let key = session(1);
    assert!(one.append(&key, StreamAppend { question: question(5, None), ..events("front/a", 0, 1) }).await?);
    assert_eq!(two.adopt(&key, 7, "front/b").await?, None, "its owner is alive");
    assert_eq!(two.take_question(&key, 5, "front/b").await?, None);
    stores.leases.release(&first).await?;
    assert!(two.read(&key, 7, 0).await?.is_some_and(|part| part.is_orphaned));
    assert_eq!(two.take_question(&key, 5, "front/b").await?, None, "nothing to continue");
    let adopters = ["front/b", "front/c"].map(|owner| -> BoxFuture<'static, _> {
        let (store, key) = (Arc::clone(&two), key.clone());
        Box::pin(async move { (owner, store.adopt(&key, 7, owner).await) })
    });
    let mut adopted = Vec::new();
    for (owner, stream) in race(adopters).await {
        adopted.extend(stream?.map(|stream| (owner, stream)));
    }
    assert_eq!(adopted.len(), 1, "{adopted:?}");
    let Some((owner, stream)) = adopted.pop() else { return Ok(()) };
    assert_eq!((stream.number, stream.request.as_str(), stream.next, stream.call), (7, "\"a\"", 1, None));
    assert!(!one.append(&key, events("front/a", 1, 1)).await?, "its former owner is fenced off");
    assert!(two.append(&key, StreamAppend { is_finished: true, ..events(owner, 1, 1) }).await?);
    Ok(())
}

pub async fn questions_are_taken_once(open: &Open) -> StoreResult<()> {
    let stores = open();
    let (one, two) = (sessions_of(&stores)?, sessions_of(&open())?);
    let first = lease(&stores.leases, "front/a").await?;
    lease(&stores.leases, "front/b").await?;
    let key = session(1);
    let ask = |number, first| StreamAppend {
        question: question(number, Some("call")),
        ..events("front/a", first, 1)
    };
    assert!(one.append(&key, ask(5, 0)).await?);
    assert!(one.take_question(&key, 5, "front/a").await?.is_some(), "by its owner");
    assert_eq!(one.take_question(&key, 5, "front/a").await?, None);
    assert!(one.append(&key, ask(5, 0)).await?, "as after a lost answer of the database");
    assert_eq!(one.take_question(&key, 5, "front/a").await?, None, "it is not asked again");
    assert!(two.has_open_stream(&key).await? && !two.has_open_stream(&session(2)).await?);
    assert!(one.append(&key, ask(6, 1)).await?);
    assert_eq!(two.take_question(&key, 6, "front/b").await?, None, "its owner is alive");
    assert!(two.is_asked(&key, 6, "front/a").await? && !two.is_asked(&key, 6, "front/b").await?);
    stores.leases.release(&first).await?;
    assert!(two.read(&key, 7, 0).await?.is_some_and(|part| !part.is_orphaned), "it waits for the answer");
    assert_eq!(two.adopt(&key, 7, "front/b").await?, None);
    assert_eq!(two.take_question(&session(2), 6, "front/b").await?, None);
    let takers = [(one, "front/a"), (two, "front/b")].map(|(store, owner)| -> BoxFuture<'static, _> {
        let key = key.clone();
        Box::pin(async move { store.take_question(&key, 6, owner).await })
    });
    let mut taken = Vec::new();
    for stream in race(takers).await {
        taken.extend(stream?);
    }
    assert!(
        matches!(&*taken, [stream] if stream.next == 2 && stream.call.as_deref() == Some("call")),
        "{taken:?}"
    );
    Ok(())
}

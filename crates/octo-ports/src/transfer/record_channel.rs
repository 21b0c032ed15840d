//! The way from the source to the target. It has a limited length, so that the slower side sets the pace.

use super::{TransferCounts, TransferError, TransferRecord};
use tokio::sync::mpsc;

/// Maximum records on the way.
const MAX_RECORDS: usize = 64;

/// A record, or the end of all records.
type Message = Option<TransferRecord>;

pub struct RecordSender(mpsc::Sender<Message>);

impl RecordSender {
    pub async fn send(&self, record: TransferRecord) -> Result<(), TransferError> {
        self.0.send(Some(record)).await.map_err(|_| TransferError::Interrupted)
    }

    /// Blocks.
    pub fn blocking_send(&self, record: TransferRecord) -> Result<(), TransferError> {
        self.0.blocking_send(Some(record)).map_err(|_| TransferError::Interrupted)
    }

    /// Without it, the target keeps nothing.
    pub async fn finish(self) -> Result<(), TransferError> {
        self.0.send(None).await.map_err(|_| TransferError::Interrupted)
    }
}

pub struct RecordReceiver {
    receiver: mpsc::Receiver<Message>,
    counts: TransferCounts,
}

impl RecordReceiver {
    /// The next record; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<TransferRecord>, TransferError> {
        let message = self.receiver.recv().await;
        self.count(message)
    }

    /// Blocks.
    pub fn blocking_next(&mut self) -> Result<Option<TransferRecord>, TransferError> {
        let message = self.receiver.blocking_recv();
        self.count(message)
    }

    fn count(&mut self, message: Option<Message>) -> Result<Option<TransferRecord>, TransferError> {
        match message {
            Some(Some(record)) => {
                self.counts.add(&record);
                Ok(Some(record))
            }
            Some(None) => Ok(None),
            None => Err(TransferError::Interrupted),
        }
    }

    /// Of all records that were received.
    pub fn into_counts(self) -> TransferCounts {
        self.counts
    }
}

/// Runs an export and an import. If one of them fails, the other one is interrupted.
pub async fn transfer<E, I, T>(
    export: impl FnOnce(RecordSender) -> E,
    import: impl FnOnce(RecordReceiver) -> I,
) -> Result<T, TransferError>
where
    E: Future<Output = Result<(), TransferError>>,
    I: Future<Output = Result<T, TransferError>>,
{
    let (sender, receiver) = mpsc::channel(MAX_RECORDS);
    let receiver = RecordReceiver { receiver, counts: TransferCounts::default() };
    let (exported, imported) = tokio::join!(export(RecordSender(sender)), import(receiver));
    match exported {
        Ok(()) | Err(TransferError::Interrupted) => imported,
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Port, StoreError};

    async fn receive_all(mut from: RecordReceiver) -> Result<usize, TransferError> {
        let mut count = 0;
        while from.next().await?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    #[tokio::test]
    async fn the_side_that_failed_says_why() {
        let many = |to: RecordSender| async move {
            for token in 0..1_000 {
                to.send(TransferRecord::LeaseToken(token)).await?;
            }
            to.finish().await
        };
        assert_eq!(transfer(many, receive_all).await, Ok(1_000));
        let failure = TransferError::Store(StoreError::Busy(Port::Runs));
        let failing = |_| std::future::ready(Err(failure.clone()));
        assert_eq!(transfer(failing, receive_all).await, Err(failure.clone()));
        let refusing = |_| std::future::ready(Err::<usize, _>(failure.clone()));
        assert_eq!(transfer(many, refusing).await, Err(failure.clone()));
        // Dropped without an end.
        let silent = async |to: RecordSender| {
            drop(to);
            Ok(())
        };
        assert_eq!(transfer(silent, receive_all).await, Err(TransferError::Interrupted));
    }
}

//! Sending messages to the server, independent of the transport.

use octo_wire::Message;

/// Sends messages that have no response, without waiting.
pub(crate) trait PostMessage: Clone + Send + 'static {
    fn post(&self, message: Message);
}

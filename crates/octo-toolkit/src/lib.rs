//! All that a tool's author imports, and the one trait that everything callable implements.

mod bench;
mod body_selection;
pub mod budget;
mod call_context;
mod example;
pub mod hidden;
pub mod paper;
mod peer;
mod picture;
mod schema;
pub mod secrets;
mod source;
mod tool;
mod toolbox;

pub use bench::{Bench, PointerJq};
pub use body_selection::{BodySelection, select};
pub use budget::ReplyBudget;
pub use call_context::{CallContext, CallOrigin};
pub use example::Example;
pub use octo_grants::{
    Apis, Chromium, Clock, Capabilities, Exec, Fs, Grant, JqRunner, Keep, Llm, Memory, Net, Pdf, RootedPath, Render,
    Rendered, Renders, SshKey, WorkPath, Workspace, apis, chromium, exec, fs, jq, memory, net, pdf,
};
pub use octo_model::{Caller, Effect, Json, Kind, JsonObject, Principal, ToolError, json_len};
pub use peer::{NoPeer, AskError, Peer};
pub use picture::Picture;
pub use schema::schema_of;
pub use source::{Audience, Definition, Event, ListingState, Listing, Source, SourceState};
pub use tool::Tool;
pub use toolbox::{Answer, ErasedTool, Toolbox};

/// A future that can be kept in a box: the shape of every asynchronous method behind `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

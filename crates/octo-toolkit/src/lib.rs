//! All that a tool's author imports, and the one trait that everything callable implements.

mod bench;
mod body_selection;
pub mod budget;
mod cx;
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
pub use cx::{Cx, Origin};
pub use example::Example;
pub use octo_grants::{
    Apis, Chromium, Clock, Doors, Exec, Fs, Grant, JqRunner, Keep, Llm, Memory, Net, Pdf, Place, Render,
    Rendered, Renders, SshKey, WorkPath, Workspace, apis, chromium, exec, fs, jq, memory, net, pdf,
};
pub use octo_model::{Caller, Effect, Json, Kind, Members, Principal, ToolError, json_len};
pub use peer::{Alone, Ask, Peer};
pub use picture::Picture;
pub use schema::schema_of;
pub use source::{Audience, Definition, Event, Listing, Lists, Source, State};
pub use tool::Tool;
pub use toolbox::{Answer, Native, Toolbox};

/// A future that can be kept in a box: the shape of every asynchronous method behind `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

//! All that a tool's author imports, and the one trait that everything callable implements.

mod tool_fixture;
mod body_selection;
pub mod reply_budget;
mod call_context;
mod example;
pub mod hidden_text;
pub mod pdf_text;
mod peer;
mod tool_image;
mod tool_schema;
pub mod secrets;
mod source;
mod tool;
mod toolbox;

pub use tool_fixture::{ToolFixture, PointerJq};
pub use body_selection::{BodySelection, select};
pub use reply_budget::ReplyBudget;
pub use call_context::{CallContext, CallOrigin};
pub use example::Example;
pub use octo_grants::{
    Apis, Chromium, Clock, Capabilities, Exec, Fs, Grant, JqRunner, Keep, Llm, Memory, Net, Pdf, RootedPath, Render,
    RenderedPage, PageRenderer, SshKey, WorkPath, Workspace, apis, chromium, exec, fs, jq, memory, net, pdf,
};
pub use octo_model::{Caller, Effect, Json, Kind, JsonObject, Principal, ToolError, json_len};
pub use peer::{NoPeer, AskError, Peer};
pub use tool_image::Image;
pub use tool_schema::schema_of;
pub use source::{Audience, Definition, Event, ListingState, Listing, Source, SourceState};
pub use tool::Tool;
pub use toolbox::{ToolOutput, ErasedTool, Toolbox};

/// A future that can be kept in a box: the shape of every asynchronous method behind `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

//! Calls to record.

use crate::{CallEnded, CallStarted, Outcome};
use octo_model::{CallId, Caller, Frontend, Method};

pub fn opening(name: &str) -> CallStarted {
    CallStarted {
        id: CallId::fresh(),
        principal: Caller::named("ada").principal,
        frontend: Frontend::Cli,
        profile: "default".to_owned(),
        method: Method::CallTool.into(),
        name: name.to_owned(),
        arguments: "5e".repeat(32),
        shown: None,
        trace: None,
    }
}

pub fn closing(id: CallId) -> CallEnded {
    CallEnded {
        id,
        target: Some("time/time_now".to_owned()),
        rule: None,
        outcome: Outcome::Ok,
        micros: 1500,
        bytes: 42,
        result_handle: None,
        arguments: None,
    }
}

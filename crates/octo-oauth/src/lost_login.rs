//! Logins that can no longer be used.

use crate::login_registry::LoginRegistry;
use crate::login_spec::Auth;
use octo_model::{Caller, ToolError};
use octo_ports::Owner;

/// A login that has to be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostLogin {
    pub server: String,
    pub reason: String,
    owner: Owner,
}

impl LostLogin {
    /// Whether this caller used it.
    pub fn concerns(&self, caller: &Caller) -> bool {
        self.owner == Owner::Shared || self.owner == Owner::from(caller)
    }

    /// Subject of the owner, unless shared or that of the local person.
    pub fn caller(&self) -> Option<&str> {
        match &self.owner {
            Owner::Person(principal) if *principal != Caller::local().principal => Some(&principal.subject),
            Owner::Person(_) | Owner::Shared => None,
        }
    }
}

/// All lost logins of the known servers, by server.
pub(crate) async fn lost_logins(registry: &LoginRegistry) -> Result<Vec<LostLogin>, ToolError> {
    let mut lost = Vec::new();
    if !registry.has_logins() {
        return Ok(lost);
    }
    for slot in registry.store.slots().await? {
        let is_login = registry.spec(&slot.server).is_ok_and(|spec| matches!(spec.auth, Auth::OAuth(_)));
        if !is_login {
            continue;
        }
        let Some(held) = registry.load(&slot).await? else { continue };
        if let Some(why) = held.tokens.loss_reason(registry.now()) {
            lost.push(LostLogin { server: slot.server, reason: why, owner: slot.owner });
        }
    }
    lost.sort_by(|a, b| (&a.server, a.owner.parts()).cmp(&(&b.server, b.owner.parts())));
    Ok(lost)
}

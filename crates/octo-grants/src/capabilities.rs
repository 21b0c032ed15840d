//! Capabilities (grants) of this hub, by type.

use octo_model::{Caller, ToolError};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// Capabilities that the binary has opened. Any other is refused.
#[derive(Clone, Default)]
pub struct Capabilities(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Capabilities {
    #[must_use]
    pub fn with<G: Clone + Send + Sync + 'static>(mut self, grant: G) -> Self {
        self.0.insert(TypeId::of::<G>(), Arc::new(grant));
        self
    }

    /// Returns a clone of the handle, or an error if the hub lacks the capability.
    pub fn open<G: Clone + Send + Sync + 'static>(&self) -> Result<G, ToolError> {
        self.0.get(&TypeId::of::<G>()).and_then(|grant| grant.downcast_ref::<G>()).cloned().ok_or_else(|| {
            ToolError::denied("This tool needs a capability that is not configured.")
                .hint("Ask the operator to configure it, or use another tool.")
                .detail(std::any::type_name::<G>())
        })
    }
}

/// What a tool may declare as its grants: none, one, or several.
pub trait Grant: Send + Sized + 'static {
    fn open(doors: &Capabilities) -> Result<Self, ToolError>;

    /// Returns the grant bound to one caller, for grants with state per caller.
    #[must_use]
    fn for_caller(self, _: &Caller) -> Self {
        self
    }

    /// Returns the grant bound to one profile, for grants that a profile restricts.
    #[must_use]
    fn for_profile(self, _: &str) -> Self {
        self
    }
}

impl Grant for () {
    fn open(_: &Capabilities) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl Grant for crate::Clock {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl Grant for octo_ports::ResultWriter {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl Grant for octo_ports::Apis {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl Grant for octo_ports::Memory {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl<A: Grant, B: Grant, C: Grant> Grant for (A, B, C) {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        Ok((A::open(doors)?, B::open(doors)?, C::open(doors)?))
    }

    fn for_caller(self, caller: &Caller) -> Self {
        (self.0.for_caller(caller), self.1.for_caller(caller), self.2.for_caller(caller))
    }

    fn for_profile(self, profile: &str) -> Self {
        (self.0.for_profile(profile), self.1.for_profile(profile), self.2.for_profile(profile))
    }
}

impl<A: Grant, B: Grant> Grant for (A, B) {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        Ok((A::open(doors)?, B::open(doors)?))
    }

    fn for_caller(self, caller: &Caller) -> Self {
        (self.0.for_caller(caller), self.1.for_caller(caller))
    }

    fn for_profile(self, profile: &str) -> Self {
        (self.0.for_profile(profile), self.1.for_profile(profile))
    }
}

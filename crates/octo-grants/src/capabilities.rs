//! The grants that this hub can hand out, by type.

use octo_model::{Caller, ToolError};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// What the binary has opened. A grant that is not in here cannot be had.
#[derive(Clone, Default)]
pub struct Capabilities(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Capabilities {
    #[must_use]
    pub fn with<G: Clone + Send + Sync + 'static>(mut self, grant: G) -> Self {
        self.0.insert(TypeId::of::<G>(), Arc::new(grant));
        self
    }

    /// A copy of the handle, or a refusal.
    pub fn open<G: Clone + Send + Sync + 'static>(&self) -> Result<G, ToolError> {
        self.0.get(&TypeId::of::<G>()).and_then(|grant| grant.downcast_ref::<G>()).cloned().ok_or_else(|| {
            ToolError::denied("This tool needs something that the hub was not given.")
                .hint("Ask the operator to configure it, or use another tool.")
                .detail(std::any::type_name::<G>())
        })
    }
}

/// What a tool may declare as its grants: nothing, one, or several.
pub trait Grant: Send + Sized + 'static {
    fn open(doors: &Capabilities) -> Result<Self, ToolError>;

    /// The same for the calls of one caller, for grants that keep something about who used them.
    #[must_use]
    fn for_caller(self, _: &Caller) -> Self {
        self
    }

    /// The same for calls at one profile, for grants that a profile narrows.
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

impl Grant for crate::Keep {
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

//! Pins of installed packages: a changed digest is held until a person accepts it, like a changed definition.

use octo_hub::trust::{ChangePolicy, TrustSettings};
use octo_model::{Json, Remedy, ToolError};
use octo_ports::{Pin, PinDelta, PinKind, PinWrite, Pins, Port, ServerIdentity, StoreError, StoreResult};
use serde_json::json;

/// Attempts to write while other processes write.
const MAX_ATTEMPTS: usize = 5;

/// The package of one server.
#[derive(Debug, Clone)]
pub struct PackagePin {
    pub server: String,
    pub package: String,
    pub digest: String,
}

impl PackagePin {
    /// Pins of packages have a name that no server can have, because a review of definitions replaces all pins of its
    /// server.
    pub fn identity_of(server: &str) -> ServerIdentity {
        let name = format!("package:{server}");
        ServerIdentity { identity: name.clone(), server: name, others: Vec::new() }
    }

    fn pin(&self) -> Pin {
        Pin {
            kind: PinKind::Package,
            key: String::new(),
            text: Json::from(json!({"package": self.package, "digest": self.digest})),
            hash: self.digest.clone(),
        }
    }
}

/// What is known about the package of a server.
enum PinState {
    Unchanged,
    New,
    Changed(Pin),
}

async fn pin_state(pins: &dyn Pins, identity: &ServerIdentity, pin: &Pin) -> StoreResult<PinState> {
    let known = pins.load(identity).await?.pins.into_iter().find(|known| known.kind == PinKind::Package);
    Ok(match known {
        None => PinState::New,
        Some(known) if known.hash == pin.hash => PinState::Unchanged,
        Some(known) => PinState::Changed(known),
    })
}

/// Pins the package if the server has none yet. A pin of another process is never replaced.
async fn first_pin(pins: &dyn Pins, identity: &ServerIdentity, pin: &Pin) -> StoreResult<PinState> {
    for _ in 0..MAX_ATTEMPTS {
        let state = pin_state(pins, identity, pin).await?;
        let delta = PinDelta { new_pins: vec![pin.clone()], ..PinDelta::default() };
        if !matches!(state, PinState::New)
            || matches!(pins.write(identity, delta).await?, PinWrite::Written(_))
        {
            return Ok(state);
        }
    }
    Err(StoreError::Conflict(Port::Pins))
}

/// Records that a person has accepted the package.
pub async fn approve_package(pins: &dyn Pins, package: &PackagePin) -> StoreResult<()> {
    let (identity, pin) = (PackagePin::identity_of(&package.server), package.pin());
    for _ in 0..MAX_ATTEMPTS {
        let delta = match pin_state(pins, &identity, &pin).await? {
            PinState::Unchanged => PinDelta::default(),
            PinState::New => PinDelta { new_pins: vec![pin.clone()], ..PinDelta::default() },
            PinState::Changed(old) => {
                PinDelta { replaced: vec![(pin.clone(), old.hash)], ..PinDelta::default() }
            }
        };
        if delta.is_empty() || matches!(pins.write(&identity, delta).await?, PinWrite::Written(_)) {
            return Ok(());
        }
    }
    Err(StoreError::Conflict(Port::Pins))
}

/// Refuses a package that was not accepted, and holds it for review. The first one of a server is accepted as it is.
pub async fn check_pin(pins: &dyn Pins, package: &PackagePin, trust: TrustSettings) -> Result<(), ToolError> {
    let (identity, pin) = (PackagePin::identity_of(&package.server), package.pin());
    let store_error = |error| {
        ToolError::unavailable("The pins of packages cannot be read.")
            .hint("Ask the operator to check the state directory.")
            .detail(error)
    };
    let old = match first_pin(pins, &identity, &pin).await.map_err(store_error)? {
        PinState::New => return Ok(()),
        PinState::Unchanged => {
            // The settings are back at the accepted package: another one is no longer offered.
            if !pins.pending(&identity.server).await.map_err(store_error)?.is_empty() {
                pins.write(&identity, PinDelta::default()).await.map_err(store_error)?;
            }
            return Ok(());
        }
        PinState::Changed(old) => old,
    };
    if trust.changes != ChangePolicy::Hold {
        tracing::warn!(target: "servers", server = package.server, package = package.package, "package changed");
        return approve_package(pins, package).await.map_err(store_error);
    }
    let delta = PinDelta { held: vec![pin], ..PinDelta::default() };
    pins.write(&identity, delta).await.map_err(store_error)?;
    let old: serde_json::Value = old.text.to().unwrap_or_default();
    let old = old.get("package").and_then(|package| package.as_str()).unwrap_or("another package").to_owned();
    let (server, new) = (&package.server, &package.package);
    let what = if old == *new {
        format!("The packages that {new} depends on have changed.")
    } else {
        format!("The package has changed from {old} to {new}.")
    };
    Err(ToolError::denied(format!("{server} is held. {what}"))
        .remedy(Remedy::ReviewDefinitions { server: server.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::Stores;

    fn package(version: &str) -> PackagePin {
        PackagePin {
            server: "tides".to_owned(),
            package: format!("npm:tides@{version}"),
            digest: format!("sha256:{version}"),
        }
    }

    #[tokio::test]
    async fn another_package_is_held_until_it_is_accepted() {
        let pins = Stores::in_memory().pins;
        let check = async |version: &str, changes| {
            let trust = TrustSettings { changes, ..TrustSettings::default() };
            check_pin(pins.as_ref(), &package(version), trust).await
        };
        assert!(check("1", ChangePolicy::Hold).await.is_ok(), "the first one");
        assert!(check("1", ChangePolicy::Hold).await.is_ok());
        let refused = check("2", ChangePolicy::Hold).await.unwrap_err();
        assert!(refused.message.contains("from npm:tides@1 to npm:tides@2"), "{refused}");
        let name = PackagePin::identity_of("tides").server;
        assert!(check("1", ChangePolicy::Hold).await.is_ok(), "the accepted one still starts");
        assert!(
            pins.pending(&name).await.unwrap().is_empty(),
            "and the other one cannot be accepted by mistake"
        );
        assert!(check("2", ChangePolicy::Hold).await.is_err());
        let held = pins.pending(&name).await.unwrap();
        assert_eq!(held.len(), 1);
        pins.accept(&name, vec![held[0].new.clone()]).await.unwrap();
        assert!(check("2", ChangePolicy::Hold).await.is_ok());
        approve_package(pins.as_ref(), &package("3")).await.unwrap();
        assert!(
            check("3", ChangePolicy::Hold).await.is_ok() && check("2", ChangePolicy::Hold).await.is_err()
        );
        assert!(
            check("4", ChangePolicy::Follow).await.is_ok() && check("3", ChangePolicy::Hold).await.is_err()
        );
    }
}

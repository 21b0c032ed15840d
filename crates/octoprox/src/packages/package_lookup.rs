//! Finds the program of a server's package at each start.

use super::installed_package::InstalledPackage;
use super::package_id::PackageId;
use super::package_manager::PackageError;
use super::pinned_package::{PackagePin, check_pin};
use crate::settings::Server;
use octo_hub::trust::TrustSettings;
use octo_model::{Remedy, ToolError};
use octo_ports::Pins;
use octo_upstream::{InstalledProgram, PackageLookup};
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct PackageStart {
    id: PackageId,
    server: String,
    /// Digest of its lock, if the server has one.
    digest: Option<String>,
    /// Name of the program, if the package has several.
    command: Option<String>,
    state: Option<PathBuf>,
    trust: TrustSettings,
    pins: Arc<dyn Pins>,
}

/// Returns the lookup for a server that is a package.
pub fn package_lookup(
    name: &str,
    server: &Server,
    state: Option<&Path>,
    pins: &Arc<dyn Pins>,
) -> Result<Option<PackageLookup>, ToolError> {
    let Some(package) = &server.package else { return Ok(None) };
    let start = Arc::new(PackageStart {
        id: PackageId::parse(package).map_err(ToolError::invalid)?,
        server: name.to_owned(),
        digest: server.digest.clone(),
        command: server.command.clone(),
        state: state.map(Path::to_owned),
        trust: server.trust.into(),
        pins: Arc::clone(pins),
    });
    Ok(Some(Arc::new(move || {
        let start = Arc::clone(&start);
        Box::pin(async move { start.find().await })
    })))
}

impl PackageStart {
    /// Finds the program, unless the package was not accepted or is not installed.
    async fn find(&self) -> Result<InstalledProgram, ToolError> {
        let not_installed = || {
            ToolError::unavailable(format!("{} is not installed.", self.id))
                .remedy(Remedy::InstallPackage { server: self.server.clone() })
        };
        let digest = self.digest.as_deref().ok_or_else(not_installed)?;
        let pin = PackagePin {
            server: self.server.clone(),
            package: self.id.to_string(),
            digest: digest.to_owned(),
        };
        check_pin(self.pins.as_ref(), &pin, self.trust).await?;
        let installed =
            self.state.as_deref().and_then(|state| InstalledPackage::find(state, digest, &pin.package));
        let installed = installed.ok_or_else(not_installed)?;
        let failed = |error: PackageError| ToolError::unavailable(error.message).hint(error.hint);
        let path = installed.program(&self.id, self.command.as_deref()).map_err(failed)?.to_owned();
        Ok(InstalledProgram { path, readable: installed.readable })
    }
}

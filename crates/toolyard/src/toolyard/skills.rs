//! Skills: where they are found, and how they are loaded.

use std::{path::PathBuf, sync::Arc};

use toolyard_core::{SkillDescriptionCache, StorageError};
use toolyard_tools::skill::{self, LoadedSkills, MemoryDescriptionCache, SkillFolder, TrustedSkills};

#[cfg(feature = "store")]
use {toolyard_core::Servers as _, toolyard_store::Store};

/// What skills may use of this machine. The library never reads the environment itself.
#[derive(Debug, Clone)]
pub struct SkillEnvironment {
    /// Folders that are searched for skills.
    pub skill_folders: Vec<SkillFolder>,
    /// The environment of skill programs.
    pub environment: Vec<(String, String)>,
    /// The working directory of skill programs.
    pub working_directory: PathBuf,
    /// The store of trust in skills and of what their programs say about themselves; `None` for that of the
    /// [`Toolyard`](crate::Toolyard). It must not come from the same place as the skills.
    #[cfg(feature = "store")]
    pub trust_store: Option<Store>,
}

/// Loads skills. Trust in their programs is read from the store; without one, no program is trusted.
pub(crate) async fn load_skills(
    skill_environment: &SkillEnvironment,
    #[cfg(feature = "store")] store: Option<&Store>,
) -> Result<LoadedSkills, StorageError> {
    #[cfg(feature = "store")]
    let (trust, descriptions) = match skill_environment.trust_store.as_ref().or(store) {
        Some(store) => {
            let decisions = store.trust_decisions(TrustedSkills::KIND).await?;
            (TrustedSkills::new(decisions), Arc::new(store.clone()) as _)
        }
        None => without_store(),
    };
    #[cfg(not(feature = "store"))]
    let (trust, descriptions) = without_store();
    let settings = skill::SkillSettings {
        folders: skill_environment.skill_folders.clone(),
        trust: &trust,
        descriptions,
        environment: skill_environment.environment.clone(),
        working_directory: skill_environment.working_directory.clone(),
    };
    Ok(skill::load(settings).await)
}

fn without_store() -> (TrustedSkills, Arc<dyn SkillDescriptionCache>) {
    (TrustedSkills::default(), Arc::new(MemoryDescriptionCache::default()))
}

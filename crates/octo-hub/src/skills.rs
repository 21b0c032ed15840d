//! Agent Skills: folders of instructions, each with a `SKILL.md`, that servers and the operator offer.

pub mod native_skills;
pub mod skill_entry;
pub mod skill_files;
pub mod skill_prompt;

//! Check: every crate takes its lints from the workspace, so that each lint applies everywhere.

use super::repository::Repository;
use super::{Finding, crates};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    // An unreadable manifest is a finding of `crates.rs`.
    let (members, _) = crates::members(repository);
    let lax = members.iter().filter(|member| {
        let lints = member
            .table
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        lints.and_then(toml::Value::as_bool) != Some(true)
    });
    let sentence = "The crate does not take the lints of the workspace; add `workspace = true` \
                    under `[lints]`.";
    lax.map(|member| Finding::new(&member.manifest, 1, sentence))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn a_crate_with_the_lints_of_the_workspace_passes() {
        MadeUp::sound().assert_none(check);
    }

    #[test]
    fn a_crate_with_no_lints_or_lints_of_its_own_is_found() {
        for rest in [
            "",
            "[lints]\nworkspace = false\n",
            "[lints.rust]\nmissing_docs = \"allow\"\n",
        ] {
            let made_up = MadeUp::sound();
            made_up.write(
                "kernel/Cargo.toml",
                &format!("[package]\nname = \"weald-kernel\"\n{rest}"),
            );
            made_up.assert_one(check, "kernel/Cargo.toml:1", "lints of the workspace");
        }
    }
}

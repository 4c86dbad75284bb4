//! The form of a version as the name of a folder.

/// Longer names would not fit into all file systems together with their suffixes.
const VERSION_BYTES_MAX: usize = 100;

/// Whether a version can be the name of a folder and an argument: letters, digits and `._+-`, beginning with a letter
/// or a digit. A registry could answer anything.
pub(crate) fn is_version_name(version: &str) -> bool {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"._+-".contains(&it);
    version.len() <= VERSION_BYTES_MAX
        && version.bytes().next().is_some_and(|it| it.is_ascii_alphanumeric())
        && version.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_cannot_leave_its_folder_or_become_an_option() {
        for good in ["1.2.3", "0.61.0-nightly.20261101", "2.1.312+0.99.0", "latest", "3.0.2.post1"]
        {
            assert!(is_version_name(good), "{good}");
        }
        for bad in
            ["", "..", "../1", "1/../../x", "-g", ".hidden", "1 2", "1;rm", ">=1", "^1", "1!2"]
        {
            assert!(!is_version_name(bad), "{bad}");
        }
        assert!(!is_version_name(&"1".repeat(101)));
    }
}

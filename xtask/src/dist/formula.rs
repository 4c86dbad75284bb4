//! The Homebrew formula, with the checksums of the archives that a release has.

use super::VERSION;
use std::fmt::Write as _;

const SYSTEMS: [(&str, &str); 2] = [("darwin", "on_macos"), ("linux", "on_linux")];
const PROCESSORS: [(&str, &str); 2] = [("aarch64", "on_arm"), ("x86_64", "on_intel")];

/// `checksums` has the lines of `sha256sum`.
pub(super) fn fill_template(template: &str, releases: &str, checksums: &str) -> String {
    let mut archives = String::new();
    for (system, system_block) in SYSTEMS {
        let mut blocks = String::new();
        for (processor, block) in PROCESSORS {
            let name = format!("jackfield-{system}-{processor}.tar.gz");
            if let Some(sum) = find_checksum(checksums, &name) {
                let _ = write!(
                    blocks,
                    "    {block} do\n      url \"{releases}/download/v{VERSION}/{name}\"\n      \
                     sha256 \"{sum}\"\n    end\n"
                );
            }
        }
        if !blocks.is_empty() {
            let _ = write!(archives, "  {system_block} do\n{blocks}  end\n\n");
        }
    }
    let text = template.replace("@ARCHIVES@\n", &archives).replace("@RELEASES@", releases);
    let (_comment, class) = text.split_once('\n').unwrap_or_default();
    class.replace("@VERSION@", VERSION)
}

fn find_checksum<'a>(checksums: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = checksums.lines().filter_map(|it| it.split_once("  "));
    lines.find(|(_, file)| *file == name).map(|(sum, _)| sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formula_has_the_archives_that_exist() {
        let template = "# a comment\nversion \"@VERSION@\"\n\n@ARCHIVES@\nend\n";
        let checksums = "ab12  jackfield-linux-x86_64.tar.gz\ncd34  jackfield_0.1.0_amd64.deb\n";
        let formula = fill_template(template, "https://example.org/r", checksums);
        let expected = format!(
            "version \"{VERSION}\"\n\n  on_linux do\n    on_intel do\n      \
             url \"https://example.org/r/download/v{VERSION}/jackfield-linux-x86_64.tar.gz\"\n      \
             sha256 \"ab12\"\n    end\n  end\n\nend\n"
        );
        assert_eq!(formula, expected);
    }
}

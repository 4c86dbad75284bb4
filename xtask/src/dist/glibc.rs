//! Checks that a program for Linux runs with an old C library: that it needs no symbol of a newer one.

use super::output;
use anyhow::{Result, ensure};
use std::{path::Path, process::Command};

/// The oldest C library that a program for Linux runs with.
pub(super) const GLIBC_VERSION: &str = "2.17";

/// Fails if the program needs a symbol that [`GLIBC_VERSION`] lacks.
pub(super) fn check_symbols(program: &Path) -> Result<()> {
    let table = output(Command::new("objdump").arg("--dynamic-syms").arg(program))?;
    check_table(&table)
}

fn check_table(table: &str) -> Result<()> {
    let needed: Vec<(Vec<u32>, &str)> = table.lines().filter_map(parse_symbol).collect();
    ensure!(!needed.is_empty(), "`objdump` found no symbol of glibc, so nothing can be checked");
    let limit = parse_version(GLIBC_VERSION);
    let newer: Vec<&str> =
        needed.iter().filter(|it| limit < it.0).map(|it| it.1).take(10).collect();
    ensure!(
        newer.is_empty(),
        "the program needs a glibc newer than {GLIBC_VERSION}:\n{}",
        newer.join("\n")
    );
    let newest = needed.iter().map(|it| &it.0).max().expect("the list is not empty");
    let newest: Vec<String> = newest.iter().map(u32::to_string).collect();
    println!("dist: {} symbols of glibc, the newest of {}", needed.len(), newest.join("."));
    Ok(())
}

/// The version in a line of `objdump`, and the line: `… DF *UND* 0000000000000000 (GLIBC_2.2.5) read`. `None` for symbols
/// of the program itself and of other libraries.
fn parse_symbol(line: &str) -> Option<(Vec<u32>, &str)> {
    let rest = line.split_once("GLIBC_")?.1;
    let end = rest.find([')', ' ']).unwrap_or(rest.len());
    line.contains("*UND*").then(|| (parse_version(&rest[..end]), line))
}

/// `PRIVATE` and other names that are no version are newer than every version: no program may use them.
fn parse_version(version: &str) -> Vec<u32> {
    version.split('.').map(|it| it.parse().unwrap_or(u32::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "\
target/release/jackfield:     file format elf64-x86-64

DYNAMIC SYMBOL TABLE:
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) read
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.17) clock_gettime
0000000000000000  w   D  *UND*\t0000000000000000  Base        __cxa_thread_atexit_impl
0000000000000000      DF *UND*\t0000000000000000 (GCC_4.2.0)  _Unwind_Resume
";

    #[test]
    fn symbols_of_the_oldest_library_are_accepted() {
        check_table(OLD).unwrap();
    }

    #[test]
    fn newer_symbols_are_refused_by_name_also_with_more_digits() {
        for version in ["2.18", "2.17.1", "2.34", "3.0", "PRIVATE"] {
            let line = format!("0000  DF *UND*\t0000 (GLIBC_{version}) some_call");
            let refused = check_table(&format!("{OLD}{line}\n")).unwrap_err().to_string();
            assert!(refused.contains(&format!("(GLIBC_{version}) some_call")), "{refused}");
        }
    }

    #[test]
    fn table_without_symbols_is_no_proof() {
        assert!(check_table("objdump: not a dynamic object\n").is_err());
    }
}

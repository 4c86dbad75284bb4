//! The files of the console, written by `scripts/build-console.sh --write`.

use super::ConsoleAsset;

pub(super) static ASSETS: &[ConsoleAsset] = &[ConsoleAsset {
    path: "index.html",
    content_type: "text/html; charset=utf-8",
    is_immutable: false,
    gzip: include_bytes!("../../console/index.html.gz"),
}];

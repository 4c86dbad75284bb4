//! A web server on loopback for the files of one folder, as a mirror of downloads has it.

use crate::loopback::Loopback;
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::{Component, Path, PathBuf},
};

/// Serves `GET` until it is dropped.
#[derive(Debug)]
pub struct FileServer {
    loopback: Loopback,
}

impl FileServer {
    pub fn start(folder: &Path) -> FileServer {
        let folder = folder.to_path_buf();
        let serve = move |stream| drop(answer(&folder, stream));
        FileServer { loopback: Loopback::start(0, serve).expect("a free port exists") }
    }

    /// The address of the folder.
    pub fn url(&self) -> String {
        format!("http://{}", self.loopback.addr)
    }
}

/// Answers one request and closes the connection.
fn answer(folder: &Path, mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let content = find_file(folder, &request).and_then(|it| fs::read(it).ok());
    let status = if content.is_some() { "200 OK" } else { "404 Not Found" };
    let content = content.unwrap_or_default();
    let length = content.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&content)
}

/// The file of a request line, if it names one below the folder.
fn find_file(folder: &Path, request: &str) -> Option<PathBuf> {
    let path = request.strip_prefix("GET /")?.split(' ').next()?;
    let is_below = Path::new(path).components().all(|it| matches!(it, Component::Normal(_)));
    is_below.then(|| folder.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_the_folder_are_found() {
        let find = |request| find_file(Path::new("/files"), request);
        assert_eq!(find("GET /a/b.tgz HTTP/1.1"), Some(PathBuf::from("/files/a/b.tgz")));
        for request in ["GET /../x HTTP/1.1", "GET //etc/x HTTP/1.1", "POST /x HTTP/1.1", ""] {
            assert_eq!(find(request), None, "{request}");
        }
    }
}

//! What attempts are made on outside of the sandbox: a process, servers, shared memory and an open file.
#![expect(unsafe_code, reason = "shared memory has no safe form")]

use super::{WAIT_ARGUMENT, attempt_error::check};
use crate::os::{PROBE_SUBCOMMAND, linux::descriptors};
use crate::probes::{OutsideTargets, SECRET_VARIABLE};
use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram, UnixListener},
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// A process namespace numbers its processes from 1. A process with a higher number than these is not mistaken for
/// one of them.
const PID_MIN: u32 = 200;
/// How often the thread of the UDP server looks whether it has to end.
const SERVER_PAUSE: Duration = Duration::from_millis(50);

/// Everything ends with this value.
pub struct OutsideFixture {
    pub targets: OutsideTargets,
    _process: WaitingProcess,
    _memory: SharedSegment,
    _unix: UnixListener,
    _abstract: UnixListener,
    _datagram: UnixDatagram,
    _tcp: TcpListener,
    _udp: AnsweringServer,
    /// Programs that this process starts get its descriptor.
    _inherited: File,
}

impl OutsideFixture {
    /// `program` has the subcommand of the probes. `folder` stands for Jackfield's own and gets the sockets; its file
    /// `secret_file` is opened without being closed in programs that are started.
    pub fn start(
        program: &Path,
        folder: &Path,
        secret_file: &Path,
        secret: &str,
    ) -> io::Result<OutsideFixture> {
        let process = WaitingProcess::start(program, secret)?;
        let memory = SharedSegment::create(secret)?;
        let (unix_socket, datagram_socket) = (folder.join("hub.sock"), folder.join("log.sock"));
        let unix = UnixListener::bind(&unix_socket)?;
        let datagram = UnixDatagram::bind(&datagram_socket)?;
        let abstract_socket = format!("jackfield-check-{secret}");
        let abstract_listener =
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_socket)?)?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let udp = AnsweringServer::start()?;
        let inherited = File::open(secret_file)?;
        descriptors::keep_on_exec(&inherited)?;
        let targets = OutsideTargets {
            process: process.0.id().cast_signed(),
            process_memory: find_memory(process.0.id())?,
            shared_memory: memory.0,
            unix_socket,
            datagram_socket,
            abstract_socket,
            tcp_server: tcp.local_addr()?,
            udp_server: udp.socket.local_addr()?,
        };
        Ok(OutsideFixture {
            targets,
            _process: process,
            _memory: memory,
            _unix: unix,
            _abstract: abstract_listener,
            _datagram: datagram,
            _tcp: tcp,
            _udp: udp,
            _inherited: inherited,
        })
    }
}

/// A process with the secret in its environment. It also ends if this process is killed, because its input ends.
struct WaitingProcess(Child);

impl WaitingProcess {
    fn start(program: &Path, secret: &str) -> io::Result<WaitingProcess> {
        loop {
            let mut command = Command::new(program);
            command.args([PROBE_SUBCOMMAND, WAIT_ARGUMENT]).env(SECRET_VARIABLE, secret);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let process = WaitingProcess(command.spawn()?);
            if PID_MIN < process.0.id() {
                return Ok(process);
            }
        }
    }
}

impl Drop for WaitingProcess {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// The start of the first memory area of a process.
fn find_memory(pid: u32) -> io::Result<u64> {
    let areas = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let start = areas.split('-').next().and_then(|it| u64::from_str_radix(it, 16).ok());
    start.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A segment of shared memory with the secret.
struct SharedSegment(i32);

impl SharedSegment {
    fn create(secret: &str) -> io::Result<SharedSegment> {
        // SAFETY: the kernel chooses the address, and the secret is shorter than a page.
        unsafe {
            let segment = check(libc::shmget(libc::IPC_PRIVATE, 4096, 0o600))?;
            let segment = SharedSegment(i32::try_from(segment).map_err(io::Error::other)?);
            let memory = libc::shmat(segment.0, std::ptr::null(), 0);
            if memory.addr() == usize::MAX {
                return Err(io::Error::last_os_error());
            }
            memory.cast::<u8>().copy_from_nonoverlapping(secret.as_ptr(), secret.len().min(4096));
            check(libc::shmdt(memory))?;
            Ok(segment)
        }
    }
}

impl Drop for SharedSegment {
    fn drop(&mut self) {
        // SAFETY: the command needs no structure.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// A UDP server that sends each datagram back.
struct AnsweringServer {
    socket: Arc<UdpSocket>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AnsweringServer {
    fn start() -> io::Result<AnsweringServer> {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
        socket.set_read_timeout(Some(SERVER_PAUSE))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (server, must_end) = (socket.clone(), is_over.clone());
        let serve = move || {
            let mut bytes = [0; 64];
            while !must_end.load(Ordering::Relaxed) {
                if let Ok((length, client)) = server.recv_from(&mut bytes) {
                    let _gone = server.send_to(&bytes[..length], client);
                }
            }
        };
        let thread = std::thread::Builder::new().name("udp-server".to_owned()).spawn(serve)?;
        Ok(AnsweringServer { socket, is_over, thread: Some(thread) })
    }
}

impl Drop for AnsweringServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

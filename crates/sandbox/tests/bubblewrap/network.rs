//! Connections.

use crate::fixture::{SandboxFixture, stdout};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    os::unix::net::UnixListener,
    thread,
};

#[test]
fn machine_is_not_reachable_over_the_network() {
    let fixture = SandboxFixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("if (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>&1; then echo connected; fi");
    let interfaces = "tail -n +3 /proc/net/dev | cut -d: -f1";
    let permitted = fixture.command(&fixture.plan("network = \"all\""), &connect).output().unwrap();
    assert_eq!(stdout(&permitted), "connected");
    let output = fixture.run(&format!("{connect}\n{interfaces}"));
    assert!(!stdout(&output).contains("connected"), "{}", stdout(&output));
    assert_eq!(stdout(&output).lines().last().unwrap().trim(), "lo");
}

#[test]
fn connections_are_forwarded_to_the_proxy() {
    let fixture = SandboxFixture::new();
    let listener = UnixListener::bind(fixture.facts.proxy_socket.as_ref().unwrap()).unwrap();
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            (&stream).write_all(line.to_uppercase().as_bytes()).unwrap();
            let end = (&stream).read(&mut [0]).unwrap();
            assert_eq!(end, 0, "the end of the connection is forwarded");
        }
    });
    let script = "port=${HTTP_PROXY##*:}\n\
        for word in one two; do\n\
            exec 3<>/dev/tcp/127.0.0.1/$port\n\
            echo $word >&3; read -r -t 10 answer <&3; echo $answer\n\
            exec 3>&-\n\
        done\n\
        echo $HTTP_PROXY $https_proxy $NO_PROXY $NODE_USE_ENV_PROXY | sed s/$port/PORT/g";
    let output = fixture.command(&fixture.plan(""), script).output().unwrap();
    let expected =
        "ONE\nTWO\nhttp://127.0.0.1:PORT http://127.0.0.1:PORT localhost,127.0.0.1,::1 1";
    assert_eq!(stdout(&output), expected, "{}", String::from_utf8_lossy(&output.stderr));
    server.join().unwrap();
}

//! Uploaded files, and runs that use them.

use super::{assert_whole, events, make, serve, text};
use jackfield_e2e::{Home, Web};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// Uploads with `curl`, as a browser does with a form.
fn upload(home: &Home, web: &Web, args: &[&str], query: &str) -> Value {
    let output = Command::new("curl")
        .args(["-s", "--max-time", "20", "-H", &format!("Authorization: Bearer {}", web.token)])
        .args(args)
        .arg(format!("http://{}/api/upload{query}", web.address))
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("curl is here");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn uploaded_files_are_images_and_attachments_of_the_next_run() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    std::fs::write(home.path().join("a.png"), "png").unwrap();
    std::fs::write(home.path().join("notes.txt"), "notes").unwrap();
    let form = ["-F", "projectId=p1", "-F", "images=@a.png", "-F", "files=@notes.txt"];
    let stored = upload(&home, &web, &form, "");
    let path = |at: usize| stored["files"][at]["path"].clone();
    assert_eq!(stored["files"][1]["name"], "notes.txt", "{stored}");
    let raw = upload(&home, &web, &["--data-binary", "@a.png"], "?name=..%2Fb.png");
    let raw = raw["files"][0]["path"].clone();
    assert!(raw.as_str().unwrap().ends_with("-b.png"), "{raw}");
    let body = json!({
        "agentId": "fake", "message": "Look", "projectId": "p1",
        "imagePaths": [path(0), raw], "attachments": [path(1)],
    });
    let (run, _) = make(&web, &body);
    let told = events(&web, &run);
    assert_whole(&told);
    assert!(text(&told).contains("-notes.txt"), "{told:#?}");
    let refused = upload(&home, &web, &form[2..], "?projectId=..");
    assert_eq!(refused["error"]["code"], "VALIDATION_FAILED", "{refused}");
    let refused = upload(&home, &web, &["-d", "x"], "");
    assert_eq!(refused["error"]["code"], "BAD_REQUEST", "{refused}");
    daemon.stop();
}

#[test]
fn uploads_are_used_in_a_session_in_any_directory_and_odd_images_have_a_warning() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let (editor, session) = super::editor(&home);
    for name in ["paste.png", "sketch.svg", "report.pdf"] {
        std::fs::write(home.path().join(name), "x").unwrap();
    }
    let form = ["-F", "a=@paste.png", "-F", "b=@sketch.svg", "-F", "c=@report.pdf"];
    let stored = upload(&home, &web, &form, "");
    let path = |at: usize| stored["files"][at]["path"].clone();
    let body =
        json!({ "message": "echo", "imagePaths": [path(0), path(1)], "attachments": [path(2)] });
    let made = web.post(&format!("/api/sessions/{session}/prompt"), &body).good();
    let warnings = made["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].as_str().unwrap().contains("is not a PNG, JPEG, GIF or WebP image"));
    let run = made["runId"].as_str().unwrap();
    assert_whole(&events(&web, run));
    let log = web.get(&format!("/api/sessions/{session}/export")).text();
    let prompted = log.lines().find(|it| it.contains(r#""is":"prompted""#)).unwrap();
    assert!(prompted.contains(r#""mimeType":"image/png""#), "{prompted}");
    assert!(prompted.contains("-sketch.svg") && prompted.contains("-report.pdf"), "{prompted}");
    drop(editor);
    daemon.stop();
}

#[test]
fn upload_that_is_too_large_is_refused_with_the_limit() {
    let home = Home::new();
    let (daemon, web) = serve(&home, &[]);
    let file = std::fs::File::create(home.path().join("big.png")).unwrap();
    file.set_len(17 * 1024 * 1024).unwrap();
    let refused = upload(&home, &web, &["-F", "a=@big.png"], "");
    assert_eq!(refused["error"]["code"], "PAYLOAD_TOO_LARGE", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("16 MiB"), "{refused}");
    daemon.stop();
}

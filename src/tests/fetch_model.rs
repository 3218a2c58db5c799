//! `fetch-model` and `serve --model-dir` as processes, against a hub on a local socket that serves as hubs do, or badly.

#[path = "support/fake_hub.rs"]
mod fake_hub;

use fake_hub::{FILES, FakeHub, Reply, Request, Scratch, files, manifest, parts, run, serve};
use std::fs;
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Output, Stdio};
use toolsearch_proxy::embedder::{Manifest, Pins, StaticModel, open_model_folder};

const TABLE: &str = "model.safetensors";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fetches from a hub into a folder, with the usual manifest.
fn fetch(scratch: &Scratch, hub: &FakeHub, flags: &[&str]) -> Output {
    let (dir, manifest) = (scratch.dir(), scratch.manifest());
    let usual = ["fetch-model", "--model-dir", &dir, "--base-url", &hub.url, "--manifest", &manifest];
    run(&[&usual, flags].concat(), &[])
}

/// All files are there and right, and nothing half-made is.
fn assert_whole(scratch: &Scratch) {
    for (name, bytes) in files() {
        assert!(fs::read(scratch.path.join(name)).unwrap() == *bytes, "{name} is not right");
    }
    assert_eq!(parts(&scratch.path), Vec::<String>::new());
}

#[test]
fn a_model_is_fetched_through_redirects_and_served_and_not_fetched_twice() {
    let hub = FakeHub::start(|request| match request.path.as_str() {
        "/cdn/model.safetensors?Signature=secret" => Reply::file(request, TABLE),
        path if path.ends_with(TABLE) => Reply::redirect("/cdn/model.safetensors?Signature=secret"),
        _ => Reply::hub(request),
    });
    let scratch = Scratch::new("whole");
    let output = fetch(&scratch, &hub, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).contains("serve --model-dir") && !text(&output).contains("secret"),
        "{}",
        text(&output)
    );
    assert!(!text(&output).contains(['\r', '\x1b']));
    assert_whole(&scratch);
    #[cfg(unix)]
    assert_eq!(fs::metadata(scratch.path.join(TABLE)).unwrap().permissions().mode() & 0o777, 0o644);
    let asked = hub.requests().len();
    assert_eq!(fetch(&scratch, &hub, &[]).status.code(), Some(0));
    assert_eq!(hub.requests().len(), asked);
    let (dir, manifest) = (scratch.dir(), scratch.manifest());
    serve(&["--model-dir", &dir, "--model-manifest", &manifest]).unwrap();
    serve(&["--model-dir", &dir, "--model-unpinned"]).unwrap();
}

#[test]
fn t_s2_what_a_hub_can_do_wrong_ends_with_a_code_and_what_to_do() {
    type Script = fn(&Request) -> Reply;
    let cases: [(&str, Script, i32, &str); 13] = [
        ("404", |_| Reply::status("404 Not Found"), 1, "check --base-url"),
        ("403", |_| Reply::status("403 Forbidden"), 1, "wants a login"),
        ("500", |_| Reply::status("500 Internal Server Error"), 1, "run it again later"),
        ("loop", |_| Reply::redirect("/again"), 1, "redirected more than"),
        ("scheme", |_| Reply::redirect("file:///etc/passwd"), 1, "redirects"),
        ("nowhere", |_| Reply::with_head("302 Found", "", &[]), 1, "no usable address"),
        ("coded", |request| Reply::hub(request).header("Content-Encoding: gzip"), 1, "compressed"),
        ("corrupted", |request| Reply::hub(request).change(|body| body[5] ^= 1), 3, "its SHA-256 is"),
        (
            "shorter",
            |request| Reply::hub(request).change(|body| body.truncate(body.len() - 1)),
            3,
            "bytes there instead of",
        ),
        ("longer", |request| Reply::hub(request).change(|body| body.push(0)), 3, "bytes there instead of"),
        ("endless", |request| Reply::http_1_0(request).change(|body| body.push(0)), 3, "more than"),
        ("http/1.0 cut", |request| Reply::http_1_0(request).cut(9), 1, "ended after 9 of"),
        ("stalled", |request| Reply::hub(request).cut(9).then_hang(), 1, "nothing came for"),
    ];
    for (what, script, code, expected) in cases {
        let hub = FakeHub::start(script);
        let scratch = Scratch::new("wrong");
        let output = fetch(&scratch, &hub, &["--retries", "0", "--stall-timeout", "300ms"]);
        assert_eq!(output.status.code(), Some(code), "{what}: {}", text(&output));
        assert!(text(&output).contains(expected), "{what}: {}", text(&output));
        for name in FILES {
            assert!(!scratch.path.join(name).exists(), "{what}: {name}");
        }
        let is_kept = expected.contains("9 of") || what == "stalled";
        assert_eq!(parts(&scratch.path).len(), usize::from(is_kept), "{what}");
    }
}

#[test]
fn t_s2_a_download_that_broke_off_is_gone_on_with_from_its_bytes() {
    type Script = fn(&Request) -> Reply;
    let seconds: [(&str, Script); 5] = [
        ("part", Reply::hub),
        ("whole", |request| Reply::hub(&Request { from: None, ..request.clone() })),
        ("other part", |request| match request.from {
            Some(_) => {
                Reply::with_head("206 Partial Content", "Content-Range: bytes 0-8/9\r\n", b"123456789")
            }
            None => Reply::hub(request),
        }),
        ("no part", |request| match request.from {
            Some(_) => Reply::status("416 Range Not Satisfiable"),
            None => Reply::hub(request),
        }),
        ("broken again", |request| match request.from {
            Some(1000) => Reply::hub(request).cut(500),
            _ => Reply::hub(request),
        }),
    ];
    for (what, script) in seconds {
        let first = FakeHub::start(|request| match request.path.ends_with(TABLE) {
            true => Reply::hub(request).cut(1000),
            false => Reply::hub(request),
        });
        let scratch = Scratch::new("resume");
        assert_eq!(fetch(&scratch, &first, &["--retries", "0"]).status.code(), Some(1), "{what}");
        assert!(parts(&scratch.path).len() == 1 && !scratch.path.join(TABLE).exists(), "{what}");
        let hub = FakeHub::start(script);
        let output = fetch(&scratch, &hub, &["--retries", "1"]);
        assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output));
        assert_eq!(hub.requests()[0].from, Some(1000), "{what}");
        assert_whole(&scratch);
    }
}

#[test]
fn t_s2_a_leftover_that_is_not_the_file_s_beginning_is_thrown_away() {
    let hub = FakeHub::start(Reply::hub);
    let scratch = Scratch::new("leftover");
    fs::create_dir(&scratch.path).unwrap();
    let leftover = scratch.path.join(format!(".{TABLE}.0123456789abcdef.part"));
    fs::write(&leftover, vec![7; 500]).unwrap();
    fs::write(scratch.path.join(format!(".{TABLE}.0000000000000000.part")), "less").unwrap();
    let output = fetch(&scratch, &hub, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("do not belong together"), "{}", text(&output));
    assert_whole(&scratch);
    // A file that is there but wrong is replaced.
    fs::write(scratch.path.join("config.json"), "{}").unwrap();
    assert_eq!(fetch(&scratch, &hub, &[]).status.code(), Some(0));
    assert_whole(&scratch);
}

/// Kills where the hub stands at a byte, and where the process stands at a time.
#[test]
fn t_s2_r10_killed_at_any_point_nothing_half_made_has_a_name() {
    let rounds: usize = std::env::var("TOOLSEARCH_TEST_KILLS").map_or(40, |rounds| rounds.parse().unwrap());
    let whole = files().iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let mut seed = 7_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let scratch = Scratch::new("killed");
    for round in 0..rounds {
        if round % 10 == 0 {
            let _may_be_missing = fs::remove_dir_all(&scratch.path);
        }
        let hub = FakeHub::start(Reply::hub);
        let at_byte = (round % 2 == 0).then(|| random(whole));
        hub.hang_after(at_byte);
        let (dir, manifest) = (scratch.dir(), scratch.manifest());
        let mut child = fake_hub::command(&[
            "fetch-model",
            "--model-dir",
            &dir,
            "--base-url",
            &hub.url,
            "--manifest",
            &manifest,
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
        match at_byte {
            Some(_) => hub.hangs_or(|| child.try_wait().unwrap().is_some()),
            None => std::thread::sleep(std::time::Duration::from_millis(random(80) as u64)),
        }
        let _may_have_ended = child.kill();
        child.wait().unwrap();
        for (name, bytes) in files() {
            let found = fs::read(scratch.path.join(name));
            assert!(
                found.as_ref().map_or(true, |found| found == bytes),
                "round {round}: {name} is half-made"
            );
        }
    }
    let hub = FakeHub::start(Reply::hub);
    let output = fetch(&scratch, &hub, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_whole(&scratch);
    let (dir, manifest) = (scratch.dir(), scratch.manifest());
    serve(&["--model-dir", &dir, "--model-manifest", &manifest]).unwrap();
}

#[test]
fn two_at_once_do_not_meet() {
    let hub = FakeHub::start(Reply::hub);
    hub.hang_after(Some(10));
    let scratch = Scratch::new("two");
    let (dir, manifest) = (scratch.dir(), scratch.manifest());
    let args = ["fetch-model", "--model-dir", &dir, "--base-url", &hub.url, "--manifest", &manifest];
    let mut first = fake_hub::command(&args).stderr(Stdio::null()).spawn().unwrap();
    hub.hangs_or(|| first.try_wait().unwrap().is_some());
    let output = fetch(&scratch, &hub, &[]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("another fetch-model is at work"), "{}", text(&output));
}

#[test]
fn a_disk_that_takes_no_more_is_told_and_what_came_is_kept() {
    let hub = FakeHub::start(Reply::hub);
    let scratch = Scratch::new("full");
    // A limit on the size of files stands for the full disk.
    let line = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} fetch-model --model-dir {} --base-url {} --manifest {}",
        env!("CARGO_BIN_EXE_toolsearch-proxy"),
        scratch.dir(),
        hub.url,
        scratch.manifest()
    );
    let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(
        text(&output).contains("cannot write") && text(&output).contains(&scratch.dir()),
        "{}",
        text(&output)
    );
    assert!(parts(&scratch.path).len() == 1 && !scratch.path.join(TABLE).exists());
    assert_eq!(fetch(&scratch, &hub, &[]).status.code(), Some(0));
    assert!(hub.requests().iter().any(|request| request.from.is_some_and(|from| from > 0)));
    assert_whole(&scratch);
}

#[test]
fn a_proxy_is_used_where_it_is_named_and_nowhere_else() {
    let proxy = FakeHub::start(Reply::hub);
    let scratch = Scratch::new("proxy");
    let (dir, manifest) = (scratch.dir(), scratch.manifest());
    let usual = ["fetch-model", "--model-dir", &dir, "--manifest", &manifest, "--base-url"];
    let with_proxy = proxy.url.replace("http://", "http://me:pw-canary@");
    let named = run(&[&usual[..], &["http://hub.invalid", "--proxy", &with_proxy]].concat(), &[]);
    assert_eq!(named.status.code(), Some(0), "{}", text(&named));
    assert!(proxy.requests()[0].path.starts_with("http://hub.invalid/a/b/resolve/main/"));
    assert!(!text(&named).contains("canary"));
    fs::remove_dir_all(&scratch.path).unwrap();
    let dead =
        ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"].map(|name| (name, "http://127.0.0.1:1"));
    let hub = FakeHub::start(Reply::hub);
    let direct = run(&[&usual[..], &[&hub.url]].concat(), &dead);
    assert_eq!(direct.status.code(), Some(0), "{}", text(&direct));
}

#[test]
fn pins_that_are_not_confirmed_are_refused_until_one_command_confirms_them() {
    let hub = FakeHub::start(|request| {
        Reply::hub(request).header("X-Repo-Commit: 0123456789abcdef0123456789abcdef01234567")
    });
    let scratch = Scratch::new("confirm");
    let unconfirmed =
        scratch.write("unconfirmed.toml", &manifest().replace("confirmed = true", "confirmed = false"));
    let dir = scratch.dir();
    let args = ["fetch-model", "--model-dir", &dir, "--base-url", &hub.url, "--manifest", &unconfirmed];
    let output = run(&args, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("--confirm-pins") && hub.requests().is_empty(), "{}", text(&output));
    let output = run(&[&args[..], &["--confirm-pins"]].concat(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("in the manifest so far: the same"), "{}", text(&output));
    let confirmed = String::from_utf8(output.stdout).unwrap();
    assert!(confirmed.contains("revision = \"0123456789abcdef0123456789abcdef01234567\""), "{confirmed}");
    let problem = serve(&["--model-dir", &dir, "--model-manifest", &unconfirmed]).unwrap_err();
    assert!(problem.contains("not confirmed"), "{problem}");
    let confirmed = scratch.write("confirmed.toml", &confirmed);
    let asked = hub.requests().len();
    let args = ["fetch-model", "--model-dir", &dir, "--base-url", &hub.url, "--manifest", &confirmed];
    assert_eq!(run(&args, &[]).status.code(), Some(0));
    assert_eq!(hub.requests().len(), asked);
    serve(&["--model-dir", &dir, "--model-manifest", &confirmed]).unwrap();
}

#[cfg(unix)]
#[test]
fn t_s1_t_s3_serve_refuses_what_it_should_not_use_before_a_port_is_bound() {
    let scratch = Scratch::filled("refused");
    let (dir, manifest) = (scratch.dir(), scratch.manifest());
    let pinned = ["--model-dir", &dir, "--model-manifest", &manifest];
    let refused = |expected: &str| {
        let problem = serve(&pinned).unwrap_err();
        assert!(problem.contains("--model-dir: ") && problem.contains(expected), "{expected}: {problem}");
    };
    for (name, bytes) in files() {
        let path = scratch.path.join(name);
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        fs::write(&path, &changed).unwrap();
        refused("run toolsearch-proxy fetch-model to replace it");
        fs::remove_file(&path).unwrap();
        refused("is missing: run toolsearch-proxy fetch-model");
        fs::write(scratch.path.join("elsewhere"), bytes).unwrap();
        symlink("elsewhere", &path).unwrap();
        refused("is a link");
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    fs::set_permissions(&scratch.path, fs::Permissions::from_mode(0o777)).unwrap();
    refused("can be written by others (mode 777)");
    fs::set_permissions(&scratch.path, fs::Permissions::from_mode(0o755)).unwrap();
    // The binary's own pins are of another model, and are not confirmed.
    assert!(serve(&["--model-dir", &dir]).is_err());
    serve(&pinned).unwrap();
    // Kept 8-bit now; the files are still looked at.
    let mut changed = fs::read(scratch.path.join(TABLE)).unwrap();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    fs::write(scratch.path.join(TABLE), &changed).unwrap();
    refused("run toolsearch-proxy fetch-model to replace it");
    serve(&["--model-dir", &dir, "--model-unpinned"]).unwrap();
}

fn vectors(model: &StaticModel) -> Vec<Vec<f32>> {
    ["send mail", "read the calendar", "zzz", ""].map(|text| model.encode(text)).to_vec()
}

#[test]
fn t_s1_any_changed_byte_is_noticed_and_the_kept_form_gives_the_same_vectors() {
    let scratch = Scratch::filled("flips");
    let pins = Pins::Of(Box::new(Manifest::parse(&manifest()).unwrap()));
    let kept = scratch.path.join(".toolsearch-8bit.bin");
    let expected = vectors(&StaticModel::open(&scratch.path).unwrap());
    assert_eq!(vectors(&open_model_folder(&scratch.path, &pins).unwrap()), expected);
    let good = fs::read(&kept).unwrap();
    for at in (0..good.len()).step_by(good.len() / 200) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&kept, &bad).unwrap();
        assert_eq!(vectors(&open_model_folder(&scratch.path, &pins).unwrap()), expected, "byte {at}");
    }
    for (name, bytes) in files() {
        let path = scratch.path.join(name);
        for at in (0..bytes.len()).step_by((bytes.len() / 100).max(1)) {
            let _may_be_missing = fs::remove_file(&kept);
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            fs::File::create(&path).unwrap().write_all(&bad).unwrap();
            assert!(open_model_folder(&scratch.path, &pins).is_err(), "{name}, byte {at}");
            assert!(!kept.exists());
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(vectors(&open_model_folder(&scratch.path, &pins).unwrap()), expected);
}

//! What programs cannot access, and what they can.

use crate::bench::{ExecFixture, confining_sandboxes, sandboxes};
use octo_grants::exec::{ExecSpec, Exit, Sandbox, SandboxChoice};
use octo_model::Kind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Whether a command succeeds.
async fn works(bench: &ExecFixture, line: &str, change: impl FnOnce(&mut octo_grants::exec::Job)) -> bool {
    let mut job = bench.job(line);
    change(&mut job);
    bench.exec.run(job).await.unwrap().exit == Exit::Code(0)
}

#[tokio::test]
async fn files_outside_the_roots_are_out_of_reach() {
    for choice in confining_sandboxes() {
        let bench = ExecFixture::new(choice);
        let (work, library, outside) = (bench.path("work"), bench.path("library"), bench.path("outside"));
        for folder in [&work, &library, &outside, &bench.path("state")] {
            std::fs::write(folder.join("secret"), "secret").unwrap();
        }
        let (work, library, outside) = (work.display(), library.display(), outside.display());
        for (line, fine) in [
            (format!("cat {work}/secret"), true),
            (format!("cat {library}/secret"), true),
            (format!("echo x > {work}/new && mv {work}/new {work}/newer && rm {work}/newer"), true),
            ("echo x > $TMPDIR/x && cat $TMPDIR/x && echo x > $HOME/x && ls -A $HOME".to_owned(), true),
            ("echo x > /dev/null && head -c 1 /dev/urandom".to_owned(), true),
            ("sh -c 'sleep 0.01 & kill $!'".to_owned(), true),
            ("cat /etc/passwd && cat /proc/meminfo && readlink /proc/self/exe".to_owned(), true),
            (format!("cat {outside}/secret"), false),
            (format!("ls {outside}"), false),
            (format!("cat {}/secret", bench.path("state").display()), false),
            (format!("echo x > {library}/new"), false),
            (format!("echo x >> {library}/secret"), false),
            (format!("truncate -s 0 {library}/secret"), false),
            (format!("rm {library}/secret"), false),
            (format!("echo x > {outside}/new"), false),
            (format!("truncate -s 0 {outside}/secret"), false),
            (format!("ln {outside}/secret {work}/linked"), false),
            (format!("ln -s {outside}/secret {work}/link && cat {work}/link"), false),
            ("cat /etc/shadow".to_owned(), false),
            ("cat /etc/gitconfig /etc/ssh/ssh_config".to_owned(), false),
            ("echo x > /etc/octo-test".to_owned(), false),
            ("echo x > /octo-test".to_owned(), false),
            ("echo x > /usr/octo-test".to_owned(), false),
            (format!("mknod {work}/disk b 8 0"), false),
            ("mount -t tmpfs none /mnt".to_owned(), false),
            ("unshare -m true".to_owned(), false),
            ("unshare -Ur true".to_owned(), false),
            ("chroot / true".to_owned(), false),
            (format!("kill -0 {}", std::process::id()), false),
            (format!("cat /proc/{}/environ", std::process::id()), false),
            (format!("cat /proc/{}/cmdline", std::process::id()), false),
            (format!("ls /proc/{}/fd", std::process::id()), false),
            (format!("readlink /proc/{}/fd/0", std::process::id()), false),
        ] {
            assert_eq!(works(&bench, &line, |_| {}).await, fine, "{choice:?}: {line}");
        }
        assert_eq!(std::fs::read_to_string(bench.path("library/secret")).unwrap(), "secret");
        assert_eq!(std::fs::read_to_string(bench.path("outside/secret")).unwrap(), "secret");
        assert!(!Path::new("/octo-test").exists() && !Path::new("/etc/octo-test").exists());
        // Paths that the job itself requests.
        let write = format!("echo x > {work}/new");
        assert!(!works(&bench, &write, |job| job.writes = false).await, "{choice:?}");
        let read = format!("cat {outside}/secret");
        assert!(works(&bench, &read, |job| job.readable = vec![bench.path("outside")]).await, "{choice:?}");
        let write = format!("echo x > {outside}/new");
        assert!(!works(&bench, &write, |job| job.readable = vec![bench.path("outside")]).await, "{choice:?}");
    }
}

#[tokio::test]
async fn the_real_home_is_invisible_but_for_roots_in_it() {
    let home = std::env::home_dir().unwrap();
    let Ok(folder) = tempfile::tempdir_in(&home) else { return };
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let name = folder.path().file_name().unwrap().to_string_lossy().into_owned();
    for choice in confining_sandboxes() {
        let folder = tempfile::tempdir_in(&home).unwrap();
        let bench = ExecFixture::within(folder, choice, |_| {});
        std::fs::write(bench.path("work/file"), "file").unwrap();
        let seen = works(&bench, &format!("cat {}", secret.display()), |_| {}).await;
        let listed = works(&bench, &format!("ls -A {} | grep -q {name}", home.display()), |_| {}).await;
        let root = works(&bench, "test \"$(cat file)\" = file && echo x > other", |_| {}).await;
        assert_eq!((seen, listed, root), (false, false, true), "{choice:?}");
        assert_ne!(bench.output_of("echo $HOME").await, home.display().to_string());
    }
}

const TCP: &str = "import socket; socket.create_connection(('127.0.0.1', PORT), 2)";
const UDP: &str = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', PORT)); s.settimeout(2); assert s.recv(9) == b'y'";
const UNIX: &str = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('PATH')";

#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_there_only_when_it_is_granted() {
    let python = Path::new("/usr/bin/python3");
    assert!(python.exists(), "this test needs python3");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    let echo = udp.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 9];
        while let Ok((_, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(b"y", from);
        }
    });
    let tcp_line = format!(
        "/usr/bin/python3 -c \"{}\"",
        TCP.replace("PORT", &tcp.local_addr().unwrap().port().to_string())
    );
    let udp_line = format!("/usr/bin/python3 -c \"{}\"", UDP.replace("PORT", &port));
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let open = choice == SandboxChoice::None;
        for line in [&tcp_line, &udp_line] {
            assert_eq!(works(&bench, line, |_| {}).await, open, "{choice:?}: {line}");
            assert!(works(&bench, line, |job| job.network = true).await, "{choice:?}: {line}");
        }
        if open {
            continue;
        }
        // A socket of the machine, such as a container engine's.
        let path = bench.path("outside/socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let line = format!("/usr/bin/python3 -c \"{}\"", UNIX.replace("PATH", &path.display().to_string()));
        assert!(!works(&bench, &line, |_| {}).await, "{choice:?}: {line}");
        assert!(!works(&bench, &line, |job| job.network = true).await, "{choice:?}: {line}");
    }
}

/// X servers and other services of a desktop session listen on abstract addresses, which belong to the network namespace.
#[tokio::test(flavor = "multi_thread")]
async fn abstract_sockets_of_the_machine_are_out_of_reach() {
    let name = format!("octo-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _service = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let line = format!("/usr/bin/python3 -c \"{}\"", UNIX.replace("PATH", &format!("\\0{name}")));
    let own = "/usr/bin/python3 -c \"import socket; a = socket.socket(socket.AF_UNIX); a.bind('\\0own'); a.listen(); \
               socket.socket(socket.AF_UNIX).connect('\\0own')\"";
    for choice in sandboxes() {
        let bench = ExecFixture::new(choice);
        let open = choice == SandboxChoice::None;
        for network in [false, true] {
            assert_eq!(works(&bench, &line, |job| job.network = network).await, open, "{choice:?} {network}");
        }
        if choice == SandboxChoice::Bubblewrap && octo_grants::exec::landlock_scopes_signals() {
            assert!(works(&bench, own, |job| job.network = true).await, "its own sockets");
        }
    }
}

#[tokio::test]
async fn limits_hold() {
    for choice in sandboxes() {
        let bench = ExecFixture::with(choice, |spec| {
            spec.limits.file_bytes = 100_000;
            spec.limits.open_files = 64;
            spec.limits.memory_bytes = 400 << 20;
        });
        assert_eq!(bench.output_of("ulimit -n; ulimit -c").await, "64\n0", "{choice:?}");
        assert!(works(&bench, "head -c 90000 /dev/zero > small", |_| {}).await, "{choice:?}");
        assert!(!works(&bench, "head -c 200000 /dev/zero > large", |_| {}).await, "{choice:?}");
        assert!(!works(&bench, "/usr/bin/python3 -c 'bytearray(500 << 20)'", |_| {}).await, "{choice:?}");
    }
}

#[tokio::test]
async fn a_folder_outside_cannot_be_worked_in() {
    let bench = ExecFixture::new(SandboxChoice::Auto);
    std::fs::create_dir(bench.path("work/sub")).unwrap();
    std::os::unix::fs::symlink(bench.path("outside"), bench.path("work/link")).unwrap();
    let mut job = bench.job("pwd");
    job.cwd = bench.place("sub");
    let done = bench.exec.run(job).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&done.stdout.head).trim_end(),
        bench.path("work/sub").display().to_string()
    );
    for path in ["link", "missing"] {
        let mut job = bench.job("pwd");
        job.cwd = bench.place(path);
        assert!(bench.exec.run(job).await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn the_hub_s_data_within_a_root_stay_hidden() {
    for choice in confining_sandboxes() {
        let inside = |spec: &mut ExecSpec| spec.state = spec.state.with_file_name("work").join(".hub");
        let bench = ExecFixture::with(choice, inside);
        std::fs::write(bench.path("work/.hub/secret"), "secret").unwrap();
        let ran = bench.exec.run(bench.job("cat .hub/secret")).await;
        match choice {
            SandboxChoice::Landlock => assert_eq!(ran.map(|_| ()).unwrap_err().kind, Kind::Unavailable),
            _ => assert_ne!(ran.unwrap().exit, Exit::Code(0)),
        }
    }
}

#[tokio::test]
async fn toolchains_of_the_search_path_are_seen_without_what_lies_beside_them() {
    let home = std::env::home_dir().unwrap();
    if !home.join(".cargo/bin/cargo").exists() {
        eprintln!("NO CARGO in the home: not tested");
        return;
    }
    for choice in confining_sandboxes() {
        let bin = home.join(".cargo/bin");
        let path = format!("{0}:{0}:/usr/bin:/bin", bin.display());
        let bench = ExecFixture::with(choice, |spec| spec.path = path.into());
        assert!(bench.output_of("cargo --version").await.starts_with("cargo "), "{choice:?}");
        assert!(!works(&bench, &format!("cat {}/.cargo/env", home.display()), |_| {}).await, "{choice:?}");
        let line = "mkdir -p src && echo 'fn main() {}' > src/main.rs && printf '[package]\\nname = \"a\"\\n' > Cargo.toml && cargo metadata --offline --format-version 1 >/dev/null";
        assert!(works(&bench, line, |_| {}).await, "{choice:?}");
    }
}

#[tokio::test]
async fn where_the_sandbox_does_not_work_nothing_runs_or_the_next_one_is_taken() {
    let broken = |spec: &mut ExecSpec| {
        let folder = spec.state.with_file_name("broken");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("bwrap"), "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(folder.join("bwrap"), std::fs::Permissions::from_mode(0o755)).unwrap();
        spec.path = format!("{}:/usr/bin:/bin", folder.display()).into();
    };
    let bench = ExecFixture::with(SandboxChoice::Bubblewrap, broken);
    let error = bench.exec.run(bench.job("true")).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.hint.unwrap().contains("shell.sandbox: none"));
    let bench = ExecFixture::with(SandboxChoice::Auto, broken);
    assert_eq!(bench.exec.sandbox(), Sandbox::Landlock);
    assert_eq!(bench.exec.run(bench.job("true")).await.unwrap().sandbox, Sandbox::Landlock);
}

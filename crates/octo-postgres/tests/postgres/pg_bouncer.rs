//! PgBouncer in transaction mode, with two sessions at the server.

use crate::postgres_cluster::variable;
use crate::postgres_schema::{PASSWORD, ROLE};
use octo_model::Secret;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct PgBouncer {
    process: Child,
    port: u16,
    database: String,
    _dir: TempDir,
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_until_reachable(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on port {port}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl PgBouncer {
    /// In front of the server of this login.
    pub fn start(admin: &str) -> Self {
        let (_, place) = admin.rsplit_once('@').unwrap();
        let (server, database) = place.split_once('/').unwrap();
        let (_, server_port) = server.rsplit_once(':').unwrap();
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (config, users) = (dir.path().join("pgbouncer.ini"), dir.path().join("users.txt"));
        std::fs::write(&users, format!("\"{ROLE}\" \"{PASSWORD}\"\n")).unwrap();
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = plain\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n",
            users.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(variable("PGBOUNCER"));
        command.arg("--quiet").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It refuses to run as root.
        if std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0) {
            command.args(["--user", "postgres"]);
        }
        let process = command.arg(&config).spawn().unwrap();
        wait_until_reachable(port);
        Self { process, port, database: database.to_owned(), _dir: dir }
    }

    pub fn dsn(&self) -> Secret {
        let Self { port, database, .. } = self;
        Secret::new(format!("postgres://{ROLE}:{PASSWORD}@127.0.0.1:{port}/{database}?sslmode=disable"))
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! The start of a session: who we are, and the proof of it.

use super::dsn::Login;
use super::fault::{self, ServerFault};
use super::session::Session;
use super::stream::Stream;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use octo_model::ToolError;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use std::io;

/// Why there is no session.
enum Fail {
    Lost(io::Error),
    Refused(ServerFault),
}

impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

/// Connects and logs in, within the patience of the login.
pub(super) async fn open(name: &str, login: &Login, longest: usize) -> Result<Session, ToolError> {
    match tokio::time::timeout(login.patience, start(login, longest)).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(Fail::Lost(error))) => Err(fault::lost(name, error)),
        Ok(Err(Fail::Refused(said))) => Err(fault::login(name, &said)),
        Err(_) => Err(fault::lost(name, "no login in time")),
    }
}

async fn start(login: &Login, longest: usize) -> Result<Session, Fail> {
    let mut session = Session::new(Stream::open(login).await?, longest);
    let mut parameters = vec![
        ("user", login.user.as_str()),
        ("database", login.database.as_str()),
        ("client_encoding", "UTF8"),
        ("application_name", "octoprox"),
    ];
    if let Some(options) = &login.options {
        parameters.push(("options", options));
    }
    let mut frames = BytesMut::new();
    frontend::startup_message(parameters, &mut frames)?;
    session.send(&frames, 1).await?;
    prove(&mut session, login).await?;
    while !session.is_done() {
        match session.next().await? {
            Message::BackendKeyData(body) => session.key = Some((body.process_id(), body.secret_key())),
            Message::ErrorResponse(body) => return Err(Fail::Refused(ServerFault::read(body.fields()))),
            _ => {}
        }
    }
    Ok(session)
}

async fn prove(session: &mut Session, login: &Login) -> Result<(), Fail> {
    let mut frames = BytesMut::new();
    match session.next().await? {
        Message::AuthenticationOk => return Ok(()),
        Message::AuthenticationCleartextPassword => {
            frontend::password_message(password(login)?.as_bytes(), &mut frames)?;
        }
        Message::AuthenticationMd5Password(body) => {
            let hash = md5_hash(login.user.as_bytes(), password(login)?.as_bytes(), body.salt());
            frontend::password_message(hash.as_bytes(), &mut frames)?;
        }
        Message::AuthenticationSasl(body) => return scram(session, login, &body).await,
        Message::ErrorResponse(body) => return Err(Fail::Refused(ServerFault::read(body.fields()))),
        _ => return Err(Fail::Lost(io::Error::other("the server asks for a login that is not supported"))),
    }
    session.send(&frames, 0).await?;
    accepted(session).await
}

async fn scram(session: &mut Session, login: &Login, offered: &AuthenticationSaslBody) -> Result<(), Fail> {
    let offered: Vec<&str> = offered.mechanisms().collect()?;
    if !offered.contains(&sasl::SCRAM_SHA_256) {
        return Err(Fail::Lost(io::Error::other("the server offers no SCRAM-SHA-256")));
    }
    let mut proof = sasl::ScramSha256::new(password(login)?.as_bytes(), sasl::ChannelBinding::unsupported());
    let mut frames = BytesMut::new();
    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, proof.message(), &mut frames)?;
    session.send(&frames, 0).await?;
    match session.next().await? {
        Message::AuthenticationSaslContinue(body) => proof.update(body.data())?,
        other => return Err(unexpected(&other)),
    }
    frames.clear();
    frontend::sasl_response(proof.message(), &mut frames)?;
    session.send(&frames, 0).await?;
    match session.next().await? {
        // The server proves here that it knows the password, too.
        Message::AuthenticationSaslFinal(body) => proof.finish(body.data())?,
        other => return Err(unexpected(&other)),
    }
    accepted(session).await
}

async fn accepted(session: &mut Session) -> Result<(), Fail> {
    match session.next().await? {
        Message::AuthenticationOk => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(message: &Message) -> Fail {
    match message {
        Message::ErrorResponse(body) => Fail::Refused(ServerFault::read(body.fields())),
        _ => Fail::Lost(io::Error::other("the server answered the login with something else")),
    }
}

fn password(login: &Login) -> io::Result<&str> {
    let missing = || io::Error::other("the server asks for a password and the connection string has none");
    login.password.as_ref().map(super::Secret::reveal).ok_or_else(missing)
}

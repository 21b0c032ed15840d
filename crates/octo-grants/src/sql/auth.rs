//! Session startup and authentication.

use super::db_session::Session;
use super::db_stream::Stream;
use super::dsn::Login;
use super::server_error::{self, ServerError};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use octo_model::ToolError;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use std::io;

/// Why a login failed.
enum AuthError {
    Connection(io::Error),
    Refused(ServerError),
}

impl From<io::Error> for AuthError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

/// Connects and logs in, within the timeout of the login.
pub(super) async fn open(name: &str, login: &Login, longest: usize) -> Result<Session, ToolError> {
    match tokio::time::timeout(login.connect_timeout, start(login, longest)).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(AuthError::Connection(error))) => Err(server_error::connection_error(name, error)),
        Ok(Err(AuthError::Refused(said))) => Err(server_error::login_error(name, &said)),
        Err(_) => Err(server_error::connection_error(name, "login timed out")),
    }
}

async fn start(login: &Login, longest: usize) -> Result<Session, AuthError> {
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
    authenticate(&mut session, login).await?;
    while !session.is_done() {
        match session.next().await? {
            Message::BackendKeyData(body) => {
                session.cancel_key = Some((body.process_id(), body.secret_key()))
            }
            Message::ErrorResponse(body) => {
                return Err(AuthError::Refused(ServerError::parse(body.fields())));
            }
            _ => {}
        }
    }
    Ok(session)
}

async fn authenticate(session: &mut Session, login: &Login) -> Result<(), AuthError> {
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
        Message::ErrorResponse(body) => return Err(AuthError::Refused(ServerError::parse(body.fields()))),
        _ => {
            return Err(AuthError::Connection(io::Error::other(
                "the server requires an unsupported authentication method",
            )));
        }
    }
    session.send(&frames, 0).await?;
    expect_ok(session).await
}

async fn scram(
    session: &mut Session,
    login: &Login,
    offered: &AuthenticationSaslBody,
) -> Result<(), AuthError> {
    let offered: Vec<&str> = offered.mechanisms().collect()?;
    if !offered.contains(&sasl::SCRAM_SHA_256) {
        return Err(AuthError::Connection(io::Error::other("the server does not offer SCRAM-SHA-256")));
    }
    let mut proof = sasl::ScramSha256::new(password(login)?.as_bytes(), sasl::ChannelBinding::unsupported());
    let mut frames = BytesMut::new();
    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, proof.message(), &mut frames)?;
    session.send(&frames, 0).await?;
    match session.next().await? {
        Message::AuthenticationSaslContinue(body) => proof.update(body.data())?,
        other => return Err(unexpected_message(&other)),
    }
    frames.clear();
    frontend::sasl_response(proof.message(), &mut frames)?;
    session.send(&frames, 0).await?;
    match session.next().await? {
        // Here the server proves that it knows the password, too.
        Message::AuthenticationSaslFinal(body) => proof.finish(body.data())?,
        other => return Err(unexpected_message(&other)),
    }
    expect_ok(session).await
}

async fn expect_ok(session: &mut Session) -> Result<(), AuthError> {
    match session.next().await? {
        Message::AuthenticationOk => Ok(()),
        other => Err(unexpected_message(&other)),
    }
}

fn unexpected_message(message: &Message) -> AuthError {
    match message {
        Message::ErrorResponse(body) => AuthError::Refused(ServerError::parse(body.fields())),
        _ => AuthError::Connection(io::Error::other("unexpected message during login")),
    }
}

fn password(login: &Login) -> io::Result<&str> {
    let missing = || io::Error::other("the server requires a password and the connection string has none");
    login.password.as_ref().map(octo_model::Secret::expose).ok_or_else(missing)
}

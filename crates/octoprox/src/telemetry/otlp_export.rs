//! Export of spans over OTLP.

use super::call_tracer::CallTracer;
use super::redactor::Redactor;
use crate::settings::Telemetry;
use bytes::Bytes;
use http::{Request, Response};
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetResponse};
use octo_hub::Tracer;
use octo_model::ToolError;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use url::Url;

/// Responses of a collector are short.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// Timeout for one batch of spans.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the last spans at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Connection to the collector, shut down with the process.
#[derive(Clone)]
pub struct SpanExport {
    provider: SdkTracerProvider,
    redactor: Arc<Redactor>,
    contents: bool,
}

impl SpanExport {
    /// Returns `None` without an endpoint: then no spans are created. Needs a runtime.
    pub fn start(
        settings: &Telemetry,
        net: &Net,
        redactor: &Arc<Redactor>,
    ) -> Result<Option<Self>, ExporterBuildError> {
        let Some(endpoint) = &settings.otlp_endpoint else {
            return Ok(None);
        };
        let client = OtlpHttpClient::for_endpoint(endpoint, net)
            .map_err(|error| ExporterBuildError::InternalFailure(error.text()))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(traces_endpoint(endpoint))
            .build()?;
        let resource = Resource::builder()
            .with_service_name(settings.service_name.clone())
            .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Some(Self { provider, redactor: Arc::clone(redactor), contents: settings.trace_contents }))
    }

    /// Returns the tracer for the logging setup, which creates the spans.
    pub fn tracer(&self) -> SdkTracer {
        self.provider.tracer("octoprox")
    }

    /// Returns the tracer for the hub, which sets the attributes.
    pub fn hub_tracer(&self) -> Arc<dyn Tracer> {
        Arc::new(CallTracer::new(Arc::clone(&self.redactor), self.contents))
    }

    /// Sends the remaining spans. Waits on a separate thread, since sending needs the runtime.
    pub async fn shutdown(self) {
        let end = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT));
        if let Ok(Err(error)) = end.await {
            tracing::warn!(%error, "failed to send the last spans");
        }
    }
}

/// Appends the traces path to a base URL, as in the OTLP specification.
fn traces_endpoint(endpoint: &str) -> String {
    let base = endpoint.trim_end_matches('/');
    if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") }
}

/// HTTP client that connects only to the collector. The exporter runs on a thread without a runtime, so requests are
/// handed to ours.
#[derive(Clone)]
struct OtlpHttpClient {
    net: Net,
    runtime: Handle,
}

impl OtlpHttpClient {
    fn for_endpoint(endpoint: &str, net: &Net) -> Result<Self, ToolError> {
        Ok(Self { net: net.for_configured_host(endpoint)?, runtime: Handle::current() })
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (mut head, body) = request.into_parts();
        // The client sets the content length itself.
        head.headers.remove(http::header::CONTENT_LENGTH);
        let mut url: Url = head.uri.to_string().parse()?;
        // Credentials in the URL are not sent; use headers.
        let _ = (url.set_username(""), url.set_password(None));
        let ask = NetRequest {
            method: head.method,
            headers: head.headers,
            body: Some(body),
            timeout: EXPORT_TIMEOUT,
            max_bytes: MAX_RESPONSE_BYTES,
            max_redirects: 0,
            ..NetRequest::get(url)
        };
        let NetResponse { status, headers, body, .. } = self.net.send(ask).await?;
        let mut answer = Response::new(body);
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(answer)
    }
}

impl fmt::Debug for OtlpHttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Courier").finish_non_exhaustive()
    }
}

impl HttpClient for OtlpHttpClient {
    fn send_bytes<'a, 'future>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'a: 'future,
        Self: 'future,
    {
        let sent = self.runtime.spawn(self.clone().send(request));
        Box::pin(async move { sent.await? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        for (given, used) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://x.test/otlp/v1/traces", "https://x.test/otlp/v1/traces"),
        ] {
            assert_eq!(traces_endpoint(given), used);
        }
    }
}

//! All routes in one table. What is not here is answered 404 or 405, with a reason.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, put};
use axum::{Extension, Router};
use http::{Method, Uri};

use super::refusal::Refusal;
use super::{
    AdminState, bookies, cluster, health, lookup, metadata, metrics, namespaces, partitions,
    statistics, subscriptions, topics,
};
use crate::domain::Domain;

/// Everything this front end answers.
pub(crate) fn router(state: Arc<AdminState>) -> Router {
    let body_limit = DefaultBodyLimit::max(state.config.body_bytes_max);
    Router::new()
        .route("/metrics", get(metrics::scrape))
        .route("/metrics/", get(metrics::scrape))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/status.html", get(health::status_page))
        .route("/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}", get(lookup::topic))
        .route("/lookup/v2/destination/{domain}/{tenant}/{namespace}/{topic}", get(lookup::topic))
        .route("/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}/bundle", get(lookup::bundle))
        .route("/admin/v2/clusters", get(cluster::clusters))
        .route("/admin/v2/clusters/{cluster}", get(cluster::cluster))
        .route("/admin/v2/brokers", get(cluster::brokers))
        .route("/admin/v2/brokers/health", get(health::broker))
        .route("/admin/v2/brokers/ready", get(health::broker))
        .route("/admin/v2/brokers/version", get(cluster::version))
        .route("/admin/v2/brokers/leaderBroker", get(cluster::leader))
        .route("/admin/v2/brokers/{cluster}", get(cluster::brokers_of))
        .route("/admin/v2/tenants", get(namespaces::tenants))
        .route("/admin/v2/tenants/{tenant}", get(namespaces::tenant))
        .route("/admin/v2/namespaces/{tenant}", get(namespaces::namespaces))
        .route("/admin/v2/namespaces/{tenant}/{namespace}", get(namespaces::namespace))
        .route("/admin/v2/namespaces/{tenant}/{namespace}/topics", get(namespaces::topics))
        .route("/admin/v2/namespaces/{tenant}/{namespace}/bundles", get(namespaces::bundles))
        .route("/admin/v2/namespaces/{tenant}/{namespace}/unload", put(namespaces::unload))
        .route(
            "/admin/v2/namespaces/{tenant}/{namespace}/{bundle}/unload",
            put(namespaces::unload_bundle),
        )
        .route("/admin/v2/bookies", get(bookies::list))
        .route(
            "/admin/v2/bookies/{bookie}/drain",
            put(bookies::drain).delete(bookies::cancel_drain),
        )
        .route("/admin/v2/bookies/{bookie}/decommission", put(bookies::decommission))
        .route("/admin/v2/under-replicated", get(bookies::under_replicated))
        .route("/admin/v2/metadata", get(metadata::group))
        .route("/admin/v2/metadata/leader/{member}", put(metadata::transfer))
        .route("/admin/v2/metadata/members/{member}", put(metadata::add).delete(metadata::remove))
        .nest("/admin/v2/persistent", topic_routes(Domain::Persistent))
        .nest("/admin/v2/non-persistent", topic_routes(Domain::NonPersistent))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(body_limit)
        .with_state(state)
}

fn topic_routes(domain: Domain) -> Router<Arc<AdminState>> {
    Router::new()
        .route("/{tenant}/{namespace}", get(topics::list))
        .route(
            "/{tenant}/{namespace}/{topic}",
            get(topics::list_partitioned).put(topics::create).delete(topics::remove),
        )
        .route(
            "/{tenant}/{namespace}/{topic}/partitions",
            get(partitions::count)
                .put(partitions::create)
                .post(partitions::grow)
                .delete(partitions::remove),
        )
        .route("/{tenant}/{namespace}/{topic}/stats", get(statistics::topic))
        .route("/{tenant}/{namespace}/{topic}/internalStats", get(statistics::internal))
        .route("/{tenant}/{namespace}/{topic}/partitioned-stats", get(statistics::partitioned))
        .route("/{tenant}/{namespace}/{topic}/lastMessageId", get(statistics::last_message))
        .route("/{tenant}/{namespace}/{topic}/unload", put(topics::unload))
        .route("/{tenant}/{namespace}/{topic}/subscriptions", get(subscriptions::list))
        .route(
            "/{tenant}/{namespace}/{topic}/subscription/{subscription}",
            delete(subscriptions::remove),
        )
        .layer(Extension(domain))
}

async fn unknown(uri: Uri) -> Refusal {
    Refusal::missing(format!("nothing is served at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    Refusal::not_offered(format!("{method} is not offered at {}", uri.path()))
}

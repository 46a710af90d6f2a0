//! Tenants and namespaces. There are no records of them yet: `public/default` is always there, others come
//! into being with their first topic and are shown while one of their topics is loaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::AdminState;
use super::paths::{NamespacePath, Query, TenantPath};
use super::refusal::Refusal;
use crate::domain::NamespaceName;

/// A tenant's settings.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TenantAnswer {
    admin_roles: Vec<String>,
    allowed_clusters: Vec<String>,
}

/// How a namespace's topics are divided.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BundlesAnswer {
    boundaries: Vec<&'static str>,
    num_bundles: u32,
}

/// A namespace's policies, those that are set.
#[derive(Serialize)]
pub(crate) struct PoliciesAnswer {
    replication_clusters: Vec<String>,
    bundles: BundlesAnswer,
    deleted: bool,
    encryption_required: bool,
    schema_validation_enforced: bool,
}

const fn one_bundle() -> [&'static str; 2] {
    ["0x00000000", "0xffffffff"]
}

fn bundles_answer() -> BundlesAnswer {
    BundlesAnswer { boundaries: one_bundle().to_vec(), num_bundles: 1 }
}

fn known(state: &AdminState) -> BTreeSet<NamespaceName> {
    let always = NamespaceName { tenant: "public".to_owned(), namespace: "default".to_owned() };
    let loaded = state.broker.loaded_topics();
    loaded.iter().map(|topic| topic.name().namespace().clone()).chain([always]).collect()
}

/// Names of tenants.
pub(crate) async fn tenants(State(state): State<Arc<AdminState>>) -> Json<BTreeSet<String>> {
    Json(known(&state).into_iter().map(|namespace| namespace.tenant).collect())
}

/// One tenant.
pub(crate) async fn tenant(
    State(state): State<Arc<AdminState>>,
    TenantPath(tenant): TenantPath,
) -> Result<Json<TenantAnswer>, Refusal> {
    if known(&state).iter().any(|namespace| namespace.tenant == tenant) {
        let allowed_clusters = vec![state.config.cluster.clone()];
        return Ok(Json(TenantAnswer { admin_roles: Vec::new(), allowed_clusters }));
    }
    Err(Refusal::missing("Tenant does not exist"))
}

/// Namespaces of a tenant.
pub(crate) async fn namespaces(
    State(state): State<Arc<AdminState>>,
    TenantPath(tenant): TenantPath,
) -> Result<Json<Vec<String>>, Refusal> {
    let found: Vec<String> = known(&state)
        .into_iter()
        .filter(|namespace| namespace.tenant == tenant)
        .map(|namespace| namespace.to_string())
        .collect();
    if found.is_empty() { Err(Refusal::missing("Tenant does not exist")) } else { Ok(Json(found)) }
}

/// Policies of a namespace.
pub(crate) async fn namespace(
    State(state): State<Arc<AdminState>>,
    NamespacePath(name): NamespacePath,
) -> Result<Json<PoliciesAnswer>, Refusal> {
    require(&state, &name).await?;
    Ok(Json(PoliciesAnswer {
        replication_clusters: vec![state.config.cluster.clone()],
        bundles: bundles_answer(),
        deleted: false,
        encryption_required: false,
        schema_validation_enforced: false,
    }))
}

/// Bundles of a namespace.
pub(crate) async fn bundles(
    State(state): State<Arc<AdminState>>,
    NamespacePath(name): NamespacePath,
) -> Result<Json<BundlesAnswer>, Refusal> {
    require(&state, &name).await?;
    Ok(Json(bundles_answer()))
}

/// Topics of a namespace by full name, partitions included.
pub(crate) async fn topics(
    State(state): State<Arc<AdminState>>,
    NamespacePath(name): NamespacePath,
    query: Query,
) -> Result<Json<Vec<String>>, Refusal> {
    if query.value("mode") == Some("NON_PERSISTENT") {
        return Ok(Json(Vec::new()));
    }
    let topics = state.broker.topics(&name).await?;
    Ok(Json(topics.iter().map(ToString::to_string).collect()))
}

async fn require(state: &AdminState, name: &NamespaceName) -> Result<(), Refusal> {
    if known(state).contains(name) || !state.broker.topics(name).await?.is_empty() {
        return Ok(());
    }
    Err(Refusal::missing("Namespace does not exist"))
}

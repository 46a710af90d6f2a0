//! Tenants and namespaces. There are no records of them yet: `public/default` is always there, others come
//! into being when one of their topics is first looked up.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{Method, StatusCode};
use serde::Serialize;

use super::AdminState;
use super::parts::encoded;
use super::paths::{BundlePath, NamespacePath, Query, TenantPath};
use super::peer;
use super::refusal::Refusal;
use crate::broker::Bundle;
use crate::broker::ownership::boundaries;
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
    boundaries: Vec<String>,
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

async fn bundles_answer(
    state: &AdminState,
    name: &NamespaceName,
) -> Result<BundlesAnswer, Refusal> {
    let count = state.broker()?.bundles(name).await?.len() as u32;
    let boundaries = boundaries(count).iter().map(|bound| format!("0x{bound:08x}")).collect();
    Ok(BundlesAnswer { boundaries, num_bundles: count })
}

async fn known(state: &AdminState) -> Result<BTreeSet<NamespaceName>, Refusal> {
    let always = NamespaceName { tenant: "public".to_owned(), namespace: "default".to_owned() };
    Ok(state.broker()?.namespaces().await?.into_iter().chain([always]).collect())
}

/// Names of tenants.
pub(crate) async fn tenants(
    State(state): State<Arc<AdminState>>,
) -> Result<Json<BTreeSet<String>>, Refusal> {
    Ok(Json(known(&state).await?.into_iter().map(|namespace| namespace.tenant).collect()))
}

/// One tenant.
pub(crate) async fn tenant(
    State(state): State<Arc<AdminState>>,
    TenantPath(tenant): TenantPath,
) -> Result<Json<TenantAnswer>, Refusal> {
    if known(&state).await?.iter().any(|namespace| namespace.tenant == tenant) {
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
        .await?
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
        bundles: bundles_answer(&state, &name).await?,
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
    Ok(Json(bundles_answer(&state, &name).await?))
}

/// Gives every bundle of a namespace up, wherever it is: its topics are closed, clients look up again.
pub(crate) async fn unload(
    State(state): State<Arc<AdminState>>,
    NamespacePath(name): NamespacePath,
) -> Result<StatusCode, Refusal> {
    require(&state, &name).await?;
    for bundle in state.broker()?.bundles(&name).await? {
        give_up(&state, &bundle).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The same for one bundle, named by its range.
pub(crate) async fn unload_bundle(
    State(state): State<Arc<AdminState>>,
    BundlePath { namespace, range }: BundlePath,
) -> Result<StatusCode, Refusal> {
    let bundles = state.broker()?.bundles(&namespace).await?;
    let bundle = bundles.iter().find(|bundle| bundle.range() == range);
    let missing = || Refusal::missing(format!("{namespace} has no bundle {range}"));
    give_up(&state, bundle.ok_or_else(missing)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn give_up(state: &AdminState, bundle: &Bundle) -> Result<(), Refusal> {
    let Some(owner) = state.broker()?.other_owner(bundle).await? else {
        return Ok(state.broker()?.release(bundle).await?);
    };
    let (tenant, namespace) =
        (encoded(&bundle.namespace.tenant), encoded(&bundle.namespace.namespace));
    let path = format!("/admin/v2/namespaces/{tenant}/{namespace}/{}/unload", bundle.range());
    peer::ask(&state.runtime, Method::PUT, &owner.http, &path).await.map(drop)
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
    let topics = state.broker()?.topics(&name).await?;
    Ok(Json(topics.iter().map(ToString::to_string).collect()))
}

async fn require(state: &AdminState, name: &NamespaceName) -> Result<(), Refusal> {
    if known(state).await?.contains(name) || !state.broker()?.topics(name).await?.is_empty() {
        return Ok(());
    }
    Err(Refusal::missing("Namespace does not exist"))
}

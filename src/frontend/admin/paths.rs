//! What a request's path and query name, percent-decoded and checked.

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use super::refusal::Refusal;
use crate::domain::{BookieId, Domain, NamespaceName, TopicName};

/// `{tenant}`.
pub(crate) struct TenantPath(pub(crate) String);

/// `{cluster}`.
pub(crate) struct ClusterPath(pub(crate) String);

/// `{bookie}`, 16 hexadecimal digits.
pub(crate) struct BookiePath(pub(crate) BookieId);

/// `{member}`, a number.
pub(crate) struct MemberPath(pub(crate) u64);

/// `{tenant}/{namespace}`.
pub(crate) struct NamespacePath(pub(crate) NamespaceName);

/// `{tenant}/{namespace}/{bundle}`.
pub(crate) struct BundlePath {
    pub(crate) namespace: NamespaceName,
    pub(crate) range: String,
}

/// `{tenant}/{namespace}/{topic}` below a domain.
pub(crate) struct TopicPath(pub(crate) TopicName);

/// The same with `{subscription}`.
pub(crate) struct SubscriptionPath {
    pub(crate) topic: TopicName,
    pub(crate) subscription: String,
}

/// The query's `force` and friends.
pub(crate) struct Query(String);

impl Query {
    /// True when `name=true` (or `name` alone) is there.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.split('&').any(|pair| match pair.split_once('=') {
            Some((key, value)) => key == name && value.eq_ignore_ascii_case("true"),
            None => pair == name,
        })
    }

    /// The raw value of `name`.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

/// The path's parameters by name.
struct Named(RawPathParams);

impl Named {
    async fn of<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        RawPathParams::from_request_parts(parts, state)
            .await
            .map(Self)
            .map_err(|error| Refusal::invalid(error.to_string()))
    }

    fn get(&self, name: &str) -> Result<&str, Refusal> {
        let found = self.0.iter().find_map(|(key, value)| (key == name).then_some(value));
        found.ok_or_else(|| Refusal::missing(format!("the path has no {name}")))
    }

    fn namespace(&self) -> Result<NamespaceName, Refusal> {
        let text = format!("{}/{}", self.get("tenant")?, self.get("namespace")?);
        Ok(NamespaceName::parse(&text)?)
    }

    fn topic(&self, parts: &Parts) -> Result<TopicName, Refusal> {
        let domain = match parts.extensions.get::<Domain>() {
            Some(domain) => *domain,
            None => domain_of(self.get("domain")?)?,
        };
        Ok(TopicName::new(domain, self.namespace()?, self.get("topic")?)?)
    }
}

fn domain_of(text: &str) -> Result<Domain, Refusal> {
    [Domain::Persistent, Domain::NonPersistent]
        .into_iter()
        .find(|domain| domain.as_str() == text)
        .ok_or_else(|| Refusal::missing("a domain is persistent or non-persistent"))
}

impl<S: Send + Sync> FromRequestParts<S> for TenantPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(Named::of(parts, state).await?.get("tenant")?.to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BookiePath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let named = Named::of(parts, state).await?;
        let text = named.get("bookie")?;
        let id = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
        let wrong = || Refusal::invalid("a bookie is named by 16 hexadecimal digits");
        Ok(Self(BookieId(id.ok_or_else(wrong)?)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MemberPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let named = Named::of(parts, state).await?;
        let id = named.get("member")?.parse().ok().filter(|id| *id > 0);
        let wrong = || Refusal::invalid("a member is named by a number above 0");
        Ok(Self(id.ok_or_else(wrong)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClusterPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(Named::of(parts, state).await?.get("cluster")?.to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NamespacePath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Named::of(parts, state).await?.namespace().map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BundlePath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let named = Named::of(parts, state).await?;
        Ok(Self { namespace: named.namespace()?, range: named.get("bundle")?.to_owned() })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TopicPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Named::of(parts, state).await?.topic(parts).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SubscriptionPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let named = Named::of(parts, state).await?;
        let subscription = named.get("subscription")?.to_owned();
        Ok(Self { topic: named.topic(parts)?, subscription })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_from_any_place() {
        let query = Query("a=1&force=true&deleteSchema".to_owned());
        assert!(query.flag("force"));
        assert!(query.flag("deleteSchema"));
        assert!(!query.flag("a"));
        assert!(!Query("force=false".to_owned()).flag("force"));
        assert_eq!(query.value("a"), Some("1"));
    }
}

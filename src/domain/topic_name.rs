//! `persistent://tenant/namespace/topic[-partition-N]`, parsed once.

/// Longest topic name accepted, in bytes of the full form. Longer names are refused.
pub const TOPIC_NAME_BYTES_MAX: usize = 1024;

const PARTITION_SUFFIX: &str = "-partition-";

/// Whether a topic's messages are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// Stored in ledgers.
    Persistent,
    /// Delivered to whoever is connected, never stored.
    NonPersistent,
}

impl Domain {
    /// The word before `://`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Persistent => "persistent",
            Self::NonPersistent => "non-persistent",
        }
    }
}

/// `tenant/namespace`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceName {
    /// First part.
    pub tenant: String,
    /// Second part.
    pub namespace: String,
}

impl NamespaceName {
    /// Parses `tenant/namespace`.
    pub fn parse(text: &str) -> Result<Self, TopicNameError> {
        let (tenant, namespace) = text
            .split_once('/')
            .ok_or_else(|| TopicNameError::new(text, "a namespace is tenant/namespace"))?;
        check_part(text, tenant, "tenant")?;
        check_part(text, namespace, "namespace")?;
        Ok(Self { tenant: tenant.to_owned(), namespace: namespace.to_owned() })
    }
}

impl std::fmt::Display for NamespaceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.tenant, self.namespace)
    }
}

/// A name that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid topic name {name:?}: {reason}")]
pub struct TopicNameError {
    /// The name given, cut to a printable length.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl TopicNameError {
    fn new(name: &str, reason: &'static str) -> Self {
        Self { name: name.chars().take(128).collect(), reason }
    }
}

/// A topic, or one partition of a partitioned topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName {
    domain: Domain,
    namespace: NamespaceName,
    local: String,
}

impl TopicName {
    /// A name from its parts.
    pub fn new(
        domain: Domain,
        namespace: NamespaceName,
        local: &str,
    ) -> Result<Self, TopicNameError> {
        check_local(local, local)?;
        let name = Self { domain, namespace, local: local.to_owned() };
        if name.to_string().len() > TOPIC_NAME_BYTES_MAX {
            return Err(TopicNameError::new(local, "longer than 1024 bytes"));
        }
        Ok(name)
    }

    /// Parses the full form and the two short forms `topic` (in `public/default`) and
    /// `tenant/namespace/topic`.
    pub fn parse(text: &str) -> Result<Self, TopicNameError> {
        if text.len() > TOPIC_NAME_BYTES_MAX {
            return Err(TopicNameError::new(text, "longer than 1024 bytes"));
        }
        let (domain, rest) = match text.split_once("://") {
            Some(("persistent", rest)) => (Domain::Persistent, rest),
            Some(("non-persistent", rest)) => (Domain::NonPersistent, rest),
            Some(_) => {
                return Err(TopicNameError::new(
                    text,
                    "the part before :// is persistent or non-persistent",
                ));
            }
            None if text.contains('/') => (Domain::Persistent, text),
            None => {
                check_local(text, text)?;
                let namespace =
                    NamespaceName { tenant: "public".into(), namespace: "default".into() };
                return Ok(Self { domain: Domain::Persistent, namespace, local: text.to_owned() });
            }
        };
        let mut parts = rest.splitn(3, '/');
        let (Some(tenant), Some(namespace), Some(local)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(TopicNameError::new(text, "a topic is tenant/namespace/topic"));
        };
        check_part(text, tenant, "tenant")?;
        check_part(text, namespace, "namespace")?;
        check_local(text, local)?;
        let namespace =
            NamespaceName { tenant: tenant.to_owned(), namespace: namespace.to_owned() };
        Ok(Self { domain, namespace, local: local.to_owned() })
    }

    /// Stored or not.
    pub const fn domain(&self) -> Domain {
        self.domain
    }

    /// `tenant/namespace`.
    pub const fn namespace(&self) -> &NamespaceName {
        &self.namespace
    }

    /// The part after the namespace, partition suffix included.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// The partition's index when this names one partition.
    pub fn partition(&self) -> Option<u32> {
        let (base, index) = self.local.rsplit_once(PARTITION_SUFFIX)?;
        if base.is_empty() {
            return None;
        }
        // `parse` alone would accept "+1" and "01", which are ordinary names.
        let parsed: u32 = index.parse().ok()?;
        (parsed.to_string() == index).then_some(parsed)
    }

    /// The partitioned topic this is a partition of; itself when it is none.
    pub fn partitioned(&self) -> Self {
        match self.partition() {
            Some(_) => {
                let base = self.local.rsplit_once(PARTITION_SUFFIX).map_or("", |(base, _)| base);
                Self { local: base.to_owned(), ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// The name of partition `index` of this topic.
    pub fn with_partition(&self, index: u32) -> Self {
        Self { local: format!("{}{PARTITION_SUFFIX}{index}", self.local), ..self.clone() }
    }
}

impl std::fmt::Display for TopicName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}://{}/{}", self.domain.as_str(), self.namespace, self.local)
    }
}

fn check_part(name: &str, part: &str, what: &'static str) -> Result<(), TopicNameError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=' | ':' | '.');
    if part.is_empty() || !part.chars().all(legal) {
        return Err(TopicNameError::new(
            name,
            match what {
                "tenant" => "a tenant is letters, digits and -=:._ and not empty",
                _ => "a namespace is letters, digits and -=:._ and not empty",
            },
        ));
    }
    Ok(())
}

fn check_local(name: &str, local: &str) -> Result<(), TopicNameError> {
    if local.is_empty() {
        return Err(TopicNameError::new(name, "the topic part is empty"));
    }
    if local.contains('/') {
        return Err(TopicNameError::new(name, "the topic part contains a slash"));
    }
    if local.chars().any(char::is_control) {
        return Err(TopicNameError::new(name, "the topic part contains a control character"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_full_forms_name_the_same_topic() {
        let full = TopicName::parse("persistent://public/default/t").unwrap();
        assert_eq!(TopicName::parse("t").unwrap(), full);
        assert_eq!(TopicName::parse("public/default/t").unwrap(), full);
        assert_eq!(full.to_string(), "persistent://public/default/t");
    }

    #[test]
    fn partition_suffix_is_exact() {
        assert_eq!(TopicName::parse("t-partition-3").unwrap().partition(), Some(3));
        for ordinary in
            ["-partition-1", "t-partition-", "t-partition-x", "t-partition-+1", "t-partition-01"]
        {
            assert_eq!(TopicName::parse(ordinary).unwrap().partition(), None, "{ordinary}");
        }
        let base = TopicName::parse("t").unwrap();
        assert_eq!(base.with_partition(3).partitioned(), base);
    }

    #[test]
    fn bad_names_are_refused() {
        let long = "x".repeat(2000);
        for bad in ["", "a/b", "http://a/b/c", "a//c", "a/b/", "a/b/c/d", "a\nb", long.as_str()] {
            assert!(TopicName::parse(bad).is_err(), "{bad:?}");
        }
    }
}

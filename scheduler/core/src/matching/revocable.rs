//! Nodes of a revocable zone: lent to pods that may be revoked, at the times of day that plugin `tdm` names. This is what the
//! plugin's filter and score look at, for as long as no window opens or closes.

use std::sync::Arc;

use tephra_api::keys;

use super::MAX_NODE_SCORE;
use crate::event::Labels;

/// One configured zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Name, the value of the node label.
    pub name: Arc<str>,
    /// Why it takes nobody now; `None` while it is open.
    pub closed: Option<Arc<str>>,
}

/// All configured zones as they are at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// The filter is on.
    pub filters: bool,
    /// The score is on.
    pub scores: bool,
    /// The zones, in order of their names.
    pub list: Vec<Zone>,
}

/// Zone of a node, if it is in one.
pub fn zone_of(labels: &Labels) -> Option<&str> {
    let (_, zone) = labels.iter().find(|(key, _)| key == keys::REVOCABLE_ZONE)?;
    Some(zone.as_str()).filter(|zone| !zone.is_empty())
}

impl Zones {
    /// Looks at nodes at all.
    pub fn matter(&self) -> bool {
        self.filters || self.scores
    }

    fn find(&self, zone: &str) -> Option<&Zone> {
        self.list.iter().find(|known| *known.name == *zone)
    }

    /// Why a node takes no such pod (spec 13, Predicate); no eviction would help.
    pub fn rejection(&self, revocable: bool, node_labels: &Labels) -> Option<Arc<str>> {
        let zone = zone_of(node_labels).filter(|_| self.filters)?;
        match self.find(zone) {
            None => Some(format!("revocable zone {zone} not support").into()),
            Some(Zone { closed: Some(why), .. }) => Some(why.clone()),
            Some(_) => (!revocable).then(|| "not allow to dispatch to revocable node".into()),
        }
    }

    /// Score of a node: revocable pods prefer the nodes of open zones. A closed zone scores 0 (P64).
    pub fn score(&self, revocable: bool, node_labels: &Labels) -> i64 {
        let zone = zone_of(node_labels).filter(|_| self.scores && revocable);
        let open = zone.and_then(|zone| self.find(zone)).is_some_and(|zone| zone.closed.is_none());
        if open { MAX_NODE_SCORE } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(zone: &str) -> Labels {
        vec![(keys::REVOCABLE_ZONE.to_owned(), zone.to_owned())]
    }

    fn zones() -> Zones {
        let zone = |name: &str, closed: Option<&str>| Zone {
            name: name.into(),
            closed: closed.map(Into::into),
        };
        Zones {
            filters: true,
            scores: true,
            list: vec![zone("day", None), zone("night", Some("current time beyond"))],
        }
    }

    #[test]
    fn only_revocable_pods_go_to_an_open_zone_and_nobody_to_a_closed_or_unknown_one() {
        let zones = zones();
        let told = |revocable, labels: &Labels| {
            zones.rejection(revocable, labels).map(|why| why.to_string())
        };
        assert_eq!(told(true, &labels("day")), None);
        assert_eq!(
            told(false, &labels("day")).as_deref(),
            Some("not allow to dispatch to revocable node")
        );
        assert_eq!(told(true, &labels("night")).as_deref(), Some("current time beyond"));
        assert_eq!(told(true, &labels("dusk")).as_deref(), Some("revocable zone dusk not support"));
        assert_eq!(told(false, &Labels::new()), None);
        assert_eq!(told(false, &labels("")), None);
    }

    #[test]
    fn revocable_pods_prefer_open_zones_and_a_closed_zone_scores_nothing() {
        let zones = zones();
        assert_eq!(zones.score(true, &labels("day")), 100);
        assert_eq!(zones.score(false, &labels("day")), 0);
        assert_eq!(zones.score(true, &labels("night")), 0);
        assert_eq!(zones.score(true, &Labels::new()), 0);
    }

    #[test]
    fn filter_and_score_are_switched_apart() {
        let no_filter = Zones { filters: false, ..zones() };
        assert_eq!(no_filter.rejection(false, &labels("night")), None);
        assert_eq!(no_filter.score(true, &labels("day")), 100);
        let no_score = Zones { scores: false, ..zones() };
        assert!(no_score.rejection(false, &labels("night")).is_some());
        assert_eq!(no_score.score(true, &labels("day")), 0);
    }
}

//! The states of a queue and when it changes between them: pure rules (Volcano's queue controller, state x action).

/// `status.state` of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Takes PodGroups. Also what an empty state counts as (C42).
    Open,
    /// Takes none, and has none left.
    Closed,
    /// Takes none; some are left.
    Closing,
    /// Set by somebody else; kept.
    Unknown,
}

impl State {
    /// Reads `status.state`; `None` for a word that is no state.
    pub(super) fn parse(text: &str) -> Option<State> {
        Some(match text {
            "" | "Open" => State::Open,
            "Closed" => State::Closed,
            "Closing" => State::Closing,
            "Unknown" => State::Unknown,
            _ => return None,
        })
    }

    /// As written in `status.state`.
    pub(super) fn text(self) -> &'static str {
        match self {
            State::Open => "Open",
            State::Closed => "Closed",
            State::Closing => "Closing",
            State::Unknown => "Unknown",
        }
    }

    /// Whether the queue refuses new PodGroups on purpose.
    pub(super) fn shut(self) -> bool {
        matches!(self, State::Closed | State::Closing)
    }
}

/// What is to happen to a queue. Open and Close come from the parent queue today; the `Command` objects of
/// `vcctl queue operate` (bus.volcano.sh) will be a second source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Open,
    Close,
    Sync,
}

/// The state after `action`, for a queue that `groups` PodGroups (of any phase) name.
pub(super) fn next(state: State, action: Action, groups: usize) -> State {
    let emptying = if groups == 0 { State::Closed } else { State::Closing };
    match (state, action) {
        (_, Action::Open) | (State::Open, Action::Sync) => State::Open,
        (State::Open | State::Unknown, Action::Close) => emptying,
        (State::Closing, Action::Close | Action::Sync) => emptying,
        (State::Closed, Action::Close | Action::Sync) => State::Closed,
        (State::Unknown, Action::Sync) => State::Unknown,
    }
}

/// What the state of the parent asks of a queue that is in `state`; `by_parent` = its annotation
/// `volcano.sh/closed-by-parent` is `true`.
pub(super) fn follow(parent: State, state: State, by_parent: bool) -> Action {
    match parent {
        State::Closed | State::Closing if !state.shut() => Action::Close,
        State::Open if state.shut() && by_parent => Action::Open,
        _ => Action::Sync,
    }
}

#[cfg(test)]
mod tests {
    use super::{Action::*, State::*, *};

    #[test]
    fn every_cell_of_volcanos_table() {
        let table = [
            // state, open, close without groups, close with groups, sync without, sync with
            (State::Open, State::Open, Closed, Closing, State::Open, State::Open),
            (Closing, State::Open, Closed, Closing, Closed, Closing),
            (Closed, State::Open, Closed, Closed, Closed, Closed),
            (Unknown, State::Open, Closed, Closing, Unknown, Unknown),
        ];
        for (state, open, close_empty, close_busy, sync_empty, sync_busy) in table {
            assert_eq!(next(state, Action::Open, 0), open, "{state:?} Open");
            assert_eq!(next(state, Action::Open, 2), open, "{state:?} Open");
            assert_eq!(next(state, Close, 0), close_empty, "{state:?} Close");
            assert_eq!(next(state, Close, 2), close_busy, "{state:?} Close");
            assert_eq!(next(state, Sync, 0), sync_empty, "{state:?} Sync");
            assert_eq!(next(state, Sync, 2), sync_busy, "{state:?} Sync");
        }
    }

    #[test]
    fn an_empty_state_is_open_and_other_words_are_none() {
        assert_eq!(State::parse(""), Some(State::Open));
        assert_eq!(State::parse("open"), None);
        for state in [State::Open, Closed, Closing, Unknown] {
            assert_eq!(State::parse(state.text()), Some(state));
        }
    }

    #[test]
    fn a_child_closes_with_its_parent_and_opens_with_it_only_if_the_parent_closed_it() {
        for parent in [Closed, Closing] {
            assert_eq!(follow(parent, State::Open, false), Close);
            assert_eq!(follow(parent, Unknown, false), Close);
            assert_eq!(follow(parent, Closing, false), Sync);
        }
        assert_eq!(follow(State::Open, Closed, true), Action::Open);
        assert_eq!(follow(State::Open, Closing, true), Action::Open);
        assert_eq!(follow(State::Open, Closed, false), Sync);
        assert_eq!(follow(Unknown, Closed, true), Sync);
    }
}

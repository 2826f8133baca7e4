//! Where those who serve metrics ask the session loop for the core's overview. The loop answers between two sessions;
//! while a long one runs, the figures of the last answer are served again.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tephra_core::overview::Overview;
use tokio::sync::{mpsc, oneshot};

/// Longest wait for an answer: scrapes usually give up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question, answered by sending the overview.
pub(crate) type Ask = oneshot::Sender<Overview>;

/// Both sides meet here.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The loop, while there is one.
    questions: Mutex<Option<mpsc::Sender<Ask>>>,
    last: Mutex<Option<Arc<Overview>>>,
}

impl Desk {
    /// The loop's side. When it is dropped, nobody answers any more.
    pub(crate) fn open(&self) -> mpsc::Receiver<Ask> {
        let (send, receive) = mpsc::channel(1);
        *self.questions.lock() = Some(send);
        receive
    }

    /// The overview; `None` where no session loop runs.
    pub(crate) async fn ask(&self) -> Option<Arc<Overview>> {
        let questions = self.questions.lock().clone()?;
        let answer = tokio::time::timeout(PATIENCE, async {
            let (ask, answer) = oneshot::channel();
            questions.send(ask).await.ok()?;
            answer.await.ok()
        });
        match answer.await {
            Ok(Some(overview)) => {
                let overview = Arc::new(overview);
                *self.last.lock() = Some(overview.clone());
                Some(overview)
            }
            Ok(None) => None,
            Err(_) => self.last.lock().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_busy_loop_leaves_the_figures_of_the_last_answer_and_a_gone_one_none() {
        let desk = Desk::default();
        assert!(desk.ask().await.is_none(), "nobody answers yet");
        let mut asked = desk.open();
        let nodes = async |desk: &Desk| desk.ask().await.map(|overview| overview.nodes);
        let answer = async {
            let ask = asked.recv().await.unwrap();
            ask.send(Overview { nodes: 7, ..Overview::default() }).unwrap();
        };
        let (first, ()) = tokio::join!(nodes(&desk), answer);
        assert_eq!(first, Some(7));
        assert_eq!(nodes(&desk).await, Some(7), "nobody answers in time");
        drop(asked);
        assert_eq!(nodes(&desk).await, None);
    }
}

//! Where those who serve metrics ask the session loop for the core's figures. The loop answers between two sessions;
//! while a long one runs, the figures of the last answer are served again.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tephra_core::figures::Figures;
use tokio::sync::{mpsc, oneshot};

/// Longest wait for an answer: scrapes usually give up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question, answered by sending the figures.
pub(crate) type Ask = oneshot::Sender<Figures>;

/// Both sides meet here.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The loop, while there is one.
    questions: Mutex<Option<mpsc::Sender<Ask>>>,
    last: Mutex<Option<Arc<Figures>>>,
}

impl Desk {
    /// The loop's side. When it is dropped, nobody answers any more.
    pub(crate) fn open(&self) -> mpsc::Receiver<Ask> {
        let (send, receive) = mpsc::channel(1);
        *self.questions.lock() = Some(send);
        receive
    }

    /// The figures; `None` where no session loop runs.
    pub(crate) async fn ask(&self) -> Option<Arc<Figures>> {
        let questions = self.questions.lock().clone()?;
        let answer = tokio::time::timeout(PATIENCE, async {
            let (ask, answer) = oneshot::channel();
            questions.send(ask).await.ok()?;
            answer.await.ok()
        });
        match answer.await {
            Ok(Some(figures)) => {
                let figures = Arc::new(figures);
                *self.last.lock() = Some(figures.clone());
                Some(figures)
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
        let nodes = async |desk: &Desk| desk.ask().await.map(|figures| figures.nodes);
        let answer = async {
            let ask = asked.recv().await.unwrap();
            ask.send(Figures { nodes: 7, ..Figures::default() }).unwrap();
        };
        let (first, ()) = tokio::join!(nodes(&desk), answer);
        assert_eq!(first, Some(7));
        assert_eq!(nodes(&desk).await, Some(7), "nobody answers in time");
        drop(asked);
        assert_eq!(nodes(&desk).await, None);
    }
}

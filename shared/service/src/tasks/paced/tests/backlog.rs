//! A backlog in which each message waits so long that it comes too late for its start.

use std::collections::VecDeque;

use tickover_core::command::Isolation;

use super::*;
use crate::claim::Hinted;
use crate::ports::Queue as _;

/// A step of the test, and of the rate.
const STEP: u64 = 10;

/// For six hundred steps, so many tasks of a key of one a step are scheduled in each ten, and each message waits for three
/// steps behind others. Returns at which step they begin.
async fn behind_a_backlog(of_ten: u64) -> Vec<u64> {
    let scene = Scene::new();
    scene.service.open_queue(&queue()).await.unwrap();
    let (lease, wait) = (Millis::from_secs(60), Millis::ZERO);
    let request = ClaimRequest { worker: None, max: 1, lease, wait, provides: vec![] };
    let (mut behind, mut begun) = (VecDeque::new(), vec![]);
    for step in 0..600_u64 {
        if step % 10 < of_ten {
            scene.service.schedule(by(rate(1, STEP, 1))).await.unwrap();
        }
        let come = scene.queue.receive(&queue(), 10, Millis::from_secs(3_600), Millis::ZERO).await.unwrap();
        behind.extend(come.into_iter().map(|message| (step, message)));
        while behind.front().is_some_and(|(came, _)| came + 3 <= step) {
            let (_, message) = behind.pop_front().unwrap();
            let claim =
                scene.service.claim_hinted((&message).into(), &request, Isolation::Alone).await.unwrap();
            scene.queue.delete(&queue(), &message.receipt).await.unwrap();
            if let Hinted::Taken(claimed) = claim {
                begun.push(step);
                scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
            }
        }
        scene.advance(STEP);
    }
    begun
}

#[tokio::test]
async fn behind_a_backlog_a_rate_is_used_as_far_as_it_is_asked_for_and_never_exceeded() {
    for of_ten in [3, 6, 8, 10] {
        let begun = behind_a_backlog(of_ten).await;
        let within = |first: u64, span: u64| {
            begun.iter().filter(|at| (first..first + span).contains(*at)).count() as u64
        };
        let used = within(200, 400);
        assert!(used >= 40 * of_ten * 9 / 10, "{of_ten} of ten: {used} in 400 steps");
        // More only while those are under way that weren't told.
        for span in [1, 10, 60, 300] {
            let most = (0..600).map(|first| within(first, span)).max().unwrap_or(0);
            assert!(most <= span + 3, "{of_ten} of ten: {most} within {span} steps");
        }
    }
}

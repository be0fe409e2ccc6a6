//! What became of an event whose sender waits for an answer.

use std::collections::VecDeque;

use crate::execution::journal::{Entry, Happened, answered_event};
use crate::id::EventId;
use crate::payload::Payload;

/// What a journal says of an event with an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<'a> {
    /// It waits, or the code has taken it.
    Open,
    /// It was cleared before the code took it.
    Cleared,
    /// The code has answered it.
    Answered(&'a Payload),
}

/// What a journal says of this event; `None` if it doesn't have it. Of the entries, only those about the event's name, and
/// answers, are needed.
pub fn fate_of<'a>(entries: &'a [Entry], event: &EventId) -> Option<Fate<'a>> {
    let answer = entries.iter().find_map(|entry| match &entry.what {
        Happened::Captured { name, value } if answered_event(name) == Some(event.as_str()) => Some(value),
        _ => None,
    });
    if let Some(answer) = answer {
        return Some(Fate::Answered(answer));
    }
    let place = entries.iter().position(|entry| entry.is_event(event))?;
    Some(if is_cleared(entries, place) { Fate::Cleared } else { Fate::Open })
}

/// Whether the event at this place of a journal was cleared.
fn is_cleared(entries: &[Entry], place: usize) -> bool {
    let Some(Happened::Event { name: of, .. }) = entries.get(place).map(|entry| &entry.what) else {
        return false;
    };
    let mut line = VecDeque::new();
    for (nth, entry) in entries.iter().enumerate() {
        match &entry.what {
            Happened::Event { name, .. } if name == of => line.push_back(nth),
            Happened::Waited { event: Some(name), .. } if name == of => {
                let taken = line.pop_front();
                if taken == Some(place) {
                    return false;
                }
            }
            Happened::EventsCleared { name, count } if name == of => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX).min(line.len());
                if line.drain(..count).any(|cleared| cleared == place) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{EventName, StepName};
    use crate::payload::Json;
    use crate::time::Timestamp;

    fn entry(what: Happened) -> Entry {
        Entry { at: Timestamp::EPOCH, what }
    }

    fn event(name: &str, id: &str) -> Entry {
        let (name, id) = (EventName::parse(name).unwrap(), EventId::parse(id).ok());
        entry(Happened::Event { name, id, payload: None })
    }

    fn taken(name: &str) -> Entry {
        let event = EventName::parse(name).ok();
        entry(Happened::Waited { name: StepName::parse("event:a").unwrap(), event })
    }

    fn cleared(name: &str, count: u32) -> Entry {
        entry(Happened::EventsCleared { name: EventName::parse(name).unwrap(), count })
    }

    fn answer(name: &str) -> Entry {
        let value = Payload::Inline(Json::string(name));
        entry(Happened::Captured { name: StepName::parse(name).unwrap(), value })
    }

    /// What becomes of each event.
    fn fates(entries: &[Entry]) -> Vec<(String, String)> {
        let ids = entries.iter().filter_map(|entry| match &entry.what {
            Happened::Event { id, .. } => id.clone(),
            _ => None,
        });
        let word = |id: &EventId| match fate_of(entries, id).unwrap() {
            Fate::Open => "open".to_owned(),
            Fate::Cleared => "cleared".to_owned(),
            Fate::Answered(Payload::Inline(value)) => value.as_str().to_owned(),
            Fate::Answered(Payload::Blob(_)) => panic!("an item"),
        };
        ids.map(|id| (id.to_string(), word(&id))).collect()
    }

    #[test]
    fn a_clear_takes_the_events_that_no_wait_has_taken_and_an_answer_is_by_its_id() {
        let entries = [
            event("add", "1"),
            event("other", "2"),
            event("add", "3"),
            taken("add"),
            event("add", "4"),
            cleared("add", 1),
            answer("answer:1"),
            taken("add"),
            event("add", "5"),
            cleared("other", 9),
        ];
        let expected =
            [("1", r#""answer:1""#), ("2", "cleared"), ("3", "cleared"), ("4", "open"), ("5", "open")];
        let expected: Vec<_> =
            expected.iter().map(|(id, fate)| ((*id).to_owned(), (*fate).to_owned())).collect();
        assert_eq!(fates(&entries), expected);
        assert_eq!(fate_of(&entries, &EventId::parse("6").unwrap()), None);
        // A run that keeps an answer of an earlier one has it without its event.
        let kept = [answer("on_failure:answer:7")];
        assert!(matches!(fate_of(&kept, &EventId::parse("7").unwrap()), Some(Fate::Answered(_))));
    }
}

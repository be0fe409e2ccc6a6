//! What a panic says, and where it was.

use std::any::Any;
use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// Where this thread last panicked.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics leave their place behind, besides whatever else is done about them. Only a panic hook knows it.
pub(crate) fn note_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PLACE.set(info.location().map(ToString::to_string));
            before(info);
        }));
    });
}

/// What a panic said that was just caught on this thread, and where it was.
pub(crate) fn told(caught: &(dyn Any + Send)) -> String {
    let text = caught.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| caught.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "a panic without words".to_owned());
    match PLACE.take() {
        Some(place) => format!("{text}, at {place}"),
        None => text,
    }
}

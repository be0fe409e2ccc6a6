//! The message and the position of a panic.

use std::any::Any;
use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// The position of this thread's last panic.
    static POSITION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook that records the position of each panic and then calls the previous hook. Only a hook gets the
/// position.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            POSITION.set(info.location().map(ToString::to_string));
            before(info);
        }));
    });
}

/// The message and the position of a panic that was just caught on this thread.
pub(crate) fn message_of(caught: &(dyn Any + Send)) -> String {
    let text = caught.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| caught.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "a panic without a message".to_owned());
    match POSITION.take() {
        Some(place) => format!("{text}, at {place}"),
        None => text,
    }
}

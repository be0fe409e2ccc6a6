//! What happens once, whatever is lost or comes at the same time.

mod fan_in;
mod ingress;
mod lost_answers;
mod transact;

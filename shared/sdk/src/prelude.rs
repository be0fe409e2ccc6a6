//! Everything that a file with a workflow needs: `use tickover::prelude::*;`.

pub use crate::Ctx;
pub use crate::ctx::{forever, within};
pub use crate::error::{Cause, Error, Failure, Result};
pub use crate::options::Scope;
pub use crate::step::{Step, StepError, StepResult as _, remote, step, step_info};
pub use crate::workflow::{AsWorkflow, Workflow};
pub use crate::{OnTimeout, Priority};

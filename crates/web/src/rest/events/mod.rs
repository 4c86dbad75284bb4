//! The route `/api/events`: one stream with the changes of the lists of sessions and of open requests, and with the
//! logs of the sessions that the client follows.

mod followed_log;
mod list_event;
mod list_state;
mod list_watch;
mod stream;

use list_event::ListEvent;
pub(crate) use list_event::StreamedListEvent;
pub(crate) use list_watch::ListWatch;
pub(crate) use stream::*;

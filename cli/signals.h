// Ctrl-C. Owns the process's SIGINT handler: the first one asks the session to stop, one that comes more than
// two seconds later ends the process, but for a REPL, which stays. Also sees to it that a closed pipe ends
// the process quietly, as it does other tools.
#pragma once

#include "include/gk/gk.h"

namespace gk::cli {

/// Installs the handlers. Before watch() is given a session, Ctrl-C ends the process with status 130.
void install_signal_handlers();
/// What becomes of the process where what runs does not stop within two seconds.
enum class WhenInterrupted { Ends, Stays };
/// The session that Ctrl-C stops; null: none. It must be unset before the session ends.
void watch(Session* session, WhenInterrupted then = WhenInterrupted::Ends);
/// What was interrupted is over: the next Ctrl-C is a first one.
void interruption_over();

}  // namespace gk::cli

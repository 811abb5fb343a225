// Ctrl-C. Long work asks interrupted() at places where it can stop cleanly; a second Ctrl-C ends the process at once.
#pragma once

namespace cgcn {

// SIGINT, SIGTERM, and SIGHUP unless it is ignored (nohup). For main() alone: a library leaves signals to its program.
void install_interrupt_handler();
bool interrupted();
void throw_if_interrupted();  // throws Interrupted
void request_interrupt();     // what the signal handler does; for tests and embedding programs
void clear_interrupt();

}  // namespace cgcn

// Ctrl-C. Long work asks interrupted() at places where it can stop cleanly; a second Ctrl-C ends the process at once.
#pragma once

namespace cgcn {

void install_interrupt_handler();  // SIGINT and SIGTERM
bool interrupted();
void throw_if_interrupted();  // throws Interrupted
void request_interrupt();     // what the signal handler does; for tests and embedding programs
void clear_interrupt();

}  // namespace cgcn

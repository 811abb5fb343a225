// Ctrl-C. Long work asks interrupted() at places where it can stop cleanly.
#pragma once

namespace cgcn {

bool interrupted();
void throw_if_interrupted();  // throws Interrupted
void request_interrupt();     // what the program's signal handler does (process/signals.h)
void clear_interrupt();

}  // namespace cgcn

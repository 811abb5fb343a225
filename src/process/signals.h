// What a program does to its process at its start, and a library leaves alone: signals and the standard streams.
#pragma once

namespace cgcn {

// Call first in main(): where a shell closed one of the three standard streams, something harmless takes its number, so
// that no file of ours gets it and with it what is printed.
void occupy_standard_streams();

// SIGINT, SIGTERM, and SIGHUP unless it is ignored (nohup): the first asks the work to stop (common/interrupt.h), a
// second Ctrl-C ends the process at once.
void install_interrupt_handler();

// SIGBUS: a mapped file that was cut short becomes one message that names it, and exit status 1; from elsewhere than a
// watched mapping (common/mapping_faults.h) it ends the process as before.
void install_mapping_fault_handler();

}  // namespace cgcn

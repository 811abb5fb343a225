// One command of the program as a process of its own.
#pragma once

#include <string>
#include <vector>

#include "common/file.h"

namespace cgcn {

// Runs the program with its output in a file. Throws Error with the last message if it fails.
// Ctrl-C is passed on to it, and thrown as Interrupted when it has ended.
void run_program(const fs::path& program, const std::vector<std::string>& arguments, const fs::path& output);

}  // namespace cgcn

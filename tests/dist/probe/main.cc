// A small program for tests/dist/mpirun_test.py: sums, failures and waiting in a group that mpirun started.
//   dist_probe sums | fail RANK | fail-together RANK | version RANK | hold FILE
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "common/hash.h"
#include "common/log.h"
#include "dist/slot_sum.h"
#include "process/launch.h"

namespace cgcn::dist {
namespace {

// Numbers of a slot that are the same whoever makes them.
std::vector<float> slot_values(uint32_t slot, size_t floats) {
  std::vector<float> values(floats);
  uint64_t state = 1 + slot;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<int64_t>(state)) / static_cast<float>(1 + (state >> 40));
  }
  return values;
}

void print_sums(Group& group) {
  Hasher hasher;
  for (uint32_t slots = 1; slots <= 7; ++slots)
    for (const size_t floats : {size_t{1}, size_t{1000}, size_t{100'000}}) {
      SlotSum sum(group, floats);
      sum.begin(slots);
      std::vector<float> values(floats);
      for (uint32_t slot = sum.own().begin; slot < sum.own().end; ++slot) {
        values = slot_values(slot, floats);
        if (slot + 1 < sum.own().end)
          sum.add(values);
        else
          sum.add_last(values, 0, floats);
      }
      if (sum.own().size() == 0) sum.add_nothing(0, floats);
      sum.finish(values);
      const std::string text(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
      for (const std::string& other : group.all_gather(text))
        if (other != text) throw Error("ranks have different sums");
      hasher.add(text);
    }
  fmt::print("{}\n", hasher.digest128_hex());
}

void run(Group& group, const std::string& what, const std::string& value) {
  const auto number = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
  if (what == "sums") return print_sums(group);
  if (what == "version")
    return group.require_same("the version of clustergcn", group.rank() == number ? "2" : "1", "install one version");
  if (what == "fail-together")
    return group.together([&] {
      if (group.rank() == number) throw Error("fails", "here", "something else");
    });
  if (what == "fail") {
    if (group.rank() == number) throw Error("fails", "here", "something else");
    return group.barrier();
  }
  if (what == "hold") {  // computes for ever; the file says that all are there, and which process is which
    std::string processes;
    for (const uint32_t id : group.all_gather_values(static_cast<uint32_t>(::getpid())))
      processes += std::to_string(id) + "\n";
    if (group.is_first()) {
      std::ofstream(value + ".part") << processes;
      std::rename((value + ".part").c_str(), value.c_str());
    }
    for (;; group.barrier()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw Error("is no such thing to do", what);
}

}  // namespace
}  // namespace cgcn::dist

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "", value = argc > 2 ? argv[2] : "";
  cgcn::dist::GroupOptions options;
  if (const char* timeout = std::getenv("PROBE_TIMEOUT"))
    options.peer_timeout = static_cast<uint32_t>(std::strtoul(timeout, nullptr, 10));
  try {
    cgcn::dist::run_in_group(options, [&](cgcn::dist::Group& group) { cgcn::dist::run(group, what, value); });
    return 0;
  } catch (const cgcn::dist::SilentExit& end) {
    return end.status;
  } catch (const std::exception& problem) {
    cgcn::log::write_line(std::string("error: ") + problem.what());
    return 1;
  }
}

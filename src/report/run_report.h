// The report of a run that this process trains: a page that is served while it trains, and report.html at its end.
#pragma once

#include <future>

#include "common/file.h"
#include "report/live_server.h"

namespace cgcn {

// The page of --live, from before there is a run to show.
class LiveReport {
 public:
  explicit LiveReport(uint16_t port);
  void begin(const fs::path& run);
  void finish() { server_.finish(); }

 private:
  std::promise<fs::path> begun_;
  std::shared_future<fs::path> folder_;
  LiveServer server_;
};

// Whether there is one: a report that cannot be written takes nothing from the run.
bool write_run_report(const fs::path& folder);

}  // namespace cgcn

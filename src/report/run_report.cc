#include "report/run_report.h"

#include <chrono>

#include "common/error.h"
#include "common/json.h"
#include "common/log.h"
#include "report/page.h"
#include "report/run_record.h"
#include "train/run_directory.h"

namespace cgcn {
namespace {

LiveServer::Content live_content(const std::shared_future<fs::path>& folder) {
  const auto shown_run = [folder] {
    if (folder.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      throw Error("the run has not started yet", "", "reload the page in a moment");
    return read_runs({folder.get()});
  };
  return {[shown_run] { return make_page(shown_run(), /*live=*/true); }, [shown_run] { return to_text(shown_run()); }};
}

}  // namespace

LiveReport::LiveReport(uint16_t port) : folder_(begun_.get_future()), server_(live_content(folder_), port) {}

void LiveReport::begin(const fs::path& run) {
  begun_.set_value(run);
  log::write_line("live report: " + server_.address());
}

bool write_run_report(const fs::path& folder) {
  if (!RunDirectory::is_run(folder)) return false;
  try {
    nlohmann::json data = read_runs({folder});
    nlohmann::json& state = data["runs"][0]["state"];
    if (state == "running") state = "stopped";  // it is this process that has the run, and it is about to end
    write_file_atomically(RunFiles(folder).report(), make_page(data, /*live=*/false));
    return true;
  } catch (const std::exception& problem) {
    log::warn("the report was not written: {}", problem.what());
    return false;
  }
}

}  // namespace cgcn

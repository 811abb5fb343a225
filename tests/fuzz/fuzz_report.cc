// What report reads of a run's folder.
#include "fuzz_support.h"
#include "report/page.h"
#include "report/run_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cgcn::fs::path run = cgcn::fuzz::write_files(
      "run", data, size,
      {"config.toml", "metrics.jsonl", "environment.json", "result.json", "clusters.json", "embeddings.json"});
  cgcn::fuzz::attempt([&] { cgcn::to_script_text(cgcn::read_runs({run})); });
  return 0;
}

// meta.json of a store. The input is merged into the true one (RFC 7396) and the checksum made to fit, so that what
// lies behind it is reached; what is no JSON object stands for the whole file.
#include "common/hash.h"
#include "common/json.h"
#include "fuzz_support.h"
#include "graph/graph_builder.h"

namespace {

using nlohmann::json;

cgcn::Dataset small_dataset() {
  cgcn::EdgeList edges(/*weighted=*/true);
  for (cgcn::NodeId v = 0; v < 6; ++v) edges.add(v, (v + 1) % 6, 0.5f);
  cgcn::Dataset data;
  data.name = "fuzz";
  data.graph = build_graph(6, edges, {}, nullptr);
  data.features = cgcn::FeatureMatrix::dense(std::vector<float>(12, 1.0f), 2);
  data.labels = cgcn::Labels::single(std::vector<int32_t>{0, 1, 2, 0, 1, -1}, 3);
  data.split = std::vector<uint8_t>{0, 0, 0, 1, 2, 255};
  data.graph_ids = std::vector<uint32_t>(6, 0);
  data.ids = cgcn::NodeIds::integers(std::vector<int64_t>{5, 6, 7, 8, 9, 10});
  data.class_names = {"a", "b", "c"};
  return data;
}

const json& true_meta(const cgcn::fs::path& store) {
  static const json meta = [&] {
    cgcn::write_store(store, small_dataset(), cgcn::StagedDirectory::Existing::kReplace);
    return json::parse(cgcn::read_text_file(store / "meta.json"));
  }();
  return meta;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cgcn::fs::path store = cgcn::fuzz::scratch_folder() / "store";
  json meta = true_meta(store);
  std::string text(reinterpret_cast<const char*>(data), size);
  if (const json patch = cgcn::parse_json(text); patch.is_object()) {
    meta.merge_patch(patch);
    if (!patch.contains("checksum")) {
      meta.erase("checksum");
      const std::string summed = meta.dump(-1, ' ', false, json::error_handler_t::replace);
      meta["checksum"] = cgcn::hex64(cgcn::checksum(summed.data(), summed.size()));
    }
    text = cgcn::to_text(meta);
  }
  std::ofstream(store / "meta.json", std::ios::binary) << text;
  cgcn::fuzz::attempt([&] {
    const cgcn::Store opened(store);
    opened.dataset();
    opened.bytes_on_disk();
  });
  return 0;
}

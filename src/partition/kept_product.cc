// N(A)·X beside what it was computed from: a store of its own with features and no edges, keyed by the normalisation's
// name and bound to that content. One of other content, or a damaged one, is computed again.
#include "partition/kept_product.h"

#include "common/log.h"
#include "common/mapping_faults.h"
#include "partition/aggregate.h"
#include "partition/partition.h"

namespace cgcn {

using kernels::Precision;

namespace {

// What is kept there; nothing if there is none, or one of other content, or a damaged one.
std::optional<FeatureMatrix> find_features(const fs::path& path, const char* name, const nlohmann::json& key,
                                           const FeatureMatrix& features) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    const Store kept(path);
    FeatureMatrix product = kept.dataset().features;
    if (kept.extra().value(name, nlohmann::json()) == key && product.rows() == features.rows() &&
        product.columns() == features.columns() && product.is_dense() == features.is_dense())
      return product;
    log::note("{} was computed from other data: computing it again", path.string());
  } catch (const Error& problem) {
    log::warn("{}; computing it again", problem.problem());
  }
  return std::nullopt;
}

fs::path store_product(const Store& store, const Normalisation& normalisation, const char* suffix = "") {
  return store.derived(fs::path("cache") / ("aggregated-" + normalisation.name() + suffix));
}

// Where a product is written that its store's folder does not take.
std::unique_ptr<StoreWriter> write_elsewhere(const fs::path& path, const Error& problem) {
  fs::path other = temporary_sibling(scratch_folder() / path.filename());
  other.replace_extension();  // it is nobody's leftover once it is whole
  log::note("A·X is not kept: {}: {}", path.string(), problem.problem());
  try {
    return std::make_unique<StoreWriter>(other, StagedDirectory::Existing::kRefuse, OutputFile::Storing::kLater);
  } catch (const Error&) {
    throw problem;
  }
}

// A store of features and no edges, bound to what they were made from by `name`.
FeatureMatrix finish_features(const Dataset& data, const char* name, const nlohmann::json& key, StoreWriter& writer) {
  writer.write_array("adjacency_offsets",
                     std::span<const EdgeOffset>(Buffer<EdgeOffset>(size_t{data.num_nodes()} + 1, 0)));
  writer.write_array("adjacency_targets", std::span<const NodeId>());
  writer.declare_graph(data.num_nodes(), 0, 0, data.graph.directed(), false);
  writer.set_extra(name, key);
  check_mappings();
  writer.finish(data.name, FeatureHash::kOfBytes);
  return Store(writer.target(), Verify::kShapesOnly).dataset().features;
}

// Written by `writer` and opened.
FeatureMatrix write_product(const ProductSource& source, const nlohmann::json& key, StoreWriter& writer) {
  write_product_rows(source, writer);
  return finish_features(source.data, "aggregated", key, writer);
}

// For a product of features whose rows are normalised.
const char* suffix_of(const FeatureMatrix* rows_normalised) { return rows_normalised != nullptr ? "-rows" : ""; }

enum class Unwritable { kRefuse, kElsewhere };

nlohmann::json product_key(const Dataset& data, const Normalisation& normalisation) {
  return {{"content", data.content_hash}, {"normalisation", normalisation.name()}};
}

FeatureMatrix ensure_product(const fs::path& path, ProductSource source, const FeatureMatrix* rows_normalised,
                             Unwritable unwritable) {
  nlohmann::json key = product_key(source.data, source.normalisation);
  if (rows_normalised != nullptr) {
    source.data.features = *rows_normalised;
    key["rows"] = "normalised";
  }
  if (source.precision == Precision::kBFloat16) key["precision"] = "bfloat16";
  if (auto found = find_features(path, "aggregated", key, source.data.features)) return *std::move(found);
  // What a crash of the machine damages is found by its checksums, and computed again.
  std::unique_ptr<StoreWriter> writer;
  bool is_elsewhere = false;
  const auto go_elsewhere = [&](const Error& problem) {
    writer = write_elsewhere(path, problem);
    is_elsewhere = true;
  };
  try {
    writer = std::make_unique<StoreWriter>(path, StagedDirectory::Existing::kReplace, OutputFile::Storing::kLater);
  } catch (const Error& problem) {
    if (unwritable == Unwritable::kRefuse) throw;
    go_elsewhere(problem);
  }
  FeatureMatrix product;
  std::error_code ignored;
  try {
    product = write_product(source, key, *writer);
  } catch (const Error& problem) {
    // Another store may have been put in the place of this one, which is still mapped; the user's cache may be small.
    const bool in_store = path.parent_path().parent_path() == source.files.path();
    if (unwritable == Unwritable::kRefuse || is_elsewhere || (in_store && fs::exists(path.parent_path(), ignored)))
      throw;
    go_elsewhere(problem);
    product = write_product(source, key, *writer);
  }
  // What lies outside its store is only there as long as it is mapped.
  if (is_elsewhere) fs::remove_all(writer->target(), ignored);
  return product;
}

}  // namespace

fs::path aggregated_path(const ClusterLayout& layout, const Normalisation& normalisation, Precision precision,
                         const FeatureMatrix* rows_normalised) {
  const char* suffix = precision == Precision::kBFloat16 ? "-bfloat16" : "";
  return layout.files->derived(fs::path("aggregated") / (normalisation.name() + suffix + suffix_of(rows_normalised)));
}

fs::path rounded_path(const ClusterLayout& layout) { return layout.files->derived("aggregated/features-bfloat16"); }

FeatureMatrix aggregated_features(const ClusterLayout& layout, const Normalisation& normalisation, uint64_t memory,
                                  const FeatureMatrix* rows_normalised, Precision precision) {
  if (!layout.data.features.is_dense()) precision = Precision::kFloat32;
  return ensure_product(aggregated_path(layout, normalisation, precision, rows_normalised),
                        {*layout.files, layout.data, normalisation, memory, precision}, rows_normalised,
                        Unwritable::kRefuse);
}

FeatureMatrix rounded_features(const ClusterLayout& layout) {
  const FeatureMatrix& x = layout.data.features;
  if (x.kind() != FeatureMatrix::Kind::kDense32) return x;
  const fs::path path = rounded_path(layout);
  const nlohmann::json key = {{"content", layout.data.content_hash}};
  if (auto found = find_features(path, "rounded", key, x)) return *std::move(found);
  StoreWriter writer(path, StagedDirectory::Existing::kReplace, OutputFile::Storing::kLater);
  write_rounded_rows(x, writer);
  return finish_features(layout.data, "rounded", key, writer);
}

FeatureMatrix aggregated_features(const Store& store, const Normalisation& normalisation, uint64_t memory,
                                  const FeatureMatrix* rows_normalised) {
  return ensure_product(store_product(store, normalisation, suffix_of(rows_normalised)),
                        {store, store.dataset(), normalisation, memory}, rows_normalised, Unwritable::kElsewhere);
}

std::optional<FeatureMatrix> kept_aggregated_features(const Store& store, const Normalisation& normalisation) {
  const Dataset data = store.dataset();
  return find_features(store_product(store, normalisation), "aggregated", product_key(data, normalisation),
                       data.features);
}

void forget_aggregated(const Store& store, const Normalisation& normalisation) {
  const fs::path path = store_product(store, normalisation), old = temporary_sibling(path);
  std::error_code ignored;
  fs::rename(path, old, ignored);  // at once, so that nobody reads half of it
  fs::remove_all(old, ignored);
}

}  // namespace cgcn

// N(A)·X beside what it was computed from: a store of its own with features and no edges, keyed by the normalisation's
// name and bound to that content. One of other content, or a damaged one, is computed again.
#include "partition/kept_product.h"

#include "common/log.h"
#include "common/mapping_faults.h"
#include "partition/aggregate.h"
#include "partition/partition.h"

namespace cgcn {
namespace {

// The product that is kept there; nothing if there is none, or one of other content, or a damaged one.
std::optional<FeatureMatrix> find_product(const fs::path& path, const nlohmann::json& key,
                                          const FeatureMatrix& features) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    const Store kept(path);
    FeatureMatrix product = kept.dataset().features;
    if (kept.extra().value("aggregated", nlohmann::json()) == key && product.rows() == features.rows() &&
        product.columns() == features.columns() && product.is_dense() == features.is_dense())
      return product;
    log::note("{} was computed from other data: computing it again", path.string());
  } catch (const Error& problem) {
    log::warn("{}; computing it again", problem.problem());
  }
  return std::nullopt;
}

fs::path store_product(const Store& store, const Normalisation& normalisation) {
  return store.path() / "cache" / ("aggregated-" + normalisation.name());
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

struct ProductSource {
  const Store& files;
  Dataset data;  // of the files, perhaps with other features
  const Normalisation& normalisation;
  uint64_t memory;
};

// Written by `writer` and opened.
FeatureMatrix write_product(const ProductSource& source, const nlohmann::json& key, StoreWriter& writer) {
  const Dataset& data = source.data;
  write_product_rows(source.files, data, source.normalisation, source.memory, writer);
  writer.write_array("adjacency_offsets",
                     std::span<const EdgeOffset>(Buffer<EdgeOffset>(size_t{data.num_nodes()} + 1, 0)));
  writer.write_array("adjacency_targets", std::span<const NodeId>());
  writer.declare_graph(data.num_nodes(), 0, 0, data.graph.directed(), false);
  writer.set_extra("aggregated", key);
  check_mappings();
  writer.finish(data.name, FeatureHash::kOfBytes);
  return Store(writer.target(), Verify::kShapesOnly).dataset().features;
}

enum class Unwritable { kRefuse, kElsewhere };

nlohmann::json product_key(const Dataset& data, const Normalisation& normalisation) {
  return {{"content", data.content_hash}, {"normalisation", normalisation.name()}};
}

FeatureMatrix ensure_product(fs::path path, ProductSource source, bool rows_normalised, Unwritable unwritable) {
  FeatureMatrix& features = source.data.features;
  nlohmann::json key = product_key(source.data, source.normalisation);
  if (rows_normalised) {
    path += "-rows";
    key["rows"] = "normalised";
  }
  if (auto found = find_product(path, key, features)) return *std::move(found);
  if (rows_normalised) features = features.with_normalised_rows();  // a copy of X: only if it is needed
  // What a crash of the machine damages is found by its checksums, and computed again.
  std::unique_ptr<StoreWriter> writer;
  try {
    writer = std::make_unique<StoreWriter>(path, StagedDirectory::Existing::kReplace, OutputFile::Storing::kLater);
  } catch (const Error& problem) {
    if (unwritable == Unwritable::kRefuse) throw;
    writer = write_elsewhere(path, problem);
  }
  FeatureMatrix product;
  std::error_code ignored;
  try {
    product = write_product(source, key, *writer);
  } catch (const Error& problem) {
    // Another store may have been put in the place of this one, which is still mapped.
    if (unwritable == Unwritable::kRefuse || writer->target() != path || fs::exists(path.parent_path(), ignored)) throw;
    writer = write_elsewhere(path, problem);
    product = write_product(source, key, *writer);
  }
  // What lies outside its store is only there as long as it is mapped.
  if (writer->target() != path) fs::remove_all(writer->target(), ignored);
  return product;
}

}  // namespace

fs::path aggregated_path(const ClusterLayout& layout, const Normalisation& normalisation) {
  return layout.path / "aggregated" / normalisation.name();
}

FeatureMatrix aggregated_features(const ClusterLayout& layout, const Normalisation& normalisation, uint64_t memory,
                                  bool rows_normalised) {
  return ensure_product(aggregated_path(layout, normalisation), {*layout.files, layout.data, normalisation, memory},
                        rows_normalised, Unwritable::kRefuse);
}

FeatureMatrix aggregated_features(const Store& store, const Normalisation& normalisation, uint64_t memory,
                                  bool rows_normalised) {
  return ensure_product(store_product(store, normalisation), {store, store.dataset(), normalisation, memory},
                        rows_normalised, Unwritable::kElsewhere);
}

std::optional<FeatureMatrix> kept_aggregated_features(const Store& store, const Normalisation& normalisation) {
  const Dataset data = store.dataset();
  return find_product(store_product(store, normalisation), product_key(data, normalisation), data.features);
}

void forget_aggregated(const Store& store, const Normalisation& normalisation) {
  const fs::path path = store_product(store, normalisation), old = temporary_sibling(path);
  std::error_code ignored;
  fs::rename(path, old, ignored);  // at once, so that nobody reads half of it
  fs::remove_all(old, ignored);
}

}  // namespace cgcn

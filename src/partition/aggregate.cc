// N(A)·X, the first layer's aggregation (the paper, section 4.1: it has no weights, so once is enough).
//
// Rows are computed in chunks by all threads and written as they come; each is summed in the order of its neighbours,
// so that the bits do not depend on the number of threads. The result is a store of its own with features and no links,
// keyed by the normalisation's name and bound to the content it was computed from.
#include <algorithm>
#include <optional>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/normalised_rows.h"
#include "kernels/spmm.h"
#include "partition/partition.h"

namespace cgcn {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 20;  // of the product, computed before they are written
constexpr uint64_t kMappedLeast = uint64_t{512} << 20;
constexpr size_t kRowBlock = 256;

class Aggregator {
 public:
  Aggregator(const Store& files, const Dataset& data, const Normalisation& normalisation, StoreWriter& writer)
      : files_(files),
        features_(data.features),
        rows_(data.graph, normalisation),
        n_(data.num_nodes()),
        writer_(writer),
        progress_("A·X", data.num_nodes()) {}

  void write() {
    if (features_.is_dense())
      write_dense();
    else
      write_sparse();
  }

 private:
  void finish_chunk(size_t rows) {
    // Mapped pages are kept from one chunk to the next while there is plenty of memory: finding them again costs time.
    if (memory_figures().file_backed > std::max(kMappedLeast, available_memory() / 4)) files_.release_pages();
    progress_.advance(rows);
  }

  void write_dense() {
    const size_t width = features_.columns();
    const size_t chunk_rows = std::max<size_t>(kRowBlock, kChunkBytes / (width * sizeof(float)));
    Buffer<float> chunk(std::min<size_t>(chunk_rows, n_) * width);
    ArrayWriter array = writer_.begin_array<float>("features", width);
    for (size_t begin = 0; begin < n_; begin += chunk_rows) {
      throw_if_interrupted();
      const size_t end = std::min<size_t>(n_, begin + chunk_rows);
      parallel_blocks(end - begin, kRowBlock, [&](size_t first, size_t last) {
        const kernels::RowRange rows{begin + first, begin + last};
        if (features_.kind() == FeatureMatrix::Kind::kDense32)
          sum_rows(rows, chunk.data() + first * width);
        else
          sum_half_rows(rows, chunk.data() + first * width);
      });
      array.append(std::span<const float>(chunk.data(), (end - begin) * width));
      finish_chunk(end - begin);
    }
    writer_.end_array("features", array);
    writer_.declare_features(FeatureMatrix::Kind::kDense32, features_.columns());
  }

  void sum_rows(kernels::RowRange rows, float* out) const {
    NormalisedRows::Block block;
    rows_.fill(rows.begin, rows.end, block);
    const size_t width = features_.columns();
    kernels::aggregate(block.view, {features_.dense32().data(), n_, width}, {0, rows.size()}, {}, {},
                       {out, rows.size(), width});
  }

  void sum_half_rows(kernels::RowRange rows, float* out) const {
    const size_t width = features_.columns();
    Buffer<float> row(width);
    std::fill_n(out, rows.size() * width, 0.0f);
    for (size_t v = rows.begin; v < rows.end; ++v, out += width)
      rows_.for_each(static_cast<NodeId>(v), [&](NodeId u, float value) {
        features_.copy_row(u, row.data());
        for (size_t j = 0; j < width; ++j) out[j] += value * row[j];
      });
  }

  // A thread's row under construction: a dense accumulator and the columns that it holds.
  struct SparseRow {
    explicit SparseRow(size_t width) : sums(width, 0.0f), seen(width, 0) {}
    void add(uint32_t column, float value) {
      if (seen[column] == 0) {
        seen[column] = 1;
        columns.push_back(column);
      }
      sums[column] += value;
    }
    Buffer<float> sums;
    Buffer<uint8_t> seen;
    std::vector<uint32_t> columns;
  };
  // The rows that one block of a chunk made.
  struct SparseBlock {
    std::vector<uint64_t> lengths;
    std::vector<uint32_t> columns;
    std::vector<float> values;
  };

  void sum_sparse_row(NodeId v, SparseRow& row, SparseBlock& out) const {
    if (features_.kind() == FeatureMatrix::Kind::kIdentity) {  // the row of N(A) itself
      const size_t before = out.columns.size();
      rows_.for_each(v, [&](NodeId u, float value) {
        out.columns.push_back(u);
        out.values.push_back(value);
      });
      out.lengths.push_back(out.columns.size() - before);
      return;
    }
    rows_.for_each(v, [&](NodeId u, float value) {
      const auto columns = features_.row_columns(u);
      const auto values = features_.row_values(u);
      for (size_t k = 0; k < columns.size(); ++k) row.add(columns[k], value * values[k]);
    });
    std::sort(row.columns.begin(), row.columns.end());
    for (const uint32_t column : row.columns) {
      out.columns.push_back(column);
      out.values.push_back(row.sums[column]);
      row.sums[column] = 0;
      row.seen[column] = 0;
    }
    out.lengths.push_back(row.columns.size());
    row.columns.clear();
  }

  void write_sparse() {
    constexpr size_t kBlock = 1024, kBlocksPerChunk = 64;
    ArrayWriter offsets = writer_.begin_array<EdgeOffset>("features_offsets");
    ArrayWriter columns = writer_.begin_array<uint32_t>("features_columns");
    ArrayWriter values = writer_.begin_array<float>("features_values");
    EdgeOffset total = 0;
    offsets.append(std::span<const EdgeOffset>(&total, 1));
    const size_t width = features_.kind() == FeatureMatrix::Kind::kIdentity ? 0 : features_.columns();
    for (size_t begin = 0; begin < n_; begin += kBlock * kBlocksPerChunk) {
      throw_if_interrupted();
      const size_t end = std::min<size_t>(n_, begin + kBlock * kBlocksPerChunk);
      std::vector<SparseBlock> blocks((end - begin + kBlock - 1) / kBlock);
      parallel_blocks(end - begin, kBlock, [&](size_t first, size_t last) {
        SparseRow row(width);
        for (size_t r = first; r < last; ++r)
          sum_sparse_row(static_cast<NodeId>(begin + r), row, blocks[first / kBlock]);
      });
      for (const SparseBlock& block : blocks) {
        columns.append(std::span<const uint32_t>(block.columns));
        values.append(std::span<const float>(block.values));
        for (const uint64_t length : block.lengths) {
          total += length;
          offsets.append(std::span<const EdgeOffset>(&total, 1));
        }
      }
      finish_chunk(end - begin);
    }
    writer_.end_array("features_offsets", offsets);
    writer_.end_array("features_columns", columns);
    writer_.end_array("features_values", values);
    writer_.declare_features(FeatureMatrix::Kind::kSparse, features_.columns());
  }

  const Store& files_;
  const FeatureMatrix& features_;
  const NormalisedRows rows_;
  const NodeId n_;
  StoreWriter& writer_;
  Progress progress_;
};

// The product that is kept there; nothing where there is none, or one of other content, or a damaged one.
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

FeatureMatrix ensure_product(const fs::path& path, const Store& files, const Dataset& data,
                             const Normalisation& normalisation) {
  const nlohmann::json key = {{"content", data.content_hash}, {"normalisation", normalisation.name()}};
  if (auto found = find_product(path, key, data.features)) return *std::move(found);
  StoreWriter writer(path, StagedDirectory::Existing::kReplace);
  Aggregator(files, data, normalisation, writer).write();
  writer.write_array("adjacency_offsets",
                     std::span<const EdgeOffset>(Buffer<EdgeOffset>(size_t{data.num_nodes()} + 1, 0)));
  writer.write_array("adjacency_targets", std::span<const NodeId>());
  writer.declare_graph(data.num_nodes(), 0, 0, data.graph.directed(), false);
  writer.set_extra("aggregated", key);
  writer.finish(data.name);
  return Store(path, Verify::kShapesOnly).dataset().features;
}

}  // namespace

FeatureMatrix aggregated_features(const ClusterLayout& layout, const Normalisation& normalisation) {
  return ensure_product(layout.path / "aggregated" / normalisation.name(), *layout.files, layout.data, normalisation);
}

FeatureMatrix aggregated_features(const Store& store, const Normalisation& normalisation) {
  return ensure_product(store.path() / "cache" / ("aggregated-" + normalisation.name()), store, store.dataset(),
                        normalisation);
}

}  // namespace cgcn

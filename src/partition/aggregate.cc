// N(A)·X, the first layer's aggregation (the paper, section 4.1: it has no weights, so once is enough).
//
// Rows are computed in chunks by all threads and written as they come; each is summed in the order of its neighbours,
// so that the bits do not depend on the number of threads. The result is a store of its own with features and no edges,
// keyed by the normalisation's name and bound to the content it was computed from.
#include <algorithm>
#include <optional>

#include "common/interrupt.h"
#include "common/log.h"
#include "common/mapping_faults.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/normalised_rows.h"
#include "kernels/dropout.h"
#include "kernels/spmm.h"
#include "partition/kept_product.h"
#include "partition/partition.h"

namespace cgcn {
namespace {

using kernels::Precision;

constexpr size_t kStripBytes = size_t{128} << 20;  // of X, read again and again: about half of a last-level cache
constexpr size_t kLine = 16;                       // columns of a cache line
constexpr size_t kWidestStrip = 64;                // columns
constexpr size_t kChunk = 16384;                   // rows
constexpr size_t kRowBlock = 256;
constexpr size_t kCopiedRows = 16384;  // of X into a strip at a time: what is mapped of it

// X as strips, two chunks, and the mapped files. The edges of a chunk are counted as the whole graph's, values and all:
// nodes may be of very unlike degrees.
uint64_t memory_for_all_strips(const FeatureMatrix& features, const CsrGraph& graph) {
  const uint64_t row_bytes = uint64_t{features.columns()} * sizeof(float);
  return features.stored_bytes() + 3 * graph.stored_bytes() + (graph.num_nodes() + 2 * kChunk) * row_bytes;
}

// To bfloat16, packed at the beginning.
BFloat16* round_in_place(float* values, size_t size) {
  auto* rounded = reinterpret_cast<BFloat16*>(values);
  const kernels::ConstMatrix from(values, 1, size);
  kernels::apply_dropout({}, {0, 1}, from, kernels::HalfMatrix(rounded, 1, size));
  return rounded;
}

class Aggregator {
 public:
  Aggregator(const Store& files, const Dataset& data, const Normalisation& normalisation, uint64_t memory,
             Precision precision, StoreWriter& writer)
      : files_(files),
        features_(data.features),
        rows_(data.graph, normalisation),
        n_(data.num_nodes()),
        memory_(memory),
        rounds_(precision == Precision::kBFloat16),
        writer_(writer),
        progress_("A·X", data.num_nodes()) {}

  void write() {
    if (features_.is_dense())
      write_dense();
    else
      write_sparse();
  }

 private:
  // The rows of N(A) that a chunk is summed with: made for every strip if memory is short, else for the first.
  enum class Links { kMadeAgain, kMadeOnce, kThere };

  // X is copied as strips of columns into large pages, so that the rows that a sum reads lie in the last-level cache
  // and few pages, and all rows of a chunk are summed on a strip. A chunk is written while the next is summed. If
  // memory does not hold all strips, there is room for one, and every chunk copies them again.
  void write_dense() {
    const size_t width = features_.columns(), row_bytes = width * sizeof(float);
    // As many columns as the cache holds, but whole cache lines; fewer only if memory is short.
    const size_t column_bytes = std::max<size_t>(n_, 1) * sizeof(float);
    const size_t cached = std::max<size_t>(kStripBytes / column_bytes / kLine * kLine, kLine);
    const size_t strip = std::clamp<size_t>(std::min<uint64_t>(cached, memory_ / 2 / column_bytes), 1, kWidestStrip);
    const uint64_t mapped = features_.stored_bytes() + rows_.graph().stored_bytes();
    const bool whole = memory_ >= memory_for_all_strips(features_, rows_.graph());
    Buffer<float> source(size_t{n_} * (whole ? width : std::min(strip, width)));
    prefer_huge_pages(source.data(), source.size() * sizeof(float));
    const uint64_t taken = source.size() * sizeof(float), left = memory_ > taken ? memory_ - taken : 0;
    const size_t most_rows = whole ? kChunk : std::max<size_t>(left / (2 * row_bytes), kRowBlock);
    const size_t chunk_rows = std::min<size_t>(most_rows, n_);
    Buffer<float> chunks[2] = {Buffer<float>(chunk_rows * width), Buffer<float>(chunk_rows * width)};
    // Mapped pages are kept from one chunk to the next while there is room: finding them again costs time.
    keeps_pages_ = left > 2 * chunk_rows * row_bytes + mapped;
    for (Buffer<float>& chunk : chunks) prefer_huge_pages(chunk.data(), chunk.size() * sizeof(float));
    if (whole) copy_strips(strip, source.data());
    const size_t strips = (width + strip - 1) / strip;
    size_t done = 0;  // rows × strips
    ArrayWriter array =
        rounds_ ? writer_.begin_array<BFloat16>("features", width) : writer_.begin_array<float>("features", width);
    for (size_t begin = 0, turn = 0; begin < n_; begin += chunk_rows, turn ^= 1) {
      const kernels::RowRange rows{begin, std::min<size_t>(n_, begin + chunk_rows)};
      float* chunk = chunks[turn].data();
      for (size_t c = 0; c < width; c += strip) {
        throw_if_interrupted();
        const size_t columns = std::min(strip, width - c);
        float* from = source.data() + (whole ? c * n_ : 0);
        if (!whole) copy_strip(c, columns, from);
        sum_strip(rows,
                  !whole   ? Links::kMadeAgain
                  : c == 0 ? Links::kMadeOnce
                           : Links::kThere,
                  {from, n_, columns}, {chunk + c, rows.size(), columns, width});
        progress_.advance((done + rows.size()) / strips - done / strips);
        done += rows.size();
      }
      const size_t size = rows.size() * width;
      if (rounds_)
        array.append_behind(std::span<const BFloat16>(round_in_place(chunk, size), size));
      else
        array.append_behind(std::span<const float>(chunk, size));
    }
    writer_.end_array("features", array);
    writer_.declare_features(rounds_ ? FeatureMatrix::Kind::kDenseBFloat16 : FeatureMatrix::Kind::kDense32,
                             features_.columns());
  }

  // All strips, one after another.
  void copy_strips(size_t strip, float* out) const {
    for (size_t c = 0; c < features_.columns(); c += strip) {
      throw_if_interrupted();
      copy_strip(c, std::min<size_t>(strip, features_.columns() - c), out + c * n_);
    }
  }

  // Columns c … c + columns of all rows of X, one after another.
  void copy_strip(size_t c, size_t columns, float* out) const {
    for (size_t begin = 0; begin < n_; begin += kCopiedRows) {
      const size_t end = std::min<size_t>(n_, begin + kCopiedRows);
      parallel_blocks(end - begin, 1024, [&](size_t first, size_t last) {
        for (size_t v = begin + first; v < begin + last; ++v)
          features_.copy_columns(static_cast<NodeId>(v), c, columns, out + v * columns);
      });
      if (!keeps_pages_) features_.release_rows(begin, end);
    }
  }

  void sum_strip(kernels::RowRange chunk, Links links, kernels::ConstMatrix source, kernels::Matrix out) {
    if (links == Links::kMadeOnce) made_.resize((chunk.size() + kRowBlock - 1) / kRowBlock);
    parallel_blocks(chunk.size(), kRowBlock, [&](size_t first, size_t last) {
      NormalisedRows::SparseRows own;
      NormalisedRows::SparseRows& made = links == Links::kMadeAgain ? own : made_[first / kRowBlock];
      if (links != Links::kThere) rows_.fill(chunk.begin + first, chunk.begin + last, made);
      const kernels::RowRange rows{0, last - first};
      kernels::aggregate(made.view, source, rows, {out.row(first), rows.size(), out.columns, out.stride});
      if (!keeps_pages_) rows_.graph().release_rows(chunk.begin + first, chunk.begin + last);
    });
  }

  // A thread's row under construction: a dense accumulator and the columns that it holds. If X is too wide for one,
  // the terms themselves, which are sorted by column. A column's terms are added in the order they came, either way.
  class SparseRow {
   public:
    static uint64_t dense_bytes(size_t width) { return width * (sizeof(float) + sizeof(uint8_t)); }
    explicit SparseRow(size_t width) : sums_(width, 0.0f), seen_(width, 0) {}  // 0: sorts
    void add(uint32_t column, float value) {
      if (sums_.empty()) {
        terms_.emplace_back(column, value);
        return;
      }
      if (seen_[column] == 0) {
        seen_[column] = 1;
        columns_.push_back(column);
      }
      sums_[column] += value;
    }
    // Hands over columns and sums by rising column, and begins a new row.
    template <class Use>
    void finish(Use&& use) {
      std::stable_sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.first < b.first; });
      for (size_t i = 0; i < terms_.size();) {
        const uint32_t column = terms_[i].first;
        float sum = 0;
        for (; i < terms_.size() && terms_[i].first == column; ++i) sum += terms_[i].second;
        use(column, sum);
      }
      terms_.clear();
      std::sort(columns_.begin(), columns_.end());
      for (const uint32_t column : columns_) {
        use(column, sums_[column]);
        sums_[column] = 0;
        seen_[column] = 0;
      }
      columns_.clear();
    }

   private:
    using Term = std::pair<uint32_t, float>;
    Buffer<float> sums_;
    Buffer<uint8_t> seen_;
    std::vector<uint32_t> columns_;
    std::vector<Term> terms_;
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
    const size_t before = out.columns.size();
    row.finish([&](uint32_t column, float sum) {
      out.columns.push_back(column);
      out.values.push_back(sum);
    });
    out.lengths.push_back(out.columns.size() - before);
  }

  // At most so many entries are in the row of v.
  uint64_t most_entries(NodeId v) const {
    if (features_.kind() == FeatureMatrix::Kind::kIdentity) return rows_.max_length(v);
    uint64_t entries = features_.row_columns(v).size();
    for (const NodeId u : rows_.graph().neighbours(v)) entries += features_.row_columns(u).size();
    return std::min<uint64_t>(entries, features_.columns());
  }

  void write_sparse() {
    constexpr size_t kBlock = 256, kMostBlocks = 256;
    ArrayWriter offsets = writer_.begin_array<EdgeOffset>("features_offsets");
    ArrayWriter columns = writer_.begin_array<uint32_t>("features_columns");
    ArrayWriter values = writer_.begin_array<float>("features_values");
    EdgeOffset total = 0;
    offsets.append(std::span<const EdgeOffset>(&total, 1));
    const bool identity = features_.kind() == FeatureMatrix::Kind::kIdentity;
    const uint64_t accumulators = static_cast<uint64_t>(thread_count()) * SparseRow::dense_bytes(features_.columns());
    const size_t width = identity || accumulators > memory_ / 4 ? 0 : features_.columns();
    for (size_t begin = 0, end = 0; begin < n_; begin = end) {
      throw_if_interrupted();
      // A vector may have twice the room that it needs.
      for (uint64_t bytes = 0; end < n_ && end < begin + kBlock * kMostBlocks && (end == begin || bytes < memory_ / 4);)
        bytes += 2 * (sizeof(uint32_t) + sizeof(float)) * most_entries(static_cast<NodeId>(end++));
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
      if (memory_figures().file_backed > memory_ / 2) files_.release_pages();
      progress_.advance(end - begin);
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
  const uint64_t memory_;
  const bool rounds_;
  bool keeps_pages_ = true;
  std::vector<NormalisedRows::SparseRows> made_;
  StoreWriter& writer_;
  Progress progress_;
};

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

struct ProductSource {
  const Store& files;
  Dataset data;  // of the files, perhaps with other features
  const Normalisation& normalisation;
  uint64_t memory;
  Precision precision = Precision::kFloat32;
};

// Written by `writer` and opened.
FeatureMatrix write_product(const ProductSource& source, const nlohmann::json& key, StoreWriter& writer) {
  const Dataset& data = source.data;
  Aggregator(source.files, data, source.normalisation, source.memory, source.precision, writer).write();
  return finish_features(data, "aggregated", key, writer);
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
  if (source.precision == Precision::kBFloat16) key["precision"] = "bfloat16";
  if (auto found = find_features(path, "aggregated", key, features)) return *std::move(found);
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

FeatureMatrix aggregated_features(const ClusterLayout& layout, const Normalisation& normalisation, uint64_t memory,
                                  bool rows_normalised, Precision precision) {
  if (!layout.data.features.is_dense()) precision = Precision::kFloat32;
  return ensure_product(aggregated_path(layout, normalisation, precision),
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
  const size_t columns = x.columns();
  ArrayWriter array = writer.begin_array<BFloat16>("features", columns);
  Buffer<float> rows(kChunk * columns);
  for (size_t begin = 0; begin < x.rows(); begin += kChunk) {
    throw_if_interrupted();
    const size_t end = std::min<size_t>(x.rows(), begin + kChunk), size = (end - begin) * columns;
    std::copy_n(x.dense32().data() + begin * columns, size, rows.data());
    array.append(std::span<const BFloat16>(round_in_place(rows.data(), size), size));
    x.release_rows(begin, end);
  }
  writer.end_array("features", array);
  writer.declare_features(FeatureMatrix::Kind::kDenseBFloat16, x.columns());
  return finish_features(layout.data, "rounded", key, writer);
}

std::optional<FeatureMatrix> kept_aggregated_features(const Store& store, const Normalisation& normalisation) {
  const Dataset data = store.dataset();
  return find_features(store_product(store, normalisation), "aggregated", product_key(data, normalisation),
                       data.features);
}

uint64_t aggregation_memory(const Dataset& data) {
  if (data.features.is_dense()) return memory_for_all_strips(data.features, data.graph);
  return 2 * (data.features.stored_bytes() + data.graph.stored_bytes());
}

void forget_aggregated(const Store& store, const Normalisation& normalisation) {
  const fs::path path = store_product(store, normalisation), old = temporary_sibling(path);
  std::error_code ignored;
  fs::rename(path, old, ignored);  // at once, so that nobody reads half of it
  fs::remove_all(old, ignored);
}

// A strip of one column, two chunks, and what is mapped at a time.
uint64_t least_aggregation_memory(const Dataset& data) {
  const uint64_t nodes = data.num_nodes(), tables = data.graph.offsets().size_bytes() + nodes * sizeof(float);
  if (!data.features.is_dense()) return tables + data.features.stored_bytes();
  const uint64_t row = sizeof(float) * data.features.columns();
  return tables + nodes * sizeof(float) + row * (2 * std::min<uint64_t>(kRowBlock, nodes)) +
         row * std::min<uint64_t>(kCopiedRows, nodes);
}

fs::path aggregated_path(const ClusterLayout& layout, const Normalisation& normalisation, Precision precision) {
  const char* suffix = precision == Precision::kBFloat16 ? "-bfloat16" : "";
  return layout.path / "aggregated" / (normalisation.name() + suffix);
}

fs::path rounded_path(const ClusterLayout& layout) { return layout.path / "aggregated" / "features-bfloat16"; }

FeatureMatrix aggregated_features(const Store& store, const Normalisation& normalisation, uint64_t memory,
                                  bool rows_normalised) {
  return ensure_product(store_product(store, normalisation), {store, store.dataset(), normalisation, memory},
                        rows_normalised, Unwritable::kElsewhere);
}

}  // namespace cgcn

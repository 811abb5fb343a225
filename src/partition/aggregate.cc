// N(A)·X, the first layer's aggregation (the paper, section 4.1: it has no weights, so once is enough).
//
// Rows are computed in chunks by all threads and written as they come; each is summed in the order of its neighbours,
// so that the bits do not depend on the number of threads.
#include "partition/aggregate.h"

#include <algorithm>

#include "common/interrupt.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/threads.h"
#include "graph/normalised_rows.h"
#include "kernels/dropout.h"
#include "kernels/spmm.h"
#include "partition/partition.h"

namespace cgcn {
namespace {

using kernels::Precision;

constexpr size_t kStripBytes = size_t{128} << 20;  // of X, read again and again: about half of a last-level cache
constexpr size_t kLine = 16;                       // columns of a cache line
constexpr size_t kWidestStrip = 64;                // columns
constexpr size_t kChunk = 16384;                   // rows
constexpr size_t kRowBlock = 256;

// Rows of X that are copied at a time: what is mapped of it.
size_t copied_rows(size_t width) {
  constexpr size_t kBytes = size_t{8} << 20;
  return std::clamp<size_t>(kBytes / (std::max<size_t>(width, 1) * sizeof(float)), 1, kChunk);
}

// The buffers of a dense product, known before they are there: X in strips of columns, all of them or one at a time,
// and two chunks of rows.
struct DenseBuffers {
  DenseBuffers(uint64_t nodes, uint64_t width, uint64_t memory, bool all_strips) {
    const uint64_t column_bytes = std::max<uint64_t>(nodes, 1) * sizeof(float), row_bytes = width * sizeof(float);
    // As many columns as the cache holds, but whole cache lines; fewer only if memory is short.
    const uint64_t cached = std::max<uint64_t>(kStripBytes / column_bytes / kLine * kLine, kLine);
    strip = std::clamp<uint64_t>(std::min(cached, memory / 2 / column_bytes), 1, kWidestStrip);
    source = nodes * (all_strips ? width : std::min(strip, width));
    const uint64_t taken = source * sizeof(float), left = memory > taken ? memory - taken : 0;
    chunk_rows = std::min(nodes, all_strips ? kChunk : std::max<uint64_t>(left / (2 * row_bytes), kRowBlock));
    chunk = chunk_rows * width;
  }
  uint64_t bytes() const { return (source + 2 * chunk) * sizeof(float); }

  uint64_t strip, chunk_rows;  // columns; rows
  uint64_t source, chunk;      // floats
};

// With all strips, and all that is mapped. The edges of a chunk are counted as the whole graph's, values and all: nodes
// may be of very unlike degrees.
uint64_t memory_for_all_strips(const FeatureMatrix& features, const CsrGraph& graph) {
  return features.stored_bytes() + 3 * graph.stored_bytes() +
         DenseBuffers(graph.num_nodes(), features.columns(), UINT64_MAX, /*all_strips=*/true).bytes();
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
  Aggregator(const ProductSource& source, StoreWriter& writer)
      : files_(source.files),
        features_(source.data.features),
        rows_(source.data.graph, source.normalisation),
        n_(source.data.num_nodes()),
        memory_(source.memory),
        rounds_(source.precision == Precision::kBFloat16),
        writer_(writer),
        progress_("A·X", source.data.num_nodes()) {}

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
    const size_t width = features_.columns();
    const bool whole = memory_ >= memory_for_all_strips(features_, rows_.graph());
    const DenseBuffers sizes(n_, width, memory_, whole);
    Buffer<float> source(sizes.source), chunks[2] = {Buffer<float>(sizes.chunk), Buffer<float>(sizes.chunk)};
    for (Buffer<float>* buffer : {&source, &chunks[0], &chunks[1]})
      prefer_huge_pages(buffer->data(), buffer->size() * sizeof(float));
    // Mapped pages are kept from one chunk to the next while there is room: finding them again costs time.
    keeps_pages_ = memory_ > sizes.bytes() + features_.stored_bytes() + rows_.graph().stored_bytes();
    const size_t strip = sizes.strip;
    if (whole) copy_strips(strip, source.data());
    const size_t strips = (width + strip - 1) / strip;
    size_t done = 0;  // rows × strips
    ArrayWriter array =
        rounds_ ? writer_.begin_array<BFloat16>("features", width) : writer_.begin_array<float>("features", width);
    size_t turn = 0;
    for (size_t begin = 0; begin < n_; begin += sizes.chunk_rows) {
      const kernels::RowRange rows{begin, std::min<size_t>(n_, begin + sizes.chunk_rows)};
      float* chunk = chunks[turn].data();
      turn ^= 1;
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
    const size_t at_once = copied_rows(features_.columns());
    for (size_t begin = 0; begin < n_; begin += at_once) {
      const size_t end = std::min<size_t>(n_, begin + at_once);
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

}  // namespace

void write_product_rows(const ProductSource& source, StoreWriter& writer) { Aggregator(source, writer).write(); }

void write_rounded_rows(const FeatureMatrix& x, StoreWriter& writer) {
  const size_t columns = x.columns();
  ArrayWriter array = writer.begin_array<BFloat16>("features", columns);
  const size_t at_once = copied_rows(columns);
  Buffer<float> rows(std::min<size_t>(at_once, x.rows()) * columns);
  for (size_t begin = 0; begin < x.rows(); begin += at_once) {
    throw_if_interrupted();
    const size_t end = std::min<size_t>(x.rows(), begin + at_once), size = (end - begin) * columns;
    std::copy_n(x.dense32().data() + begin * columns, size, rows.data());
    array.append(std::span<const BFloat16>(round_in_place(rows.data(), size), size));
    x.release_rows(begin, end);
  }
  writer.end_array("features", array);
  writer.declare_features(FeatureMatrix::Kind::kDenseBFloat16, x.columns());
}

uint64_t aggregation_memory(const Dataset& data) {
  if (data.features.is_dense()) return memory_for_all_strips(data.features, data.graph);
  return 2 * (data.features.stored_bytes() + data.graph.stored_bytes());
}

// The smallest buffers, and what is mapped at a time.
uint64_t least_aggregation_memory(const Dataset& data) {
  const uint64_t nodes = data.num_nodes(), tables = data.graph.offsets().size_bytes() + nodes * sizeof(float);
  if (!data.features.is_dense()) return tables + data.features.stored_bytes();
  const uint64_t width = data.features.columns();
  return tables + DenseBuffers(nodes, width, /*memory=*/0, /*all_strips=*/false).bytes() +
         std::min<uint64_t>(copied_rows(width), nodes) * width * sizeof(float);
}

}  // namespace cgcn

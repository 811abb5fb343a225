#include "io/numpy/sparse_matrix.h"

#include <cmath>

#include "common/error.h"
#include "common/progress.h"
#include "io/numpy/array_edges.h"

namespace cgcn {
namespace {

constexpr size_t kPending = size_t{1} << 16;

uint64_t checked_extent(int64_t extent, const std::string& where) {
  if (extent < 0) throw Error(fmt::format("declares a matrix with an extent of {}", extent), where);
  return static_cast<uint64_t>(extent);
}

void read_shape(const Array& shape, SparseMatrix& matrix) {
  shape.require_integers("the extents of a matrix");
  if (shape.size() != 2) throw Error(fmt::format("holds {} extents, but a matrix has 2", shape.size()), shape.where());
  int64_t extents[2];
  shape.read(0, 1, 2, extents);
  matrix.rows = checked_extent(extents[0], shape.where());
  matrix.columns = checked_extent(extents[1], shape.where());
}

// Walks a compressed matrix in order: use(line, first entry's place, indices, values), long lines in several pieces.
// Nothing larger than a block is in memory.
class CompressedWalk {
 public:
  explicit CompressedWalk(const SparseMatrix& matrix, bool with_values) : matrix_(matrix), with_values_(with_values) {}

  template <class Use>
  void run(Use&& use) {
    const uint64_t lines = matrix_.starts.size() - 1;
    Buffer<int64_t> starts(kBlock + 1), indices(kBlock);
    Buffer<float> values(kBlock);
    for (uint64_t first = 0; first < lines; first += kBlock) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(kBlock, lines - first));
      matrix_.starts.read(first, 1, count + 1, starts.data());
      matrix_.starts.release();
      for (size_t i = 0; i < count; ++i) {
        check_line(first + i, starts[i], starts[i + 1]);
        for (int64_t at = starts[i]; at < starts[i + 1]; at += kBlock) {
          const auto size = static_cast<size_t>(std::min<int64_t>(kBlock, starts[i + 1] - at));
          use(first + i, static_cast<uint64_t>(at), fetch(at, size, indices, values));
        }
      }
    }
  }

  struct Piece {
    std::span<const int64_t> indices;
    std::span<const float> values;
  };

 private:
  static constexpr size_t kBlock = size_t{1} << 16;

  void check_line(uint64_t line, int64_t begin, int64_t end) const {
    if ((line == 0 && begin != 0) || end < begin || end > static_cast<int64_t>(matrix_.indices.size()))
      throw Error(fmt::format("row {} spans the entries {} to {}, but there are {}, in order from 0", line, begin, end,
                              matrix_.indices.size()),
                  matrix_.starts.where());
  }

  // Entries are read a block at a time, ahead of the lines: most lines are short.
  Piece fetch(int64_t at, size_t size, Buffer<int64_t>& indices, Buffer<float>& values) {
    if (at < fetched_begin_ || at + static_cast<int64_t>(size) > fetched_end_) {
      const auto count =
          static_cast<size_t>(std::min<uint64_t>(kBlock, matrix_.indices.size() - static_cast<uint64_t>(at)));
      matrix_.indices.read(static_cast<uint64_t>(at), 1, count, indices.data());
      matrix_.indices.release();
      if (with_values_) {
        matrix_.values.read(static_cast<uint64_t>(at), 1, count, values.data());
        matrix_.values.release();
      }
      fetched_begin_ = at;
      fetched_end_ = at + static_cast<int64_t>(count);
      throw_if_interrupted();
    }
    const auto offset = static_cast<size_t>(at - fetched_begin_);
    return {{indices.data() + offset, size}, {values.data() + offset, with_values_ ? size : 0}};
  }

  const SparseMatrix& matrix_;
  bool with_values_;
  int64_t fetched_begin_ = 0, fetched_end_ = 0;
};

class CompressedEdges final : public EdgeSource {
 public:
  CompressedEdges(SparseMatrix matrix, bool weighted, NodeId num_nodes)
      : matrix_(std::move(matrix)), weighted_(weighted), num_nodes_(num_nodes) {}
  bool weighted() const override { return weighted_; }
  void visit(const std::function<void(const EdgeRun&)>& use) const override {
    const bool by_rows = matrix_.format == SparseMatrix::Format::kCsr;
    EdgeBuffer buffer(use, weighted_);
    CompressedWalk(matrix_, weighted_).run([&](uint64_t line, uint64_t at, const CompressedWalk::Piece& piece) {
      for (size_t i = 0; i < piece.indices.size(); ++i) {
        const NodeId other = check_node(piece.indices[i], at + i, num_nodes_, matrix_.indices.where());
        const float weight = weighted_ ? check_weight(piece.values[i], at + i, matrix_.values.where()) : 1.0f;
        const auto own = static_cast<NodeId>(line);
        buffer.add(by_rows ? own : other, by_rows ? other : own, weight);
      }
    });
    buffer.flush();
  }

 private:
  // Gathers edges into runs.
  class EdgeBuffer {
   public:
    EdgeBuffer(const std::function<void(const EdgeRun&)>& use, bool weighted)
        : use_(use), from_(kSize), to_(kSize), weights_(weighted ? kSize : 0) {}
    void add(NodeId from, NodeId to, float weight) {
      from_[size_] = from;
      to_[size_] = to;
      if (!weights_.empty()) weights_[size_] = weight;
      if (++size_ == kSize) flush();
    }
    void flush() {
      if (size_ > 0) use_({from_.data(), to_.data(), weights_.data(), size_});
      size_ = 0;
    }

   private:
    static constexpr size_t kSize = size_t{1} << 16;
    const std::function<void(const EdgeRun&)>& use_;
    Buffer<NodeId> from_, to_;
    Buffer<float> weights_;
    size_t size_ = 0;
  };

  SparseMatrix matrix_;
  bool weighted_;
  NodeId num_nodes_;
};

// Rows of a CSC or COO matrix, by counting sort.
void for_each_transposed_row(
    const SparseMatrix& matrix,
    const std::function<void(uint64_t, std::span<const int64_t>, std::span<const float>)>& use) {
  const uint64_t entries = matrix.values.size();
  Buffer<uint64_t> next(matrix.rows + 1, 0);
  const auto each_entry = [&](auto&& act) {
    const auto row_of = [&](int64_t row) {
      if (row < 0 || row >= static_cast<int64_t>(matrix.rows))
        throw Error(fmt::format("names row {}, but there are {}", row, matrix.rows), matrix.where());
      return static_cast<uint64_t>(row);
    };
    if (matrix.format == SparseMatrix::Format::kCsc) {
      CompressedWalk(matrix, true).run([&](uint64_t line, uint64_t, const CompressedWalk::Piece& piece) {
        for (size_t i = 0; i < piece.indices.size(); ++i)
          act(row_of(piece.indices[i]), static_cast<int64_t>(line), piece.values[i]);
      });
      return;
    }
    constexpr size_t kBlock = size_t{1} << 16;
    Buffer<int64_t> rows(kBlock), columns(kBlock);
    Buffer<float> values(kBlock);
    for (uint64_t first = 0; first < entries; first += kBlock) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(kBlock, entries - first));
      matrix.starts.read(first, 1, count, rows.data());
      matrix.indices.read(first, 1, count, columns.data());
      matrix.values.read(first, 1, count, values.data());
      for (const Array* array : {&matrix.starts, &matrix.indices, &matrix.values}) array->release();
      for (size_t i = 0; i < count; ++i) act(row_of(rows[i]), columns[i], values[i]);
    }
  };
  each_entry([&](uint64_t row, int64_t, float) { ++next[row + 1]; });
  for (uint64_t row = 0; row < matrix.rows; ++row) next[row + 1] += next[row];
  Buffer<int64_t> columns(entries);
  Buffer<float> values(entries);
  each_entry([&](uint64_t row, int64_t column, float value) {
    columns[next[row]] = column;
    values[next[row]++] = value;
  });
  for (uint64_t row = 0, begin = 0; row < matrix.rows; begin = next[row++])  // next[row] is now the row's end
    use(row, {columns.data() + begin, next[row] - begin}, {values.data() + begin, next[row] - begin});
}

}  // namespace

SparseMatrix SparseMatrix::read(const NpzFile& file) {
  SparseMatrix matrix;
  read_shape(file.array("shape"), matrix);
  matrix.values = file.array("data");
  std::string format = file.has("row") ? "coo" : "csr";
  if (file.has("format")) {
    const std::vector<std::string> texts = file.array("format").read_texts();
    format = texts.empty() ? "" : texts.front();
  }
  if (format == "coo") {
    matrix.format = Format::kCoo;
    matrix.starts = file.array("row");
    matrix.indices = file.array("col");
  } else if (format == "csr" || format == "csc") {
    matrix.format = format == "csr" ? Format::kCsr : Format::kCsc;
    matrix.starts = file.array("indptr");
    matrix.indices = file.array("indices");
  } else {
    throw Error(fmt::format("holds a sparse matrix of format '{}', which is not read", format), file.where(),
                "save it as matrix.tocsr()");
  }
  matrix.check();
  return matrix;
}

SparseMatrix SparseMatrix::read_csr(const NpzFile& file, const std::string& prefix) {
  SparseMatrix matrix;
  read_shape(file.array(prefix + "shape"), matrix);
  matrix.values = file.array(prefix + "data");
  matrix.starts = file.array(prefix + "indptr");
  matrix.indices = file.array(prefix + "indices");
  matrix.check();
  return matrix;
}

void SparseMatrix::check() const {
  values.require_numbers("the values of a matrix");
  starts.require_integers("the indices of a matrix");
  indices.require_integers("the indices of a matrix");
  for (const Array* array : {&values, &starts, &indices}) array->require_dimensions(1, "this part of a matrix");
  if (indices.size() != values.size())
    throw Error(fmt::format("holds {} indices for {} values", indices.size(), values.size()), indices.where());
  // If nothing is there for every row, a damaged shape could ask for any memory.
  const bool lists_rows = format == Format::kCsr || (format == Format::kCsc && rows == columns);
  if (!lists_rows && rows > most_plausible_rows(values.size()))
    throw Error(fmt::format("has {} rows by its shape, but {} values", rows, values.size()), values.where(),
                "save it as CSR: matrix.tocsr()");
  const uint64_t lines = format == Format::kCsc ? columns : rows;
  const uint64_t expected = format == Format::kCoo ? values.size() : lines + 1;
  if (starts.size() != expected || lines == UINT64_MAX)
    throw Error(format == Format::kCoo
                    ? fmt::format("holds {} rows for {} values", starts.size(), values.size())
                    : fmt::format("holds {} starts, but a matrix of {} lines needs {}", starts.size(), lines, expected),
                starts.where());
  if (format == Format::kCoo) return;
  int64_t last = 0;
  starts.read(lines, 1, 1, &last);
  if (last != static_cast<int64_t>(indices.size()))
    throw Error(fmt::format("ends at entry {}, but there are {}", last, indices.size()), starts.where());
}

std::unique_ptr<EdgeSource> make_edges(const SparseMatrix& matrix, NodeId num_nodes) {
  if (matrix.rows != num_nodes || matrix.columns != num_nodes)
    throw Error(fmt::format("is {} × {}, but the graph has {} nodes", matrix.rows, matrix.columns, num_nodes),
                matrix.where());
  const bool weighted = !all_ones(matrix.values);
  if (matrix.format != SparseMatrix::Format::kCoo)
    return std::make_unique<CompressedEdges>(matrix, weighted, num_nodes);
  return std::make_unique<ColumnEdges>(IdColumn{matrix.starts}, IdColumn{matrix.indices}, matrix.values.size(),
                                       weighted ? std::optional(matrix.values) : std::nullopt, num_nodes);
}

SparseFeatureRows::SparseFeatureRows(StoreWriter& store, NodeId num_nodes, uint64_t columns, std::string where)
    : store_(store),
      offsets_(store.begin_array<EdgeOffset>("features_offsets")),
      columns_(store.begin_array<uint32_t>("features_columns")),
      values_(store.begin_array<float>("features_values")),
      num_nodes_(num_nodes),
      num_columns_(static_cast<uint32_t>(columns)),
      where_(std::move(where)) {
  if (columns == 0 || columns >= UINT32_MAX) throw Error(fmt::format("has {} feature columns", columns), where_);
}

void SparseFeatureRows::append(std::span<const int64_t> columns, std::span<const float> values) {
  row_.clear();
  bool sorted = true;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] < 0 || columns[i] >= static_cast<int64_t>(num_columns_))
      throw Error(
          fmt::format("row {} names feature {}, but there are {}, numbered from 0", rows_, columns[i], num_columns_),
          where_);
    if (!std::isfinite(values[i]))
      throw Error(fmt::format("row {}, column {} is {} as float32, but features must be finite numbers", rows_,
                              columns[i], values[i]),
                  where_, "replace such values before importing, for example with numpy.nan_to_num");
    const auto column = static_cast<uint32_t>(columns[i]);
    sorted = sorted && (row_.empty() || row_.back().first < column);
    row_.emplace_back(column, values[i]);
  }
  if (!sorted) {
    std::stable_sort(row_.begin(), row_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t kept = 0;
    for (const auto& entry : row_) {
      if (kept > 0 && row_[kept - 1].first == entry.first)
        row_[kept - 1].second += entry.second;
      else
        row_[kept++] = entry;
    }
    row_.resize(kept);
  }
  const size_t before = pending_columns_.size();
  for (const auto& [column, value] : row_) {
    if (value == 0) continue;
    pending_columns_.push_back(column);
    pending_values_.push_back(value);
  }
  ++rows_;
  entries_ += pending_columns_.size() - before;
  pending_offsets_.push_back(entries_);
  if (pending_columns_.size() + pending_offsets_.size() >= kPending) flush();
}

void SparseFeatureRows::flush() {
  offsets_.append(std::span<const EdgeOffset>(pending_offsets_));
  columns_.append(std::span<const uint32_t>(pending_columns_));
  values_.append(std::span<const float>(pending_values_));
  pending_offsets_.clear();
  pending_columns_.clear();
  pending_values_.clear();
}

void SparseFeatureRows::append_empty() { append(std::span<const int64_t>(), std::span<const float>()); }

void SparseFeatureRows::finish() {
  if (rows_ != num_nodes_)
    throw Error(fmt::format("holds features of {} nodes, but the graph has {}", rows_, num_nodes_), where_);
  flush();
  store_.end_array("features_offsets", offsets_);
  store_.end_array("features_columns", columns_);
  store_.end_array("features_values", values_);
  store_.declare_features(FeatureMatrix::Kind::kSparse, num_columns_);
}

void for_each_row(const SparseMatrix& matrix,
                  const std::function<void(uint64_t, std::span<const int64_t>, std::span<const float>)>& use) {
  if (matrix.format != SparseMatrix::Format::kCsr) return for_each_transposed_row(matrix, use);
  // Rows longer than a piece, and empty ones, are what makes this more than the walk itself.
  std::vector<int64_t> columns;
  std::vector<float> values;
  uint64_t current = 0;
  const auto flush_to = [&](uint64_t row) {
    for (; current < row; ++current) {
      use(current, columns, values);
      columns.clear();
      values.clear();
    }
  };
  CompressedWalk(matrix, true).run([&](uint64_t row, uint64_t, const CompressedWalk::Piece& piece) {
    flush_to(row);
    columns.insert(columns.end(), piece.indices.begin(), piece.indices.end());
    values.insert(values.end(), piece.values.begin(), piece.values.end());
  });
  flush_to(matrix.rows);
}

void import_sparse_features(const SparseMatrix& features, NodeId num_nodes, StoreWriter& store) {
  if (features.rows != num_nodes)
    throw Error(fmt::format("holds features of {} nodes, but the graph has {}", features.rows, num_nodes),
                features.where());
  SparseFeatureRows rows(store, num_nodes, features.columns, features.where());
  Progress progress("reading features", features.rows);
  for_each_row(features, [&](uint64_t, std::span<const int64_t> columns, std::span<const float> values) {
    rows.append(columns, values);
    progress.advance();
  });
  rows.finish();
}

}  // namespace cgcn

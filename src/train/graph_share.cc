#include "train/graph_share.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/error.h"
#include "common/threads.h"

namespace cgcn {
namespace {

using kernels::ConstMatrix;
using kernels::RowRange;

constexpr uint64_t kRowWork = 32;                  // what a row's products cost, in edges
constexpr size_t kMessageBytes = size_t{8} << 20;  // to one rank at a time

// Ranges of about the same work, in whole blocks.
std::vector<RowRange> share_rows(const CsrGraph& graph, uint32_t ranks) {
  const size_t nodes = graph.num_nodes(), blocks = (nodes + kInferenceBlock - 1) / kInferenceBlock;
  const auto work_before = [&](size_t block) {
    const size_t row = std::min(nodes, block * kInferenceBlock);
    return graph.offsets()[row] + kRowWork * row;
  };
  std::vector<RowRange> ranges;
  size_t begun = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    size_t end = begun;
    const uint64_t goal = work_before(blocks) / ranks * (rank + 1);
    while (end < blocks && (rank + 1 == ranks || work_before(end) < goal)) ++end;
    ranges.push_back({std::min(nodes, begun * kInferenceBlock), std::min(nodes, end * kInferenceBlock)});
    begun = end;
  }
  return ranges;
}

}  // namespace

GraphShare::GraphShare(dist::Group& group, const CsrGraph& graph)
    : group_(&group), ranges_(share_rows(graph, group.size())) {
  if (is_alone()) return;
  group.together([&] { find_fetched(graph); });
  std::vector<std::string> asked(group.size());
  for (uint32_t r = 0; r < group.size(); ++r) {
    std::vector<uint32_t> rows;
    for (size_t i = fetched_from_[r]; i < fetched_from_[r + 1]; ++i)
      rows.push_back(fetched_[i] - static_cast<uint32_t>(ranges_[r].begin));
    asked[r].assign(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(uint32_t));
  }
  for (const std::string& text : group.all_to_all(asked)) {
    std::vector<uint32_t>& rows = wanted_.emplace_back(text.size() / sizeof(uint32_t));
    if (!rows.empty()) std::memcpy(rows.data(), text.data(), text.size());
  }
}

void GraphShare::find_fetched(const CsrGraph& graph) {
  constexpr uint32_t kUnused = UINT32_MAX;
  const RowRange rows = own();
  places_ = Buffer<uint32_t>(graph.num_nodes(), kUnused);
  for (size_t v = rows.begin; v < rows.end; ++v)
    for (const NodeId u : graph.neighbours(static_cast<NodeId>(v)))
      if (u < rows.begin || u >= rows.end) places_[u] = 0;
  for (const RowRange range : ranges_) {
    fetched_from_.push_back(fetched_.size());
    for (size_t u = range.begin; u < range.end; ++u) {
      if (places_[u] == kUnused) continue;
      places_[u] = static_cast<uint32_t>(rows.size() + fetched_.size());
      fetched_.push_back(static_cast<NodeId>(u));
    }
  }
  fetched_from_.push_back(fetched_.size());
}

void GraphShare::to_rows(std::span<uint32_t> nodes) const {
  if (is_alone()) return;
  const RowRange rows = own();
  for (uint32_t& node : nodes)
    node = node >= rows.begin && node < rows.end ? node - static_cast<uint32_t>(rows.begin) : places_[node];
}

// Slab by slab, and a few megabytes for each rank at a time.
void GraphShare::fetch(SlabRows& matrix) const {
  if (is_alone()) return;
  CGCN_CHECK(matrix.rows() == rows());
  Buffer<char> loaded, arrived;
  std::vector<Buffer<char>> leaving(ranges_.size());
  for (size_t slab = 0; slab < matrix.num_slabs(); ++slab) {
    const char* from = nullptr;
    const size_t row_bytes = matrix.slab_columns(slab).size() * kernels::bytes_of(matrix.precision());
    together([&] {
      if (!matrix.spilled()) {
        from = static_cast<const char*>(matrix.all().data);
        return;
      }
      loaded.reserve_discarding(own().size() * row_bytes);
      matrix.read_slab_rows(slab, {0, own().size()}, loaded.data());
      from = loaded.data();
    });
    const size_t rows_at_once = std::max<size_t>(1, kMessageBytes / row_bytes);
    if (matrix.spilled()) arrived.reserve_discarding(fetched_.size() * row_bytes);
    char* const place =
        matrix.spilled() ? arrived.data() : static_cast<char*>(matrix.all().rows_from(own().size(), rows()).data);
    size_t longest = 0;
    for (size_t r = 0; r < ranges_.size(); ++r)
      longest = std::max({longest, wanted_[r].size(), fetched_from_[r + 1] - fetched_from_[r]});
    for (size_t begin = 0; begin < longest; begin += rows_at_once) {
      std::vector<dist::Outgoing> outgoing;
      std::vector<dist::Incoming> incoming;
      for (uint32_t r = 0; r < ranges_.size(); ++r) {
        const auto bytes = [&](char* data, size_t rows) {
          return std::as_writable_bytes(std::span(data, rows * row_bytes));
        };
        const size_t send_end = std::min(wanted_[r].size(), begin + rows_at_once);
        if (begin < send_end) {
          leaving[r].reserve_discarding(rows_at_once * row_bytes);
          parallel_blocks(send_end - begin, kInferenceBlock, [&](size_t first, size_t last) {
            for (size_t i = first; i < last; ++i)
              std::copy_n(from + wanted_[r][begin + i] * row_bytes, row_bytes, leaving[r].data() + i * row_bytes);
          });
          outgoing.push_back({r, bytes(leaving[r].data(), send_end - begin)});
        }
        const size_t count = fetched_from_[r + 1] - fetched_from_[r],
                     receive_end = std::min(count, begin + rows_at_once);
        if (begin < receive_end)
          incoming.push_back({r, bytes(place + (fetched_from_[r] + begin) * row_bytes, receive_end - begin)});
      }
      group_->exchange(outgoing, incoming);
    }
    if (matrix.spilled()) together([&] { matrix.write_slab_rows(slab, {own().size(), rows()}, arrived.data()); });
  }
}

void GraphShare::collect(const SlabMatrix& matrix, size_t rows_at_once,
                         const std::function<void(ConstMatrix rows, NodeId first)>& use) const {
  const size_t nodes = ranges_.back().end, columns = matrix.columns();
  const bool is_first = is_alone() || group_->is_first();
  Buffer<float> scratch(is_alone() && !matrix.spilled() ? 0 : std::min(nodes, rows_at_once) * columns);
  for (size_t begin = 0; begin < nodes; begin += rows_at_once) {
    const size_t end = std::min(nodes, begin + rows_at_once);
    if (is_alone()) {
      use(matrix.read_rows({begin, end}, scratch.data()), static_cast<NodeId>(begin));
      continue;
    }
    std::vector<dist::Outgoing> outgoing;
    std::vector<dist::Incoming> incoming;
    for (uint32_t r = 0; r < ranges_.size(); ++r) {
      const size_t first = std::max(begin, ranges_[r].begin), last = std::min(end, ranges_[r].end);
      if (first >= last) continue;
      float* const place = scratch.data() + (first - begin) * columns;
      if (r == group_->rank()) {
        const RowRange own_rows{first - own().begin, last - own().begin};
        const ConstMatrix rows = matrix.read_rows(own_rows, place);
        if (rows.data != place) std::copy_n(rows.data, own_rows.size() * columns, place);
      }
      const auto bytes = std::as_writable_bytes(std::span(place, (last - first) * columns));
      if (is_first && r > 0) incoming.push_back({r, bytes});
      if (!is_first && r == group_->rank()) outgoing.push_back({0, bytes});
    }
    group_->exchange(outgoing, incoming);
    if (is_first) use({scratch.data(), end - begin, columns}, static_cast<NodeId>(begin));
  }
}

SlabMatrix GraphShare::collect_all(const SlabMatrix& matrix, uint64_t memory) const {
  constexpr size_t kRowsAtOnce = 4096;
  const size_t nodes = ranges_.back().end, columns = matrix.columns();
  const bool fits = uint64_t{nodes} * columns * sizeof(float) < memory;
  SlabMatrix all = is_alone() || group_->is_first() ? SlabMatrix(nodes, columns, fits ? 0 : columns) : SlabMatrix();
  collect(matrix, kRowsAtOnce, [&](ConstMatrix rows, NodeId first) {
    const RowRange range{first, first + rows.rows};
    Buffer<float> scratch(all.spilled() ? rows.rows * columns : 0);
    const kernels::Matrix place = all.place_rows(range, scratch.data());
    std::copy_n(rows.data, rows.rows * columns, place.data);
    all.write_rows(range, scratch.data());
  });
  return all;
}

uint64_t GraphShare::bytes() const {
  uint64_t total = places_.size() * sizeof(uint32_t) + fetched_.size() * sizeof(NodeId);
  for (const auto& rows : wanted_) total += rows.size() * sizeof(uint32_t);
  return total;
}

}  // namespace cgcn

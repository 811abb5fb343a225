#include "io/node_index.h"

#include <algorithm>
#include <numeric>

#include "common/progress.h"
#include "io/text/fields.h"

namespace cgcn {
namespace {

constexpr uint64_t kFastLimit = uint64_t{1} << 27;

std::string name_the_nodes_in(const fs::path& file) {
  if (file.extension() == ".npy" || file.extension() == ".npz")
    return fmt::format("give {} as CSV, with a column of ids", file.stem().string());
  return fmt::format("name the nodes in {} too: a column of ids, and a header line that calls it 'id'",
                     file.filename().string());
}

}  // namespace

NodeIndex NodeIndex::rows(NodeId n, fs::path counted_in) {
  NodeIndex index(Kind::kRows);
  index.size_ = n;
  index.fast_limit_ = n;
  index.counted_in_ = std::move(counted_in);
  return index;
}

NodeIndex NodeIndex::open(bool fast) {
  NodeIndex index(Kind::kOpen);
  if (fast) index.fast_limit_ = kFastLimit;
  return index;
}

NodeIndex NodeIndex::listed() { return NodeIndex(Kind::kListed); }

NodeId NodeIndex::put(std::string_view id, const LineReader& at) {
  if (id.empty()) at.fail("a node id is missing");
  const std::optional<int64_t> value = parse_integer(id);
  if (value && *value < 0) at.fail(fmt::format("negative node id {}", *value));
  if (kind_ == Kind::kRows) {
    if (!value) at.fail(fmt::format("node id {} is not a whole number", show(id)), name_the_nodes_in(counted_in_));
    return static_cast<uint64_t>(*value) >= size_ ? note_unknown(id, at) : static_cast<NodeId>(*value);
  }
  if (fast_limit_ > 0 && !closed_) {
    if (!value || static_cast<uint64_t>(*value) >= fast_limit_) throw NotFast{};
    mark(static_cast<uint64_t>(*value));
    return static_cast<NodeId>(*value);
  }
  const NodeId number = closed_ ? find(id, value) : put_in_table(id, value);
  return number == kNoNode ? note_unknown(id, at) : number;
}

NodeId NodeIndex::note_unknown(std::string_view id, const LineReader& at) {
  constexpr NodeId kMost = 1'000'000;  // counted; a file with more is another graph's
  if (unknown_.size() == 0) first_unknown_ = at.where();
  if (unknown_.size() < kMost) unknown_.put(id);
  return kNoNode;
}

void NodeIndex::refuse_unknown(const fs::path& file) {
  if (unknown_.size() == 0) return;
  std::vector<std::string> some;
  for (NodeId i = 0; i < std::min<NodeId>(unknown_.size(), 5); ++i) some.push_back(show(unknown_[i]));
  const std::string ids = fmt::format("{}", fmt::join(some, ", ")), counted = counted_in_.filename().string();
  const bool one = unknown_.size() == 1;
  const std::string listed = one ? "node " + ids
                                 : fmt::format("{} node ids of {}, {}{},", format_count(unknown_.size()),
                                               file.filename().string(), ids, unknown_.size() > 5 ? " …" : "");
  if (kind_ == Kind::kRows)
    throw Error(fmt::format("{} {} out of range: {} gives {} nodes, 0 to {}",
                            one ? "node id " + std::string(unknown_[0]) : listed, one ? "is" : "are", counted, size_,
                            int64_t{size_} - 1),
                first_unknown_, "if ids are not row numbers, " + name_the_nodes_in(counted_in_));
  throw Error(fmt::format("{} {} not in {}", listed, one ? "is" : "are", counted), first_unknown_,
              "give every node a row there");
}

bool NodeIndex::knows(std::string_view id) const {
  const std::optional<int64_t> value = parse_integer(id);
  if (value && *value < 0) return false;
  if (kind_ == Kind::kRows) return value && static_cast<uint64_t>(*value) < size_;
  return find(id, value) != kNoNode;
}

bool NodeIndex::has_names() const {
  if (kind_ == Kind::kRows) return false;
  if (textual_) return true;
  if (kind_ == Kind::kOpen && fast_limit_ > 0) return !identical_;
  for (NodeId i = 0; i < size_; ++i)
    if (integers_[i] < 0 || integers_[i] >= int64_t{size_} || (kind_ == Kind::kListed && integers_[i] != int64_t{i}))
      return true;
  return false;
}

NodeId NodeIndex::find(std::string_view id, std::optional<int64_t> value) const {
  if (textual_) return texts_.find(id);
  if (!value) return kNoNode;
  if (fast_limit_ == 0) return integers_.find(*value);
  const auto bit = static_cast<uint64_t>(*value);
  return bit / 64 < bits_.size() && ((bits_[bit / 64] >> (bit % 64)) & 1) != 0 ? static_cast<NodeId>(bit) : kNoNode;
}

NodeId NodeIndex::put_in_table(std::string_view id, std::optional<int64_t> value) {
  if (!textual_ && !value) {  // the first text: integers so far become texts, in the same order
    textual_ = true;
    for (NodeId i = 0; i < integers_.size(); ++i) texts_.put(std::to_string(integers_[i]));
    integers_ = {};
  }
  return textual_ ? texts_.put(id) : integers_.put(*value);
}

void NodeIndex::close(fs::path counted_in) {
  if (kind_ == Kind::kRows) return;
  closed_ = true;
  counted_in_ = std::move(counted_in);
  size_ = textual_ ? texts_.size() : integers_.size();
  if (kind_ == Kind::kListed || textual_) return;
  if (fast_limit_ > 0)
    settle_bits();
  else
    sort_integers();
}

void NodeIndex::settle_bits() {
  while (!bits_.empty() && bits_.back() == 0) bits_.pop_back();
  ranks_.resize(bits_.size());
  uint64_t count = 0;
  for (size_t i = 0; i < bits_.size(); ++i) {
    ranks_[i] = static_cast<NodeId>(count);
    count += static_cast<uint64_t>(__builtin_popcountll(bits_[i]));
  }
  size_ = static_cast<NodeId>(count);
  identical_ = bits_.empty() || count == 64 * bits_.size() - static_cast<uint64_t>(__builtin_clzll(bits_.back()));
}

void NodeIndex::sort_integers() {
  std::vector<NodeId> by_value(size_);
  std::iota(by_value.begin(), by_value.end(), 0);
  const auto ascending = [&](NodeId a, NodeId b) { return integers_[a] < integers_[b]; };
  identical_ = std::is_sorted(by_value.begin(), by_value.end(), ascending);
  if (identical_) return;
  std::sort(by_value.begin(), by_value.end(), ascending);
  order_.resize(size_);
  for (NodeId place = 0; place < size_; ++place) order_[by_value[place]] = place;
}

NodeIds NodeIndex::take_ids() {
  if (kind_ == Kind::kRows) return {};
  if (textual_) return NodeIds::strings(texts_.take_offsets(), texts_.take_arena());
  std::vector<int64_t> ids;
  if (fast_limit_ > 0) {
    if (identical_) return {};
    ids.reserve(size_);
    for (size_t i = 0; i < bits_.size(); ++i)
      for (uint64_t word = bits_[i]; word != 0; word &= word - 1)
        ids.push_back(static_cast<int64_t>(64 * i + static_cast<size_t>(__builtin_ctzll(word))));
  } else {
    ids = integers_.take_values();
    if (!identical_) std::sort(ids.begin(), ids.end());
  }
  bool range = true;
  for (size_t v = 0; v < ids.size() && range; ++v) range = ids[v] == static_cast<int64_t>(v);
  return range ? NodeIds{} : NodeIds::integers(std::move(ids));
}

SettledEdges::SettledEdges(EdgeList& edges, const NodeIndex* index) : edges_(edges) {
  if (index != nullptr && !index->identical()) edges.renumber([&](NodeId v) { return index->final(v); });
  if (edges.weighted())
    edges.visit([&](const EdgeRun& run) {
      weighted_ |= std::any_of(run.weights, run.weights + run.size, [](float weight) { return weight != 1; });
    });
}

void SettledEdges::visit(const std::function<void(const EdgeRun&)>& use) const {
  edges_.visit([&](EdgeRun run) {
    if (!weighted_) run.weights = nullptr;
    use(run);
  });
}

}  // namespace cgcn

// From what a text file calls its nodes to 0 … n-1, and back.
//
// Three cases. Rows: another file has given n, and an id is a row number. Open: the ids that turn up are the nodes;
// integers come out in ascending order (so that 0 … n-1 stay themselves), texts in order of appearance. Listed: as
// open, but in the order in which they were put, and closed once the list has been read.
//
// While files are read, put() gives provisional numbers; close() fixes the final ones and final() maps to them. Open
// integers below 2^27 take a bit each rather than a table entry: no lookup in a hash table for the usual edge list.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/dataset.h"
#include "graph/graph_builder.h"
#include "io/text/line_reader.h"
#include "io/text/name_table.h"

namespace cgcn {

class NodeIndex {
 public:
  enum class Kind { kRows, kOpen, kListed };
  // Thrown by put() if an id does not fit the fast way: read again with fast = false.
  struct NotFast {};

  static NodeIndex rows(NodeId n, fs::path counted_in);  // counted_in: the file that gave n, for messages
  static NodeIndex open(bool fast);
  static NodeIndex listed();

  // The provisional number of an id; an Error at the reader's line if it is negative, or no number if ids are row
  // numbers. kNoNode: there is no such node, which is noted for refuse_unknown().
  NodeId put(std::string_view id, const LineReader& at);
  // Error that counts and lists the unknown ids of this file, if there were such.
  void refuse_unknown(const fs::path& file);
  bool knows(std::string_view id) const;  // after close()
  // The same for an id of digits that has been read already.
  NodeId put_digits(uint64_t id, std::string_view text, const LineReader& at) {
    if (id >= fast_limit_) [[unlikely]]
      return put(text, at);
    if (kind_ == Kind::kOpen) mark(id);  // edges come before close()
    return static_cast<NodeId>(id);
  }
  // All nodes are known, from the file named here: put() only finds from now on.
  void close(fs::path counted_in);
  NodeId size() const { return size_; }
  bool has_names() const;  // after close(): ids are not the nodes' numbers 0 … n-1
  bool has_texts() const { return textual_; }
  bool identical() const { return identical_; }  // final(number) == number
  NodeId final(NodeId number) const { return identical_ ? number : bits_.empty() ? order_[number] : rank(number); }
  NodeIds take_ids();  // for the store; after this only size() and final() may be used

 private:
  explicit NodeIndex(Kind kind) : kind_(kind) {}
  void mark(uint64_t id) {
    if (id / 64 >= bits_.size()) bits_.resize(std::max<size_t>(id / 64 + 1, 2 * bits_.size()));
    bits_[id / 64] |= uint64_t{1} << (id % 64);
  }
  NodeId rank(uint64_t id) const {
    const uint64_t below = bits_[id / 64] & ((uint64_t{1} << (id % 64)) - 1);
    return ranks_[id / 64] + static_cast<NodeId>(__builtin_popcountll(below));
  }
  NodeId find(std::string_view id, std::optional<int64_t> value) const;
  NodeId note_unknown(std::string_view id, const LineReader& at);
  NodeId put_in_table(std::string_view id, std::optional<int64_t> value);
  void settle_bits();
  void sort_integers();

  Kind kind_;
  bool closed_ = false, identical_ = true, textual_ = false;
  uint64_t fast_limit_ = 0;  // ids below it are their own provisional number
  NodeId size_ = 0;
  fs::path counted_in_;
  std::vector<uint64_t> bits_;  // open and fast: which ids turned up
  std::vector<NodeId> ranks_;   // how many before each word of bits_
  IntegerTable integers_;
  TextTable texts_;
  std::vector<NodeId> order_;  // integers in the table: their place in ascending order
  TextTable unknown_;          // ids that put() did not find in the file that is being read
  std::string first_unknown_;  // where the first of them is
};

// Edges that were read, as the graph is to have them: with final numbers in place of provisional ones (index null: they
// are final), and without weights if every weight is 1.
class SettledEdges final : public EdgeSource {
 public:
  SettledEdges(EdgeList& edges, const NodeIndex* index);
  bool weighted() const override { return weighted_; }
  void visit(const std::function<void(const EdgeRun&)>& use) const override;
  void release() override { edges_.release(); }
  void spill() override { edges_.spill(); }

 private:
  EdgeList& edges_;
  bool weighted_ = false;
};

}  // namespace cgcn

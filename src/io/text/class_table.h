// Classes as text has them: numbers or names, one per node.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dataset.h"
#include "io/numpy/array_labels.h"
#include "io/text/name_table.h"

namespace cgcn {

// What R, SQL and Python write for a missing number: empty, nan, NA, N/A, null, None. Among names it may be one.
bool means_no_number(std::string_view text);

// Classes of an earlier store, whose numbers are to be kept.
struct KnownClasses {
  std::vector<std::string> names;  // empty: they are known by number
  uint32_t count = 0;
  std::string store;  // what it is called, for messages
};

// Error if numbers below 0, which mean no class, leave only one class: -1 and 1 are meant as two.
void refuse_single_class(std::span<const int32_t> classes, uint64_t negative, const std::string& where);

// Collects (node, class) pairs; when all are known, decides what the classes are: whole numbers stand for themselves
// (negative: none; see name_numbers), anything else is a name, and names are numbered in alphabetical order. Empty
// and "nan" mean none; among numbers all that means_no_number() knows.
class ClassTable {
 public:
  void add(NodeId node, std::string_view text) { entries_.push_back({node, texts_.put(text)}); }
  size_t size() const { return entries_.size(); }
  bool first_class_is_unique() const {
    return !entries_.empty() && std::none_of(entries_.begin() + 1, entries_.end(),
                                             [&](const Entry& entry) { return entry.text == entries_[0].text; });
  }
  std::vector<NodeId> nodes() const {
    std::vector<NodeId> nodes;
    for (const Entry& entry : entries_) nodes.push_back(entry.node);
    return nodes;
  }

  struct Result {
    Labels labels;
    std::vector<std::string> names;  // empty if classes are numbers
    std::vector<bool> listed = {};   // several classes per node: which nodes the source names; empty: all
    uint64_t negative = 0;           // nodes whose class is a number below 0, which means none
  };
  // Numbers that leave out 0 are names: the classes are those that occur, rising, and called what they were. With 0,
  // a number that does not occur is a class without nodes; so it is if there is one class only.
  static void name_numbers(Result& result);

  // final(node) gives the place in 0 … n-1. `where` names the source in messages. known: null, or the classes that
  // there can be.
  template <class Final>
  Result settle(NodeId num_nodes, const std::string& where, Final&& final, const KnownClasses* known = nullptr) const {
    std::vector<std::string> names;
    const std::vector<int32_t> class_of_text = number_classes(where, names, known);
    std::vector<int32_t> classes(num_nodes, -1);
    uint32_t count = known != nullptr ? known->count : static_cast<uint32_t>(names.size());
    uint64_t negative = 0;
    for (const auto& [node, text] : entries_) {
      const int32_t label = class_of_text[text];
      classes[final(node)] = label;
      if (label < 0 && texts_[text].starts_with('-')) ++negative;
      if (names.empty() && label >= 0) count = std::max(count, static_cast<uint32_t>(label) + 1);
    }
    if (count == 0) throw Error("labels no node", where);
    if (known == nullptr) refuse_single_class(classes, negative, where);
    Result result{Labels::single(std::move(classes), count), std::move(names), {}, negative};
    if (known == nullptr && result.names.empty()) name_numbers(result);
    return result;
  }

  // The texts as lists of classes, such as a;b: multi-label. Nodes without a text are not listed.
  static constexpr std::string_view kListSeparators = ";|";
  template <class Final>
  Result settle_lists(NodeId num_nodes, const std::string& where, Final&& final, const KnownClasses* known) const {
    Lists lists = read_lists(where, known);
    LabelBits bits(num_nodes, static_cast<uint32_t>(lists.names.size()));
    std::vector<bool> listed(num_nodes, false);
    for (const auto& [node, text] : entries_) {
      for (const uint32_t label : lists.classes[text]) bits.set(final(node), label);
      listed[final(node)] = !lists.classes[text].empty();
    }
    return {bits.take(), std::move(lists.names), std::move(listed)};
  }

  // The texts as numbers, NaN for those that mean none. Error that names `where` if one is neither.
  template <class Final>
  std::vector<float> numbers(NodeId num_nodes, const std::string& where, Final&& final) const {
    const std::vector<float> value_of_text = read_numbers(where);
    std::vector<float> values(num_nodes, NAN);
    for (const auto& [node, text] : entries_) values[final(node)] = value_of_text[text];
    return values;
  }

 private:
  std::vector<float> read_numbers(const std::string& where) const;
  std::vector<int32_t> number_classes(const std::string& where, std::vector<std::string>& names,
                                      const KnownClasses* known) const;
  struct Lists {
    std::vector<std::string> names;
    std::vector<std::vector<uint32_t>> classes;  // of each text
  };
  Lists read_lists(const std::string& where, const KnownClasses* known) const;
  std::vector<int32_t> number_as_known(const std::string& where, const KnownClasses& known) const;
  struct Entry {
    NodeId node, text;
  };
  std::vector<Entry> entries_;
  TextTable texts_;
};

// Labels of an array, whose classes are numbers. known: as for settle().
ClassTable::Result settle_array(Labels labels, const std::string& where, const KnownClasses* known = nullptr);

// The class_map.json of GraphSAGE and GraphSAINT: for each node that it names, a class or a list of 0/1. find(key)
// gives the node, or kNoNode if there is none such.
ClassTable::Result read_class_map(const fs::path& path, NodeId num_nodes,
                                  const std::function<NodeId(std::string_view)>& find);

}  // namespace cgcn

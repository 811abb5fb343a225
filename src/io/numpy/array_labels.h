// Labels and roles of the split from arrays: each element is checked, and an Error names the row.
#pragma once

#include <string>
#include <vector>

#include "graph/dataset.h"
#include "io/numpy/array.h"
#include "io/reader.h"

namespace cgcn {

// Error unless the array has a row for every node of the graph. what: the rows are, for the message.
void require_rows(const Array& array, NodeId num_nodes, const char* what);

// [N] or [N, 1]: a class per node, negative (or NaN, in floats) for none. [N, C]: 0 or 1 for each class.
// With Task::kRegression: [N] or [N, 1], a number per node, NaN for none.
Labels read_labels(const Array& labels, NodeId num_nodes, Task task = Task::kClassification);
// Packs 0/1 rows of floats or integers that come in blocks, for Labels::multi.
class LabelBits {
 public:
  LabelBits(NodeId num_nodes, uint32_t num_classes)
      : num_classes_(num_classes), bits_(size_t{num_nodes} * Labels::row_bytes(num_classes), 0) {}
  void set(NodeId v, uint32_t label) {
    bits_[size_t{v} * Labels::row_bytes(num_classes_) + label / 8] |= static_cast<uint8_t>(1u << (label % 8));
  }
  Labels take() { return Labels::multi(std::move(bits_), num_classes_); }

 private:
  uint32_t num_classes_;
  Buffer<uint8_t> bits_;
};
// Number of classes for labels up to `largest`, or Error if that cannot be a class number.
uint32_t check_class_count(int64_t largest, const std::string& where);

// [N]: 0 train, 1 validation, 2 test; 255 or -1 none.
std::vector<uint8_t> read_split(const Array& split, NodeId num_nodes);
// Whether a part of the split marks its nodes instead of listing them: booleans, a file called …_mask, or 0 and 1 for
// each of more than two nodes.
bool is_mask(const Array& part, const fs::path& file, NodeId num_nodes);
// Gives `role` to the nodes that the array lists (ids), or that it marks (a mask of [N] bools).
void assign_role(const Array& nodes, Role role, std::vector<uint8_t>& split);  // node numbers, or a mask of booleans
void assign_role_by_mask(const Array& mask, Role role, std::vector<uint8_t>& split);  // booleans, or 0 and 1
void assign_role(int64_t node, Role role, const std::string& where, std::vector<uint8_t>& split);

}  // namespace cgcn

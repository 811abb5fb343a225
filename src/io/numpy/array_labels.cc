#include "io/numpy/array_labels.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "io/text/class_table.h"

namespace cgcn {
namespace {

constexpr int64_t kMostClasses = int64_t{1} << 24;

Labels read_single_labels(const Array& labels, NodeId num_nodes) {
  std::vector<int32_t> classes(num_nodes);
  int64_t largest = -1;
  uint64_t negative = 0;
  const auto put = [&](uint64_t v, int64_t label) {
    if (label > largest) {
      check_class_count(label, fmt::format("{}: row {}", labels.where(), v));
      largest = label;
    }
    classes[v] = label < 0 ? -1 : static_cast<int32_t>(label);
  };
  if (labels.is_integer()) {
    for_each_row_block<int64_t>(labels, [&](uint64_t first, std::span<const int64_t> block) {
      for (size_t i = 0; i < block.size(); ++i) {
        put(first + i, block[i]);
        negative += block[i] < 0 ? 1 : 0;
      }
    });
  } else {
    for_each_row_block<double>(labels, [&](uint64_t first, std::span<const double> block) {
      for (size_t i = 0; i < block.size(); ++i) {
        const double label = std::isnan(block[i]) ? -1 : block[i];
        if (label != std::floor(label) || std::abs(label) > 0x1p53)
          throw Error(fmt::format("row {} holds {}, which is no class number", first + i, label), labels.where(),
                      "numbers to predict are imported with --task regression");
        put(first + i, static_cast<int64_t>(label));
        negative += block[i] < 0 ? 1 : 0;
      }
    });
  }
  if (largest < 0) throw Error("labels no node: every entry is negative", labels.where());
  refuse_single_class(classes, negative, labels.where());
  return Labels::single(std::move(classes), check_class_count(largest, labels.where()));
}

Labels read_number_labels(const Array& labels, NodeId num_nodes) {
  std::vector<float> values(num_nodes);
  bool any = false;
  for_each_row_block<float>(labels, [&](uint64_t first, std::span<const float> block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (std::isinf(block[i])) throw Error(fmt::format("row {} is infinite", first + i), labels.where());
      any = any || !std::isnan(block[i]);
      values[first + i] = block[i];
    }
  });
  if (!any) throw Error("labels no node: every entry is NaN", labels.where());
  return Labels::numbers(std::move(values));
}

Labels read_multi_labels(const Array& labels, NodeId num_nodes) {
  const auto num_classes = check_class_count(static_cast<int64_t>(labels.columns()) - 1, labels.where());
  LabelBits bits(num_nodes, num_classes);
  for_each_row_block<float>(labels, [&](uint64_t first, std::span<const float> block) {
    for (size_t i = 0; i < block.size(); ++i) {
      const uint64_t row = first + i / num_classes;
      const auto label = static_cast<uint32_t>(i % num_classes);
      if (block[i] == 1)
        bits.set(static_cast<NodeId>(row), label);
      else if (block[i] != 0)
        throw Error(fmt::format("row {}, column {} holds {}, but a label is 0 or 1", row, label, block[i]),
                    labels.where());
    }
  });
  return bits.take();
}

// Whether every element is 0 or 1.
bool all_bits(const Array& array) {
  bool bits = true;
  for_each_row_block<double>(array, [&](uint64_t, std::span<const double> block) {
    bits = bits && std::all_of(block.begin(), block.end(), [](double value) { return value == 0 || value == 1; });
  });
  return bits;
}

}  // namespace

bool is_mask(const Array& part, const fs::path& file, NodeId num_nodes) {
  if (part.dtype() == "|b1" || file.stem().string().ends_with("_mask")) return true;
  // A list has each node once: if there are more than two, it cannot be of 0 and 1 alone.
  return num_nodes > 2 && part.is_number() && part.shape().size() == 1 && part.size() == num_nodes && all_bits(part);
}

void require_rows(const Array& array, NodeId num_nodes, const char* what) {
  if (array.shape().empty() || array.rows() != num_nodes)
    throw Error(fmt::format("holds {} of {} nodes, but the graph has {}", what, array.rows(), num_nodes),
                array.where());
}

uint32_t check_class_count(int64_t largest, const std::string& where) {
  if (largest < 0) throw Error("there are no classes", where);
  if (largest >= kMostClasses)
    throw Error(fmt::format("class {} is larger than any class number can be ({})", largest, kMostClasses - 1), where,
                "number the classes 0, 1, 2 …");
  return static_cast<uint32_t>(largest) + 1;
}

Labels read_labels(const Array& labels, NodeId num_nodes, Task task) {
  labels.require_numbers("labels");
  if (labels.shape().size() > 2) labels.require_dimensions(2, "labels");
  require_rows(labels, num_nodes, "labels");
  if (task == Task::kRegression) {
    if (labels.columns() != 1)
      throw Error(fmt::format("has {} columns, but regression predicts one number per node", labels.columns()),
                  labels.where());
    return read_number_labels(labels, num_nodes);
  }
  return labels.columns() == 1 ? read_single_labels(labels, num_nodes) : read_multi_labels(labels, num_nodes);
}

std::vector<uint8_t> read_split(const Array& split, NodeId num_nodes) {
  split.require_integers("roles in a split");
  split.require_dimensions(1, "a split");
  require_rows(split, num_nodes, "roles");
  std::vector<uint8_t> roles(num_nodes, static_cast<uint8_t>(Role::kNone));
  for_each_row_block<int64_t>(split, [&](uint64_t first, std::span<const int64_t> block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] >= 0 && block[i] <= 2)
        roles[first + i] = static_cast<uint8_t>(block[i]);
      else if (block[i] != 255 && block[i] != -1)
        throw Error(fmt::format("row {} holds {}, which is no role", first + i, block[i]), split.where(),
                    "0 for train, 1 for validation, 2 for test, 255 for none");
    }
  });
  return roles;
}

void assign_role(int64_t node, Role role, const std::string& where, std::vector<uint8_t>& split) {
  if (node < 0 || node >= static_cast<int64_t>(split.size()))
    throw Error(fmt::format("names node {}, but there are {} nodes, numbered from 0", node, split.size()), where);
  uint8_t& slot = split[static_cast<size_t>(node)];
  if (slot != static_cast<uint8_t>(Role::kNone) && slot != static_cast<uint8_t>(role))
    throw Error(fmt::format("node {} is in more than one part of the split", node), where);
  slot = static_cast<uint8_t>(role);
}

void assign_role(const Array& nodes, Role role, std::vector<uint8_t>& split) {
  if (nodes.dtype() == "|b1") return assign_role_by_mask(nodes, role, split);
  nodes.require_integers("node ids");
  nodes.require_dimensions(1, "a part of a split");
  for_each_row_block<int64_t>(nodes, [&](uint64_t, std::span<const int64_t> block) {
    for (const int64_t node : block) assign_role(node, role, nodes.where(), split);
  });
}

void assign_role_by_mask(const Array& mask, Role role, std::vector<uint8_t>& split) {
  mask.require_numbers("a mask");
  mask.require_dimensions(1, "a part of a split");
  const char* hint =
      mask.dtype() == "|b1" ? "" : "if it lists node numbers, call it train_idx.npy, val_idx.npy or test_idx.npy";
  if (mask.size() != split.size())
    throw Error(fmt::format("marks {} nodes, but the graph has {}", mask.size(), split.size()), mask.where(), hint);
  for_each_row_block<double>(mask, [&](uint64_t first, std::span<const double> block) {
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] != 0 && block[i] != 1)
        throw Error(fmt::format("holds {}, and a mask has 0 and 1", block[i]), mask.where(), hint);
      if (block[i] == 1) assign_role(static_cast<int64_t>(first + i), role, mask.where(), split);
    }
  });
}

}  // namespace cgcn

// All that is known of one learning problem: graph, features, labels, split, and the user's own node ids.
//
// Everything inside the program counts nodes 0 … n-1 in the order of the store; everything a user sees goes through
// ids.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/file.h"
#include "common/shared_array.h"
#include "graph/csr_graph.h"
#include "graph/feature_encoding.h"
#include "graph/features.h"

namespace cgcn {

enum class Role : uint8_t { kTrain = 0, kValidation = 1, kTest = 2, kNone = 255 };

// One class per node (int32, -1: unknown); multi-label: any number of classes per node (packed bits, bit c of a row
// at byte c / 8, least significant first); or a number per node, for regression (float32, NaN: unknown), which counts
// as one class. Only nodes with a role in the split are ever trained on or scored.
class Labels {
 public:
  Labels() = default;  // no labels
  static Labels single(SharedArray<int32_t> classes, uint32_t num_classes);
  static Labels multi(SharedArray<uint8_t> bits, uint32_t num_classes);  // n × row_bytes(num_classes)

  static Labels numbers(SharedArray<float> values);  // regression

  bool present() const { return num_classes_ > 0; }
  bool multi_label() const { return !bits_.empty(); }
  bool regression() const { return !values_.empty(); }
  // Whether v has a label; of several classes, none at all is one.
  bool known(NodeId v) const { return multi_label() || (regression() ? !std::isnan(values_[v]) : classes_[v] >= 0); }
  uint32_t num_classes() const { return num_classes_; }
  static size_t row_bytes(uint32_t num_classes) { return (size_t{num_classes} + 7) / 8; }

  int32_t class_of(NodeId v) const { return classes_[v]; }
  bool has(NodeId v, uint32_t label) const {
    return ((bits_[size_t{v} * row_bytes(num_classes_) + label / 8] >> (label % 8)) & 1) != 0;
  }
  std::span<const uint8_t> bit_row(NodeId v) const {
    return bits_.span().subspan(size_t{v} * row_bytes(num_classes_), row_bytes(num_classes_));
  }
  float value_of(NodeId v) const { return values_[v]; }
  std::span<const int32_t> classes() const { return classes_; }
  std::span<const float> values() const { return values_; }
  uint64_t stored_bytes() const {
    return classes_.size() * sizeof(int32_t) + bits_.size() + values_.size() * sizeof(float);
  }
  std::span<const uint8_t> bits() const { return bits_; }

 private:
  uint32_t num_classes_ = 0;
  SharedArray<int32_t> classes_;
  SharedArray<uint8_t> bits_;
  SharedArray<float> values_;
};

// What users call their nodes: 0 … n-1 themselves (nothing is stored), other integers, or strings.
class NodeIds {
 public:
  NodeIds() = default;
  static NodeIds integers(SharedArray<int64_t> ids);
  static NodeIds strings(SharedArray<uint64_t> offsets,
                         SharedArray<char> text);  // id v is text[offsets[v] … offsets[v+1])

  enum class Kind { kRange, kIntegers, kStrings };
  Kind kind() const { return kind_; }
  std::string text(NodeId v) const;
  std::span<const int64_t> integer_ids() const { return integers_; }
  std::span<const uint64_t> string_offsets() const { return offsets_; }
  std::span<const char> string_text() const { return text_; }

 private:
  Kind kind_ = Kind::kRange;
  SharedArray<int64_t> integers_;
  SharedArray<uint64_t> offsets_;
  SharedArray<char> text_;
};

struct Dataset {
  std::string name;  // "cora", "reddit-like"
  fs::path path;     // the store it was opened from; empty if made in memory

  CsrGraph graph;
  FeatureMatrix features;
  Labels labels;
  SharedArray<uint8_t> split;       // Role per node; empty if there is none
  SharedArray<uint32_t> graph_ids;  // which graph a node belongs to; empty if there is one
  NodeIds ids;
  std::vector<std::string> class_names;    // empty: classes are known by number
  std::vector<std::string> feature_names;  // of the feature columns; empty: they are known by position
  std::vector<ColumnEncoding> encoding;    // what made them of a table; empty: plain numbers

  std::string graph_hash;    // of the adjacency alone
  std::string content_hash;  // of all but the node ids: equal data in any format gives the same

  NodeId num_nodes() const { return graph.num_nodes(); }
  Role role(NodeId v) const { return split.empty() ? Role::kNone : static_cast<Role>(split[v]); }
  // Whether v counts in the loss: a training node whose label is known.
  bool is_trained_on(NodeId v) const { return role(v) == Role::kTrain && labels.present() && labels.known(v); }
  std::array<uint64_t, 3> split_sizes() const;  // train, validation, test
  // Edges between training nodes: what training sees of the graph unless it is transductive.
  uint64_t num_training_edges() const;
  uint32_t num_graphs() const;
  std::string class_name(uint32_t label) const {
    return label < class_names.size() ? class_names[label] : std::to_string(label);
  }
};

// Train, validation and test by shares such as {60, 20, 20} of the labelled nodes, drawn with the seed. listed: which
// nodes the labels name, if a node of several classes may have none; empty: all.
SharedArray<uint8_t> random_split(const Labels& labels, NodeId num_nodes, std::array<double, 3> shares, uint64_t seed,
                                  const std::vector<bool>& listed = {});

}  // namespace cgcn

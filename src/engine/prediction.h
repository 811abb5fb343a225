// What a model says of a graph's nodes, in the user's ids and order: classes, probabilities or embeddings, as values or
// as a file.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "train/predictor.h"

namespace cgcn {

enum class PredictionKind { kClasses, kClassAndProbability, kProbabilities, kEmbeddings };

struct PredictionRequest {
  PredictionKind kind = PredictionKind::kClasses;
  uint32_t layer = 0;       // of embeddings, from 1; 0: the last hidden one
  std::string nodes;        // a file of ids; empty: all nodes
  bool unlabelled = false;  // only nodes without a label
  bool calibrated = false;  // probabilities after the model's temperature
  SmoothingOptions smoothing;

  void list_options(OptionList& list);
};

class Prediction {
 public:
  Prediction(Predictor& predictor, const PredictionRequest& request);

  size_t nodes() const { return nodes_.empty() ? values_.rows() : nodes_.size(); }
  uint32_t columns(bool npy) const;  // of values written for a node

  // Piece by piece, the header first.
  using Write = std::function<void(const std::string&)>;
  void write_csv(const Write& write) const;
  void write_npy(const Write& write) const;

 private:
  template <class Use>
  void for_each_row(Use&& use) const;
  std::string csv_header() const;
  std::string csv_row(NodeId v, std::span<float> row) const;
  std::string npy_header() const;
  std::string npy_row(std::span<float> row) const;
  float value_of(float output) const { return static_cast<float>(predictor_.saved().target.to_value(output)); }
  std::vector<uint32_t> classes_of(std::span<const float> logits) const;

  PredictionKind kind_;
  const Predictor& predictor_;
  bool multi_label_, regression_;
  std::vector<NodeId> nodes_;  // in their order; empty: all
  SlabMatrix values_;          // a row for each of them …
  bool packed_ = false;        // … or, if not packed, for every node of the graph
  OutputRule rule_;
  double temperature_ = 1;  // of probabilities
};

// To a .csv or .npy file, whole or not at all; what was there before is replaced. Error if that may not be.
void write_prediction(const Prediction& prediction, const fs::path& output);
// Before any work is done.
void require_writable(const PredictionRequest& request, const fs::path& output);

}  // namespace cgcn

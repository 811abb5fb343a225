// A trained model on a graph: the one it was trained on, or another with the same features. What the commands evaluate
// and predict do, and what a program that embeds inference uses.
#pragma once

#include <functional>
#include <optional>

#include "train/checkpoint.h"
#include "train/evaluation.h"

namespace cgcn {

class Predictor {
 public:
  // run: a run folder, or a checkpoint file in it. store empty: the one that the model was trained on.
  // Error if the graph's features or classes are not those that the model knows.
  // group: its ranks have a predictor each, and call the same functions; it outlives them.
  explicit Predictor(const fs::path& run, const fs::path& store = {}, const MemoryOptions& memory = {},
                     dist::Group& group = dist::no_group(), const PrecisionOptions& precision = {});

  Predictor(const fs::path& run, Store store, const MemoryOptions& memory, const PrecisionOptions& precision = {});

  const Dataset& data() const { return data_; }
  const SavedModel& saved() const { return saved_; }
  uint32_t num_layers() const { return saved_.model->num_layers(); }
  // What the model calls its classes; numbers if it has no names.
  std::string class_name(uint32_t label) const;

  // The same in an array: the number that its name is, if all names are whole numbers.
  int32_t class_number(uint32_t label) const;

  // What `asked` means for this model and graph: kTrained is how its test was smoothed, or nothing, with a note, if the
  // graph has no labels to smooth by.
  Smoothing smoothing(Smoothing asked) const;

  // Error if memory has no room for so many bytes, which are given back before an inference.
  void require_room_for(uint64_t bytes, const std::string& what) const;
  // Gives back what is mapped of the graph's store; it is read again when it is used.
  void release_pages() const;

  // In a group: Error if the ranks have different graphs or models.
  void require_same_on_all_ranks() const;

  // Error if no node has both a label and a role.
  Evaluation evaluate(const EvaluationOptions& options, Smoothing smoothing = Smoothing::kTrained);
  // H_layer of all nodes, in the order of the store; the last layer's are the logits. In a group the first rank has
  // them, the others get a matrix of no rows; so below.
  SlabMatrix embeddings(uint32_t layer);

  // Logits, and how they become classes and probabilities.
  struct Output {
    SlabMatrix logits;
    OutputRule rule;
    bool smoothed = false;  // their probabilities are calibrated as they are

    // That they are divided by for calibrated probabilities. Error if the model has none.
    double temperature() const;
  };
  // Of all nodes; not kTrained. In a group: of the first rank.
  Output output(Smoothing smoothing);
  // Row i is that of nodes[i], bit for bit as of all nodes. Nothing if it is cheaper to compute all of them.
  std::optional<SlabMatrix> embeddings_of(std::span<const NodeId> nodes, uint32_t layer);

 private:
  const PreparedFeatures& features(Smoothing smoothing);
  uint64_t memory_for_inference() const;
  uint64_t inference_memory(Smoothing smoothing) const;
  uint64_t least_memory(Smoothing smoothing) const;
  void require_memory(Smoothing smoothing) const;

  void fit_model_to_data();  // Error if they do not fit
  Evaluation score(const EvaluationOptions& options, Smoothing smoothing);
  void require_smoothing() const;
  SmoothingRequest request_for(Smoothing smoothing) const;
  void require_comparable() const;
  InferenceInput inference_input(Smoothing smoothing);
  const InferenceOrder* order(Smoothing smoothing);
  void find_order();
  std::optional<SlabMatrix> neighbourhood_of(std::span<const NodeId> nodes, uint32_t layer) const;

  dist::Group& group_;
  uint64_t memory_;  // for the whole process
  SavedModel saved_;
  Store store_;
  Dataset data_;
  std::optional<PreparedFeatures> features_;
  std::optional<GraphShare> share_;
  bool order_sought_ = false;
  std::optional<InferenceOrder> order_;
};

// In place, from logits: softmax, or the sigmoid of each if a node may have many classes. temperature: divides them
// first.
void to_probabilities(std::span<float> logits, bool multi_label, double temperature = 1);

}  // namespace cgcn

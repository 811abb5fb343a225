// A model and its training in files that are whole at every moment.
//
//   last.safetensors             weights; in its metadata all options, the shape, the state, and what it was trained on
//   optimiser-STEP.safetensors   the optimiser's state of the same step, and the history of embeddings if the method
//   keeps
//                                one; named in last.safetensors
//   best.safetensors             the weights that did best on validation, the same way
//
// Every array and every metadata text has a checksum (safetensors.h), and weights and moments are finite: a file that
// is damaged, or that was edited, is refused when it is read.
//
// The optimiser's state is written first, under a name of its own; last.safetensors, which names it, is then renamed
// into place, and that is the moment when the new checkpoint counts. Older moments are removed after it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "nn/history.h"
#include "nn/model.h"
#include "nn/optimiser.h"
#include "train/output_rule.h"
#include "train/run_options.h"
#include "train/standardise.h"

namespace cgcn {

// What steps had to do: the neighbourhood expansion as numbers.
struct Work {
  uint64_t embeddings = 0;       // rows computed, all layers together
  uint64_t links = 0;            // that embeddings were passed along, those from a history included
  uint64_t sources = 0;          // rows of the layers that the edges start from
  double preparing_seconds = 0;  // making the batches, on a thread of its own

  void add(const Work& other) {
    embeddings += other.embeddings;
    links += other.links;
    sources += other.sources;
    preparing_seconds += other.preparing_seconds;
  }
  // How often an embedding was used by the layer above. Logits, which no layer uses, do not count.
  double utilisation() const { return sources > 0 ? static_cast<double>(links) / static_cast<double>(sources) : 0; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Work, embeddings, links, sources, preparing_seconds)

// The best validation so far.
struct Standing {
  double best_score = -1, best_loss = 0;
  uint32_t best_epoch = 0;  // counted from 1; 0: none yet
  uint32_t since_best = 0;  // validations since then
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Standing, best_score, best_loss, best_epoch, since_best)

// Where training stands. Written and read as JSON, whose numbers keep every bit.
struct TrainingState {
  uint32_t epoch = 0, batch = 0;  // the next step; batch is the number of batches if the epoch's end is still to do
  uint64_t step = 0;              // steps done
  double loss_sum = 0;            // of this epoch's steps so far, each weighted by its labelled nodes
  uint64_t labelled = 0;
  double epoch_seconds = 0, train_seconds = 0, total_seconds = 0;
  double epoch_waited = 0;                             // of epoch_seconds: for batches
  std::vector<std::pair<std::string, double>> stages;  // seconds of what is not an epoch, of all sessions
  uint64_t training_peak = 0;                          // bytes resident before the first evaluation, at most
  Standing standing;
  Standing regular;  // the same without a validation that only the last epoch had: what a longer run continues from
  Work epoch_work, work;  // of this epoch so far, and of those that are done

  void end_epoch() {
    ++epoch;
    batch = 0;
    loss_sum = 0;
    labelled = 0;
    epoch_waited = 0;
    train_seconds += std::exchange(epoch_seconds, 0);
    work.add(std::exchange(epoch_work, {}));
  }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingState, epoch, batch, step, loss_sum, labelled, epoch_seconds, epoch_waited,
                                   stages, training_peak, train_seconds, total_seconds, standing, regular, epoch_work,
                                   work)

// What a model was trained on.
struct TrainedOn {
  std::string store, name, content_hash, partition_hash;
  std::string class_weights_hash = {};  // empty: all classes count the same
  std::vector<std::string> class_names;
  bool identity = false;                        // no features: the model has a vector for each of its nodes
  std::vector<std::string> feature_names = {};  // of its input columns; empty: they have none
  std::vector<ColumnEncoding> encoding = {};    // what made them of a table
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TrainedOn, store, name, content_hash, partition_hash,
                                                class_weights_hash, class_names, identity, feature_names, encoding)

// What does not change while a model is trained.
struct ModelOrigin {
  RunOptions options;
  ColumnScaling scaling;
  TrainedOn trained_on;
  TargetScaling target = {};  // regression
};

// A model as read from a file.
struct SavedModel : ModelOrigin {
  ModelShape shape;
  TrainingState state;
  OutputRule rule;  // once the run was tested
  std::optional<Model> model;
  std::string optimiser_file;  // in the same folder; empty in best.safetensors
  bool has_checksums = true;   // false: of another program, or of an earlier version
};

// Weights as Model::values() lies; the model itself gives names and shapes.
struct WeightsOf {
  const Model& model;
  std::span<const float> values;
};
void save_model(const fs::path& file, const ModelOrigin& origin, const WeightsOf& weights, const TrainingState& state,
                const std::string& optimiser_file = {}, const OutputRule& rule = {});
// precision: of the model, and in its options.
SavedModel load_model(const fs::path& file, const PrecisionOptions& precision = {});

// With the history of embeddings if the method keeps one; null: none.
void save_optimiser(const fs::path& file, const Model& model, Optimiser& optimiser, const EmbeddingHistory* history);
// Of the run's checkpoint `saved`: Error if the file is of another step.
void load_optimiser(const fs::path& run, const SavedModel& saved, const Model& model, Optimiser& optimiser,
                    EmbeddingHistory* history);

// The model that a run offers: the best if there is one, else the last. A file may be named as well.
fs::path kept_checkpoint(const fs::path& run);

}  // namespace cgcn

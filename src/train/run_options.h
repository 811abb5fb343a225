// All that can be said about a run, in one list: partition, method, model, optimiser, training, evaluation.
//
// Later sources win: defaults, then a recipe, then a TOML file, then the command line.
#pragma once

#include <optional>
#include <string>

#include "batch/methods.h"
#include "common/file.h"
#include "common/memory_budget.h"
#include "nn/optimiser.h"
#include "partition/partition.h"
#include "train/train_options.h"

namespace cgcn {

// What options may be useless for.
struct DataTraits {
  bool sparse = false, identity = false;  // its features; the identity is sparse, too
  bool has_validation = true;
};

struct RunOptions {
  PartitionOptions partition;
  MethodOptions method;
  ModelOptions model;
  OptimiserOptions optimiser;
  TrainOptions train;
  MemoryOptions memory;

  void list_options(OptionList& list);
  // Why this option changes nothing beside the others and on such data; empty where it may change something.
  std::string why_unused(const Option& option, const DataTraits& data) const;
  // Whether a run that is resumed may have another value: what was learnt so far does not depend on it, or is bound to
  // it otherwise (`from`, by the hash of the partition).
  bool may_change(const Option& option) const;

  // In training. An input projection changes with every step, so that no A·X can be computed ahead.
  bool batch_aggregates_input() const { return method.first_layer == FirstLayer::kBatch || model.input_projection; }
  // N(A) of the first layer. One that aggregates by the batch's links does it as the other layers do, in training and
  // wherever the model is used.
  Normalisation first_normalisation() const {
    return batch_aggregates_input() ? model.layer_normalisation() : model.product_normalisation();
  }
  // Of the A·X that evaluation takes; none where it takes none.
  std::optional<Normalisation> evaluated_product() const {
    return model.input_projection ? std::nullopt : std::optional(first_normalisation());
  }
};

// Sets the options that a TOML file names: `name = value` lines, in tables or not. Error with file and line.
void read_toml(const fs::path& file, OptionList& options);

}  // namespace cgcn

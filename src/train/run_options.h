// All that can be said about a run, in one list: partition, method, model, optimiser, training, evaluation.
//
// Later sources win: defaults, then a recipe (choices.h if none is named), then a TOML file, then the command line.
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

// What the effect of an option may depend on.
struct DataTraits {
  bool sparse = true, identity = false;  // its features; the identity is sparse, too
  bool has_validation = true;
  bool multi_label = true, regression = true;
};
DataTraits traits_of(const Dataset& data);

struct RunOptions {
  PartitionOptions partition;
  MethodOptions method;
  ModelOptions model;
  OptimiserOptions optimiser;
  TrainOptions train;
  MemoryOptions memory;

  DataTraits data;  // no option: what some of them have no effect on

  // With what one group of options means for another (Option::needs()).
  void list_options(OptionList& list);

  // In training. An input projection changes with every step, so that no A·X can be computed ahead.
  bool batch_aggregates_input() const { return method.first_layer == FirstLayer::kBatch || model.input_projection; }
  // N(A) of the first layer. One that aggregates by the batch's edges does it as the other layers do, in training and
  // wherever the model is used.
  Normalisation first_normalisation() const {
    return batch_aggregates_input() ? model.layer_normalisation() : model.product_normalisation();
  }
  // Of the A·X that evaluation takes; none if it takes none.
  std::optional<Normalisation> evaluated_product() const {
    return model.input_projection ? std::nullopt : std::optional(first_normalisation());
  }

 private:
  void relate(OptionList& list);
};

// Sets the options that a TOML file names: `name = value` lines, in tables or not. Returns their names. Error with file
// and line.
std::vector<std::string> read_toml(const fs::path& file, OptionList& options);

}  // namespace cgcn

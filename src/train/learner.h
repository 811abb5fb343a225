// What training changes, and what a checkpoint holds: the weights, the optimiser's state, the history of embeddings if
// the method keeps one, and how far training is.
#pragma once

#include <memory>
#include <optional>

#include "dist/group.h"
#include "nn/history.h"
#include "nn/model.h"
#include "nn/optimiser.h"
#include "train/checkpoint.h"

namespace cgcn {

struct TrainingInput;
struct TrainingPlan;

struct Learner {
  // As they are before the first step, with a workspace for every batch whose size is known.
  Learner(const TrainingPlan& plan, const TrainingInput& input);

  EmbeddingHistory* kept_history() { return history ? &*history : nullptr; }

  // All ranks of the group go on from where the first one stands.
  void share(dist::Group& group);

  Model model;
  std::unique_ptr<Optimiser> optimiser;
  std::optional<EmbeddingHistory> history;
  TrainingState state;
};

}  // namespace cgcn

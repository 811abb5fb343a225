// Correct and Smooth (Huang et al., 2021) and label propagation: what the labels of the training nodes say about their
// neighbours, added to what the model says.
//
//   propagate(X, α):  X_{t+1} = (1 - α)·X + α·S·X_t,  S = (D+I)^-½ (A+I) (D+I)^-½,  X_0 = X, kPropagationSteps times
//   correct:          E = Y - P on the training nodes, 0 elsewhere;  Z = P + s_v·propagate(E, α₁), where s_v brings
//                     the |error| of each row to the mean of the training nodes' (at most 1,000 times)
//   smooth:           G = propagate(Y on the training nodes, Z elsewhere, α₂)
//   labels:           G = propagate(Y on the training nodes, 0 elsewhere, α₂): the model is not asked
//
// P are the model's probabilities and Y the labels as 0 and 1. α₁ and α₂ are chosen on the validation nodes, by the
// score that chose the model (--select-by), among kAlphas; a step that does not do better there is left out, and if
// both are, the logits are the model's. Else G becomes a distribution:
//
//   shares:           z = log f(g / Σ max(g, 0)), or log(f(g) / f(1 - g)) with many classes per node: a correction
//                     may go beyond 0 and 1, which f approaches and keeps in order: f(g) = g from t on, else
//                     t² / (2t - g)
//   calibrated:       p = (1 - ε)·softmax(z / T) + ε / classes, or (1 - ε)·σ(z / T) + ε / 2, with the t and the
//                     temperature T that fit the n validation nodes best (calibration.h) and ε = 1 / (n + 2): nothing
//                     is surer than n right ones of n say it is. The class is that of z
//
// and the logits are those of p. Thresholds, if they are chosen, are chosen for them (thresholds.h).
//
// A column is propagated from the first step to the last in memory, as many at once as fit: neither the memory nor the
// threads change a bit.
#pragma once

#include <string>

#include "graph/dataset.h"
#include "train/output_rule.h"
#include "train/slab_matrix.h"
#include "train/train_options.h"

namespace cgcn {

inline constexpr uint32_t kPropagationSteps = 20;
inline constexpr double kAlphas[] = {0.2, 0.4, 0.6, 0.8, 0.9};

struct SmoothingRequest {
  Smoothing kind = Smoothing::kNone;
  SelectBy by = SelectBy::kAuto;    // the validation score that chooses how much
  bool chooses_thresholds = false;  // multi-label: on the validation nodes, for the smoothed output
};

// What was chosen; α 0: the step was left out.
struct SmoothingChoice {
  double correct = 0, smooth = 0;
  double temperature = 1;  // of the shares; the logits have been divided by it
  OutputRule rule = {};    // of the smoothed logits
  SelectBy by = SelectBy::kMicroF1;
  double before = 0, after = 0;  // that score of the validation nodes, without and with it
  double test_before = 0;        // micro F1 of the test nodes, without it
  bool chosen() const { return correct > 0 || smooth > 0; }
  std::string text() const;  // "errors 0.4, labels 0.8: validation F1 81.20 % to 82.40 %"
};

// Whether the graph has classes of training and of validation nodes to use; Error if not.
bool is_smoothable(const Dataset& data);
void require_smoothable(const Dataset& data);

// The least that it takes in addition to the logits.
uint64_t least_smoothing_memory(const Dataset& data, uint32_t classes);

// Logits of all nodes become those of what was chosen. rule: of the logits as they are. memory: for matrices and
// scratch, without the logits.
SmoothingChoice smooth_outputs(SlabMatrix& logits, const Dataset& data, const OutputRule& rule,
                               const SmoothingRequest& request, uint64_t memory);

}  // namespace cgcn

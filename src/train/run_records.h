// What a run's folder says of the run in text, for people and for the report: written as training goes on. Checkpoints
// are apart (run_checkpoints.h), and metrics.jsonl is the folder's own (run_directory.h).
#pragma once

#include "train/embedding_picture.h"
#include "train/prepare.h"
#include "train/result.h"
#include "train/run_directory.h"

namespace cgcn {

// environment.json and config.toml; a resumed run writes what holds from now on, and loses the result it had.
void record_run(const RunFiles& files, const TrainingPlan& plan, const TrainedOn& trained_on);
// clusters.json: how the graph was cut, if the method cuts it.
void record_clusters(const RunFiles& files, const TrainingPlan& plan, const TrainingInput& input);
// embeddings.json: a picture of the last hidden layer; nothing if there is none.
void record_embeddings(const RunFiles& files, const RowSample& hidden, const Dataset& data);
// result.json
void record_result(const RunFiles& files, const TrainingSummary& summary, const Dataset& data);

// What a run's folder takes at most, checkpoints included.
uint64_t planned_run_bytes(const RunOptions& options, const Dataset& data);

// Where the time of all sessions went. The epochs' times are summed from metrics.jsonl.
StageTimes recorded_stages(const RunFiles& files, const RunFigures& figures, double train_seconds,
                           double total_seconds);

}  // namespace cgcn

// plan → prepare → loop, with or without a run folder.
#include "engine/train.h"

#include "common/log.h"
#include "engine/content.h"
#include "engine/settings.h"
#include "train/run_records.h"
#include "train/training.h"

namespace clustergcn {
namespace {

Epoch to_epoch(const cgcn::EpochRecord& record, uint32_t of) {
  Epoch epoch{record.epoch, of, record.loss, record.learning_rate, record.seconds, {}};
  if (record.validation) epoch.validation = to_scores(*record.validation);
  return epoch;
}

}  // namespace

Training train(const Graph& graph, const Options& options, const Session& session) {
  return call(session, [&] {
    if (session.resume && session.run.empty())
      throw cgcn::Error("needs the folder of the run", "--resume", "--run DIR");
    const Graph::Content& content = graph.content();
    // Choosing settings may take minutes: a folder that cannot be used is told before.
    std::optional<cgcn::RunDirectory> directory;
    if (!session.run.empty())
      directory.emplace(session.resume ? cgcn::RunDirectory::reopen(session.run)
                                       : cgcn::RunDirectory::create(session.run, content.data.name));
    cgcn::RunSettings settings;
    settings.given = options.content().given;
    if (session.resume) {
      settings.settle_resumed(session.run);
    } else {
      settings.recipe = options.content().recipe;
      settings.settle(content.store);
    }
    for (const std::string& line : settings.choice_lines()) cgcn::log::note("auto: {}", line);
    const cgcn::RunOptions& run_options = settings.options;
    std::shared_ptr<cgcn::MemoryFolder> folder;
    if (!directory) {
      folder = std::make_shared<cgcn::MemoryFolder>(cgcn::planned_run_bytes(run_options, content.data));
      directory.emplace(cgcn::RunDirectory::create(folder->path() / "run", content.data.name));
    }
    if (directory->is_new()) settings.record_choices(directory->files());
    cgcn::Training training(content.store, run_options, std::move(*directory), cgcn::dist::no_group(), settings.before);
    std::vector<Epoch> history;
    const cgcn::TrainingSummary summary = training.run([&](const cgcn::EpochRecord& record) {
      history.push_back(to_epoch(record, run_options.train.epochs));
      return !session.on_epoch || session.on_epoch(history.back());
    });
    return Training{.model = Model::load(summary.run.string()),
                    .history = std::move(history),
                    .evaluation = to_evaluation(*summary.evaluation),
                    .kept_epoch = summary.kept_epoch,
                    .stopped_early = summary.stopped_early,
                    .seconds = summary.total_seconds,
                    .run = folder ? std::string() : summary.run.string()};
  });
}

}  // namespace clustergcn

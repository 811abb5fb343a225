#include "partition/metis.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "common/descriptor.h"
#include "common/installed_files.h"
#include "common/interrupt.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/random.h"
#include "common/threads.h"
#include "common/timer.h"
#include "partition/metis_job.h"

namespace cgcn {
namespace {

constexpr uint64_t kMetisLimit = INT32_MAX;
constexpr int32_t kMetisOk = 1, kMetisNoMemory = -3;  // as metis.h has them; this process does not link it

// The job that METIS's process gets: a file in memory, which this process does not map.
class JobFile {
 public:
  JobFile() : file_(above_standard_streams(::memfd_create("clustergcn-metis", MFD_CLOEXEC))) {
    if (!file_.is_open()) throw Error(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
    extend(sizeof(MetisJob));
  }

  // Adds a graph; its arrays are given back as they are copied. Returns where its result will be.
  uint64_t add(MetisGraph graph, uint32_t parts, const PartitionOptions& options) {
    MetisJobPiece piece;
    piece.nodes = graph.num_nodes();
    piece.constraints = graph.num_constraints;
    piece.parts = static_cast<int32_t>(parts);
    piece.seed = static_cast<int32_t>(Random(options.seed, Purpose::kPartition).next() >> 1);
    piece.volume = options.objective == PartitionObjective::kVolume;
    piece.recursive = options.method == PartitionMethod::kMetisRecursive;
    piece.imbalance = options.imbalance;
    piece.offsets = append(std::move(graph.offsets));
    piece.targets = append(std::move(graph.targets));
    piece.edge_weights = append(std::move(graph.edge_weights));
    piece.node_weights = append(std::move(graph.node_weights));
    piece.clusters = extend(static_cast<uint64_t>(piece.nodes) * sizeof(int32_t));
    pieces_.push_back(piece);
    return piece.clusters;
  }

  void finish() {
    MetisJob job;
    job.pieces = pieces_.size();
    job.table = extend(pieces_.size() * sizeof(MetisJobPiece));
    job.bytes = end_;
    job.parent = ::getpid();
    write(&job, sizeof job, 0);
    write(pieces_.data(), pieces_.size() * sizeof(MetisJobPiece), job.table);
  }

  int descriptor() const { return file_.get(); }
  struct Outcome {
    int32_t return_code = 0, ended = 0;
    double seconds = 0;
  };
  Outcome outcome() const {
    MetisJob found;
    read(&found, sizeof found, 0);
    return {found.return_code, found.ended, found.seconds};
  }
  void read(void* out, uint64_t bytes, uint64_t offset) const {
    auto* place = static_cast<std::byte*>(out);
    while (bytes > 0) {
      const ssize_t got = ::pread(file_.get(), place, bytes, static_cast<off_t>(offset));
      if (got <= 0) throw Error(fmt::format("cannot read METIS's result: {}", std::strerror(errno)));
      place += got;
      bytes -= static_cast<uint64_t>(got);
      offset += static_cast<uint64_t>(got);
    }
  }

 private:
  static constexpr uint64_t kAlignment = 64, kChunk = uint64_t{16} << 20, kPage = 4096;

  // The process gets its standard streams first, and the job under the number 3.
  static int above_standard_streams(int fd) {
    if (fd < 0 || fd > kMetisJobFile) return fd;
    const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, kMetisJobFile + 1);
    ::close(fd);
    return above;
  }
  [[noreturn]] static void fail() {
    throw Error(fmt::format("cannot write METIS's graph into memory: {}", std::strerror(errno)), {},
                errno == EFBIG ? "ulimit -f unlimited: a file in memory counts as a file" : "");
  }
  uint64_t extend(uint64_t bytes) {
    const uint64_t begin = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    end_ = begin + bytes;
    if (::ftruncate(file_.get(), static_cast<off_t>(end_)) != 0) fail();
    return begin;
  }
  void write(const void* data, uint64_t bytes, uint64_t offset) {
    const auto* place = static_cast<const std::byte*>(data);
    while (bytes > 0) {
      const ssize_t put = ::pwrite(file_.get(), place, bytes, static_cast<off_t>(offset));
      if (put <= 0) fail();
      place += put;
      bytes -= static_cast<uint64_t>(put);
      offset += static_cast<uint64_t>(put);
    }
  }
  // The pages of what has been copied are given back at once, so that the graph is there once.
  uint64_t append(Buffer<int32_t> values) {
    if (values.empty()) return 0;
    const uint64_t bytes = values.size() * sizeof(int32_t), begin = extend(bytes);
    auto* const data = reinterpret_cast<std::byte*>(values.data());
    for (uint64_t at = 0; at < bytes; at += kChunk) {
      const uint64_t size = std::min(kChunk, bytes - at);
      write(data + at, size, begin + at);
      const auto first = (reinterpret_cast<uintptr_t>(data + at) + kPage - 1) / kPage * kPage;
      const auto last = reinterpret_cast<uintptr_t>(data + at + size) / kPage * kPage;
      if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
    return begin;
  }

  FileDescriptor file_;
  uint64_t end_ = 0;
  std::vector<MetisJobPiece> pieces_;
};

// clustergcn-metis is built next to the program and installed in libexec.
fs::path find_program() {
  constexpr const char* kName = "clustergcn-metis";
  const std::vector<fs::path> folders = code_folders();
  for (const fs::path& folder : folders)
    for (const char* way :
         {".", "..", "../..", "../libexec/clustergcn", "../../libexec/clustergcn", "../../../../libexec/clustergcn"})
      if (const fs::path place = folder / way / kName; ::access(place.c_str(), X_OK) == 0) return place;
  throw Error(fmt::format("the program {} is missing", kName),
              folders.empty() ? std::string() : folders.front().string(),
              "install clustergcn again, or --partitioner random");
}

pid_t start_process(const fs::path& program, int job) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, job, kMetisJobFile);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, kMetisJobFile + 1);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string name = program.string();
  char* const arguments[] = {name.data(), nullptr};
  pid_t child = 0;
  const int problem = ::posix_spawn(&child, name.c_str(), &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) throw Error(fmt::format("cannot start METIS's process: {}", std::strerror(problem)), name);
  return child;
}

constexpr const char* kStopped = "interrupted: partitioning was stopped, no partition was written";

// The child, which does not outlive this object.
class MetisProcess {
 public:
  explicit MetisProcess(pid_t child) : child_(child) {}
  ~MetisProcess() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  MetisProcess(const MetisProcess&) = delete;
  MetisProcess& operator=(const MetisProcess&) = delete;

  // Waits for its end, looking for an interrupt all the while. Returns its wait status.
  int wait(rusage& usage) {
    int status = 0;
    const Timer timer;
    for (;;) {
      const pid_t ended = ::wait4(child_, &status, WNOHANG, &usage);
      if (ended == child_) {
        child_ = 0;
        if (interrupted()) throw Interrupted(kStopped);  // METIS has a handler of its own for SIGTERM
        return status;
      }
      if (ended < 0 && errno == ECHILD) {  // a program that ignores SIGCHLD: its children leave no trace
        child_ = 0;
        return 0;
      }
      if (ended < 0 && errno != EINTR) throw Error(fmt::format("lost sight of METIS: {}", std::strerror(errno)));
      if (interrupted()) throw Interrupted(kStopped);
      // A sixteenth of what has passed: looking costs nothing, and little is lost at the end.
      const timespec interval{0, static_cast<long>(1e9 * std::clamp(timer.seconds() / 16, 5e-5, 2e-2))};
      ::nanosleep(&interval, nullptr);
    }
  }

 private:
  pid_t child_;
};

// METIS has one core, this process the others. Returns the seconds that it took; 0: there was nothing to do.
double work_beside(const WorkBesideMetis& beside, uint64_t memory) {
  const int threads = thread_count();
  if (!beside || threads < 2) return 0;
  const ThreadCountScope others(threads - 1);
  const Timer timer;
  try {
    return beside(memory) ? timer.seconds() : 0;
  } catch (const Interrupted&) {
    throw Interrupted(kStopped);
  }
}

constexpr const char* kOtherWays =
    "fewer parts, another --partition-seed, --partitioner multilevel or --partitioner random";

void check_outcome(int status, int32_t return_code, uint64_t peak_rss) {
  const std::string memory = format_bytes(peak_rss);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGKILL)
      throw Error(fmt::format("METIS was killed at {} of memory; most likely there is no more", memory), {},
                  "a machine with more memory, or --partitioner multilevel");
    throw Error(fmt::format("METIS crashed ({})", strsignal(WTERMSIG(status))), {}, kOtherWays);
  }
  if (return_code == kMetisNoMemory)
    throw Error(fmt::format("METIS could not get the memory it needs (it had {})", memory), {},
                "a machine with more memory, or --partitioner multilevel");
  if (return_code != kMetisOk || WEXITSTATUS(status) != 0)
    throw Error(fmt::format("METIS failed (return code {})", return_code), {}, kOtherWays);
}

void check_cluster(uint32_t cluster, uint32_t parts) {
  if (cluster >= parts) throw Error(fmt::format("METIS gave a node cluster {} of {}", cluster, parts), {}, kOtherWays);
}

}  // namespace

void check_metis_size(uint64_t nodes, uint64_t entries) {
  if (nodes >= kMetisLimit || entries > kMetisLimit)
    throw Error(
        fmt::format("the graph is too large for METIS: {} nodes and {} adjacency entries, and it counts to {} with "
                    "the 32-bit indices that it is built with",
                    format_count(nodes), format_count(entries), format_count(kMetisLimit)),
        {}, "--partitioner multilevel, which has no such limit");
}

uint64_t estimate_metis_memory(uint64_t nodes, uint64_t entries) {
  constexpr uint64_t kPerNode = 100, kPerEntry = 20;  // as measured on a graph of 50 edges per node
  return kPerNode * nodes + kPerEntry * entries;
}

MetisRun run_metis(MetisGraph graph, uint32_t parts, const PartitionOptions& options, const WorkBesideMetis& beside) {
  const auto nodes = static_cast<size_t>(graph.num_nodes());
  const uint64_t taken = estimate_metis_memory(nodes, graph.targets.size());
  CGCN_CHECK(parts >= 2 && parts <= nodes);
  const Progress progress("METIS");
  const fs::path program = find_program();
  JobFile job;
  const uint64_t place = job.add(std::move(graph), parts, options);
  job.finish();
  MetisProcess process(start_process(program, job.descriptor()));
  const double beside_seconds = work_beside(beside, options.metis_memory - std::min(options.metis_memory, taken));
  rusage usage{};
  const int status = process.wait(usage);
  const JobFile::Outcome outcome = job.outcome();
  MetisRun run{.clusters = Buffer<uint32_t>(nodes),
               .peak_rss = static_cast<uint64_t>(usage.ru_maxrss) * 1024,
               .seconds = outcome.seconds,
               .beside_seconds = beside_seconds};
  check_outcome(status, outcome.ended == 1 ? outcome.return_code : 0, run.peak_rss);
  job.read(run.clusters.data(), nodes * sizeof(uint32_t), place);
  for (const uint32_t cluster : run.clusters) check_cluster(cluster, parts);
  return run;
}

MetisRun run_metis_pieces(std::span<const size_t> starts, std::span<const uint32_t> parts, const MakeMetisPiece& make) {
  const size_t count = starts.size() - 1;
  const Timer timer;
  const fs::path program = find_program();
  JobFile job;
  std::vector<uint64_t> places;
  for (size_t i = 0; i < count; ++i) {
    throw_if_interrupted();
    MetisPiece piece = make(i);
    CGCN_CHECK(static_cast<size_t>(piece.graph.num_nodes()) == starts[i + 1] - starts[i]);
    places.push_back(job.add(std::move(piece.graph), piece.parts, piece.options));
  }
  job.finish();
  std::vector<std::unique_ptr<MetisProcess>> processes;
  for (size_t i = 0; i < std::min<size_t>(count, static_cast<size_t>(thread_count())); ++i)
    processes.push_back(std::make_unique<MetisProcess>(start_process(program, job.descriptor())));
  MetisRun run{.clusters = Buffer<uint32_t>(starts[count])};
  for (const auto& process : processes) {
    rusage usage{};
    const int status = process->wait(usage);
    run.peak_rss = std::max(run.peak_rss, static_cast<uint64_t>(usage.ru_maxrss) * 1024);
    check_outcome(status, job.outcome().return_code, run.peak_rss);
  }
  if (job.outcome().ended != static_cast<int32_t>(processes.size())) check_outcome(0, 0, run.peak_rss);
  for (size_t i = 0; i < count; ++i) {
    job.read(run.clusters.data() + starts[i], (starts[i + 1] - starts[i]) * sizeof(uint32_t), places[i]);
    for (size_t v = starts[i]; v < starts[i + 1]; ++v) check_cluster(run.clusters[v], parts[i]);
  }
  run.seconds = timer.seconds();
  return run;
}

}  // namespace cgcn

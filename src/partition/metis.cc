#include "partition/metis.h"

#include <fcntl.h>
#include <metis.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <vector>

#include "common/interrupt.h"
#include "common/memory.h"
#include "common/progress.h"
#include "common/random.h"
#include "common/threads.h"
#include "common/timer.h"

namespace cgcn {
namespace {

static_assert(sizeof(idx_t) == sizeof(int32_t), "this file is written for METIS with 32-bit indices, as Debian has it");
static_assert(sizeof(real_t) == sizeof(float));

constexpr uint64_t kMetisLimit = INT32_MAX;

// What the children leave for the parent.
class SharedResult {
 public:
  struct Outcome {
    int32_t return_code;  // METIS's; 0: it never returned
    double seconds;
  };
  struct Header {
    std::atomic<size_t> next;  // the first piece that nobody has begun
    Outcome outcome;           // the first failure, or the last success
  };
  explicit SharedResult(size_t nodes) : bytes_(sizeof(Header) + sizeof(int32_t) * nodes) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    new (memory_) Header{};
  }
  ~SharedResult() { ::munmap(memory_, bytes_); }
  SharedResult(const SharedResult&) = delete;
  SharedResult& operator=(const SharedResult&) = delete;

  size_t next_piece() { return header().next.fetch_add(1); }
  Outcome& outcome() { return header().outcome; }
  int32_t* clusters() { return reinterpret_cast<int32_t*>(&header() + 1); }  // of every node

 private:
  Header& header() { return *static_cast<Header*>(memory_); }
  size_t bytes_;
  void* memory_;
};

int32_t call_metis(const MetisGraph& graph, idx_t parts, const PartitionOptions& options, idx_t* clusters) {
  idx_t settings[METIS_NOPTIONS];
  METIS_SetDefaultOptions(settings);
  settings[METIS_OPTION_NUMBERING] = 0;
  settings[METIS_OPTION_SEED] = static_cast<idx_t>(Random(options.seed, Purpose::kPartition).next() >> 1);
  settings[METIS_OPTION_OBJTYPE] =
      options.objective == PartitionObjective::kVolume ? METIS_OBJTYPE_VOL : METIS_OBJTYPE_CUT;
  idx_t nodes = graph.num_nodes(), constraints = graph.num_constraints, cut = 0;
  // METIS takes plain pointers and leaves what they point to alone.
  const auto pointer = [](const Buffer<int32_t>& values) { return const_cast<idx_t*>(values.data()); };
  real_t imbalance[2] = {options.imbalance, options.imbalance};
  const auto partition =
      options.method == PartitionMethod::kMetisRecursive ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  return partition(&nodes, &constraints, pointer(graph.offsets), pointer(graph.targets), pointer(graph.node_weights),
                   nullptr, pointer(graph.edge_weights), &parts, nullptr, imbalance, settings, &cut, clusters);
}

// A process that only METIS is in: it prints nothing, and dies with its parent.
void settle_child() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a parent that is killed takes its child along
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, SIG_DFL);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);  // they reach the group: the parent decides
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
}

[[noreturn]] void run_child(const MetisGraph& graph, uint32_t parts, const PartitionOptions& options,
                            SharedResult& result) {
  settle_child();
  const Timer timer;
  const int32_t code = call_metis(graph, static_cast<idx_t>(parts), options, result.clusters());
  result.outcome() = {code, timer.seconds()};
  ::_exit(0);
}

[[noreturn]] void run_pieces_child(std::span<const size_t> starts, const MakeMetisPiece& make, SharedResult& result) {
  settle_child();
  const size_t count = starts.size() - 1;
  for (size_t i = result.next_piece(); i < count; i = result.next_piece()) {
    const MetisPiece piece = make(i);
    const size_t nodes = starts[i + 1] - starts[i];
    int32_t* const clusters = result.clusters() + starts[i];
    if (piece.parts == 1 || piece.parts >= nodes) {  // nothing to decide
      for (size_t v = 0; v < nodes; ++v) clusters[v] = piece.parts == 1 ? 0 : static_cast<int32_t>(v);
      continue;
    }
    const int32_t code = call_metis(piece.graph, static_cast<idx_t>(piece.parts), piece.options, clusters);
    if (code != METIS_OK) {
      result.outcome().return_code = code;
      ::_exit(1);
    }
  }
  ::_exit(0);
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
    for (long pause = 200'000;; pause = std::min(2 * pause, 20'000'000L)) {
      const pid_t ended = ::wait4(child_, &status, WNOHANG, &usage);
      if (ended == child_) {
        child_ = 0;
        if (interrupted()) throw Interrupted(kStopped);  // METIS has a handler of its own for SIGTERM
        return status;
      }
      if (ended < 0 && errno != EINTR) throw Error(fmt::format("lost sight of METIS: {}", std::strerror(errno)));
      if (interrupted()) throw Interrupted(kStopped);
      const timespec interval{0, pause};
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
    "fewer parts, another --partition-seed, --partitioner metis-recursive or --partitioner random";

void check_outcome(int status, int32_t return_code, uint64_t peak_rss) {
  const std::string memory = format_bytes(peak_rss);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGKILL)
      throw Error(fmt::format("METIS was killed at {} of memory; most likely there is no more", memory), {},
                  "a machine with more memory, or --partitioner random");
    throw Error(fmt::format("METIS crashed ({})", strsignal(WTERMSIG(status))), {}, kOtherWays);
  }
  if (return_code == METIS_ERROR_MEMORY)
    throw Error(fmt::format("METIS could not get the memory it needs (it had {})", memory), {},
                "a machine with more memory, or --partitioner random");
  if (return_code != METIS_OK || WEXITSTATUS(status) != 0)
    throw Error(fmt::format("METIS failed (return code {})", return_code), {}, kOtherWays);
}

uint32_t checked_cluster(int32_t cluster, uint32_t parts) {
  if (cluster < 0 || static_cast<uint32_t>(cluster) >= parts)
    throw Error(fmt::format("METIS gave a node cluster {} of {}", cluster, parts), {}, kOtherWays);
  return static_cast<uint32_t>(cluster);
}

}  // namespace

void check_metis_size(uint64_t nodes, uint64_t entries) {
  if (nodes >= kMetisLimit || entries > kMetisLimit)
    throw Error(
        fmt::format("the graph is too large for METIS: {} nodes and {} adjacency entries, and it counts to {} with "
                    "the 32-bit indices that it is built with",
                    format_count(nodes), format_count(entries), format_count(kMetisLimit)),
        {}, "--partitioner random, or a partition made elsewhere with --from FILE");
}

uint64_t estimate_metis_memory(uint64_t nodes, uint64_t entries) {
  constexpr uint64_t kPerNode = 100, kPerEntry = 20;  // as measured on a graph of 50 links a node
  return kPerNode * nodes + kPerEntry * entries;
}

MetisRun run_metis(const MetisGraph& graph, uint32_t parts, const PartitionOptions& options,
                   const WorkBesideMetis& beside) {
  const auto nodes = static_cast<size_t>(graph.num_nodes());
  CGCN_CHECK(parts >= 2 && parts <= nodes);
  const Progress progress("METIS");
  SharedResult result(nodes);
  const pid_t child = ::fork();
  if (child < 0) throw Error(fmt::format("cannot start a process for METIS: {}", std::strerror(errno)));
  if (child == 0) run_child(graph, parts, options, result);
  MetisProcess process(child);
  const uint64_t taken = estimate_metis_memory(nodes, graph.targets.size());
  const double beside_seconds = work_beside(beside, options.metis_memory - std::min(options.metis_memory, taken));
  rusage usage{};
  const int status = process.wait(usage);
  const auto [return_code, seconds] = result.outcome();
  MetisRun run{.clusters = Buffer<uint32_t>(nodes),
               .peak_rss = static_cast<uint64_t>(usage.ru_maxrss) * 1024,
               .seconds = seconds,
               .beside_seconds = beside_seconds};
  check_outcome(status, return_code, run.peak_rss);
  for (size_t v = 0; v < nodes; ++v) run.clusters[v] = checked_cluster(result.clusters()[v], parts);
  return run;
}

MetisRun run_metis_pieces(std::span<const size_t> starts, std::span<const uint32_t> parts, const MakeMetisPiece& make) {
  const size_t count = starts.size() - 1;
  const Timer timer;
  SharedResult result(starts[count]);
  result.outcome().return_code = METIS_OK;
  const size_t children = std::min<size_t>(count, static_cast<size_t>(thread_count()));
  std::vector<std::unique_ptr<MetisProcess>> processes;
  for (size_t i = 0; i < children; ++i) {
    const pid_t child = ::fork();
    if (child < 0) throw Error(fmt::format("cannot start a process for METIS: {}", std::strerror(errno)));
    if (child == 0) run_pieces_child(starts, make, result);
    processes.push_back(std::make_unique<MetisProcess>(child));
  }
  MetisRun run{.clusters = Buffer<uint32_t>(starts[count])};
  for (const auto& process : processes) {
    rusage usage{};
    const int status = process->wait(usage);
    run.peak_rss = std::max(run.peak_rss, static_cast<uint64_t>(usage.ru_maxrss) * 1024);
    check_outcome(status, result.outcome().return_code, run.peak_rss);
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t v = starts[i]; v < starts[i + 1]; ++v)
      run.clusters[v] = checked_cluster(result.clusters()[v], parts[i]);
  run.seconds = timer.seconds();
  return run;
}

}  // namespace cgcn

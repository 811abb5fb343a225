#include "process/launch.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "common/file.h"
#include "common/installed_files.h"
#include "common/log.h"
#include "common/session.h"
#include "dist/mpi_plugin.h"
#include "process/launcher_end.h"

namespace cgcn::dist {
namespace {

constexpr const char* kPlugin = "libclustergcn-mpi.so";
constexpr const char* kPluginVariable = "CLUSTERGCN_MPI_PLUGIN";  // another place for it
constexpr const char* kAloneVariable = "CLUSTERGCN_ALONE";        // set: every process works by itself

struct Launcher {
  const char *name, *rank, *size;
};
// The first whose variables are set. A process that mpirun started under Slurm has the variables of both.
constexpr std::array<Launcher, 4> kLaunchers = {{{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                 {"mpiexec", "PMI_RANK", "PMI_SIZE"},
                                                 {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                                 {"a PMIx launcher", "PMIX_RANK", nullptr}}};

uint32_t number_in(const char* text) {
  uint32_t number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

// The plugin is built next to the program and installed in a folder of its own.
fs::path find_plugin() {
  if (const char* named = std::getenv(kPluginVariable)) return named;
  std::error_code problem;
  for (const fs::path& folder : code_folders())
    for (const char* way : {".", "..", "../" CGCN_PLUGIN_FOLDER, "clustergcn"})
      if (const fs::path place = folder / way / kPlugin; fs::exists(place, problem)) return place;
  return {};
}

const ClustergcnMpi* load_plugin(const std::string& launcher) {
  const std::string hint =
      "tools/install-packages.sh mpi and build again, or install clustergcn-mpi; to train in one process, leave the "
      "launcher out";
  const fs::path file = find_plugin();
  if (file.empty())
    throw Error(fmt::format("was started by {} as one of several processes, which needs {}", launcher, kPlugin),
                "clustergcn", hint);
  // Global: parts of MPI that it loads itself look for its symbols.
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Error(fmt::format("cannot be loaded: {}", ::dlerror()), file.string(), hint);
  const auto entry = reinterpret_cast<decltype(&clustergcn_mpi)>(::dlsym(library, "clustergcn_mpi"));
  const ClustergcnMpi* const mpi = entry != nullptr ? entry() : nullptr;
  if (mpi == nullptr || mpi->version != kClustergcnMpiVersion)
    throw Error("is not the plugin of this version of clustergcn", file.string(), hint);
  return mpi;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(const ClustergcnMpi& mpi, const Launch& launch) : mpi_(mpi) {
    if (const char* problem = mpi_.start(&rank_, &size_))
      throw Error(fmt::format("MPI cannot be started: {}", problem));
    if (size_ < 2 && launch.size != 1)
      throw Error(fmt::format("{} started several processes, but {} sees one", launch.launcher, mpi_.library()),
                  "clustergcn",
                  "the launcher of the MPI that libclustergcn-mpi.so was built with (srun: --mpi=pmix or pmi2)");
  }
  ~MpiTransport() override { mpi_.finish(); }
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }

  Request send(uint32_t to, Tag tag, std::span<const std::byte> bytes) override {
    Request request = 0;
    check(mpi_.send(to, static_cast<int>(tag), bytes.data(), bytes.size(), &request));
    return request;
  }
  Request receive(uint32_t from, Tag tag, std::span<std::byte> bytes) override {
    Request request = 0;
    check(mpi_.receive(from, static_cast<int>(tag), bytes.data(), bytes.size(), &request));
    return request;
  }
  bool done(Request request) override {
    int done = 0;
    check(mpi_.test(request, &done));
    return done != 0;
  }
  void cancel(Request receive) override { mpi_.cancel(receive); }
  void abort(const std::string& message, bool unreachable) override {
    log::write_line("error: " + message);
    if (unreachable)
      if (const auto launcher = find_launcher(::getpid())) end_later(*launcher);
    mpi_.abort(1);
    ::_exit(1);
  }

 private:
  static void check(const char* problem) {
    if (problem != nullptr) throw std::runtime_error(problem);
  }

  const ClustergcnMpi& mpi_;
  uint32_t rank_ = 0, size_ = 0;
};

// If all processes have the same to say, the first one does: when it is gone, the launcher ends the others.
void leave_it_to_the_first(const Launch& launch) {
  if (launch.rank > 0) std::this_thread::sleep_for(std::chrono::seconds(3));
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

}  // namespace

Launch detect_launch(const std::function<const char*(const char*)>& environment) {
  if (environment(kAloneVariable) != nullptr) return {};
  for (const Launcher& launcher : kLaunchers) {
    const char* const rank = environment(launcher.rank);
    const char* const size = launcher.size != nullptr ? environment(launcher.size) : "0";
    if (rank != nullptr && size != nullptr) return {launcher.name, number_in(rank), number_in(size)};
  }
  return {};
}

Launch detect_launch() {
  return detect_launch([](const char* name) { return std::getenv(name); });
}

void GroupOptions::list_options(OptionList& list) {
  list.begin_group("Many machines");
  list.add("peer-timeout", &peer_timeout,
           "under mpirun or srun: end the job if a process gives no sign of life for so many seconds")
      .range(1, 1e6)
      .needs([] { return !detect_launch().is_alone(); }, "there is one process");
}

Group join_group(const GroupOptions& options) {
  const Launch launch = detect_launch();
  if (launch.is_alone()) return {};
  try {
    const ClustergcnMpi* const mpi = load_plugin(launch.launcher);
    return {[&] { return std::make_unique<MpiTransport>(*mpi, launch); }, static_cast<double>(options.peer_timeout),
            host_name()};
  } catch (const Error&) {
    leave_it_to_the_first(launch);
    throw;
  }
}

void run_in_group(const GroupOptions& options, const std::function<void(Group&)>& work) {
  Group group = join_group(options);
  if (group.size() == 1) return work(group);
  const bool is_first = group.is_first();
  Session nobody;
  const SessionScope scope(is_first ? nullptr : &nobody);
  if (!is_first && std::freopen("/dev/null", "w", stdout) == nullptr) throw SilentExit{1};
  try {
    work(group);
    group.close();
  } catch (const GroupError&) {
    group.close();
    // Rank 0 has not spoken yet, and a launcher ends the others when one fails: only rank 0 does.
    if (!is_first) throw SilentExit{0};
    throw;
  } catch (const GroupInterrupted& stop) {
    // At once: the launcher that was interrupted kills its processes a second later.
    log::write_line(stop.what());
    group.close();
    throw SilentExit{130};
  } catch (const SilentExit&) {
    throw;
  } catch (const std::exception& problem) {
    group.fail(problem.what());
    throw;
  }
}

void require_alone(const std::string& what, const std::string& hint) {
  const Launch launch = detect_launch();
  if (launch.size < 2) return;
  leave_it_to_the_first(launch);
  throw Error(fmt::format("runs in one process, and {} started {}", launch.launcher, launch.size), what,
              hint.empty() ? fmt::format("{} … without {}", what, launch.launcher) : hint);
}

}  // namespace cgcn::dist

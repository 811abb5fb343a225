#include "train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "common/error.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/threads.h"

namespace cgcn {
namespace {

void make_directories(const fs::path& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) throw Error(fmt::format("cannot make the directory: {}", problem.message()), path.string());
}

// runs/NAME-N: made with mkdir, so that two processes never get the same one.
fs::path make_numbered(const std::string& name) {
  make_directories("runs");
  for (int n = 1;; ++n) {
    const fs::path path = fs::path("runs") / fmt::format("{}-{}", name, n);
    std::error_code problem;
    if (fs::create_directory(path, problem)) return path;
    if (problem) throw Error(fmt::format("cannot make the directory: {}", problem.message()), path.string());
  }
}

}  // namespace

int RunDirectory::take_lock(const fs::path& path) {
  const fs::path file = path / "lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) throw Error(fmt::format("cannot write: {}", std::strerror(errno)), file.string());
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    char holder[32] = {};
    if (::pread(lock, holder, sizeof holder - 1, 0) <= 0) std::strcpy(holder, "?");
    ::close(lock);
    if (why != EWOULDBLOCK) throw Error(fmt::format("cannot lock: {}", std::strerror(why)), file.string());
    throw Error(fmt::format("process {} is training in it", holder), path.string(),
                "wait until it has ended, or choose another --run");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, pid.data(), pid.size(), 0) < 0) {
    const int why = errno;
    ::close(lock);
    throw Error(fmt::format("cannot write: {}", std::strerror(why)), file.string());
  }
  return lock;
}

bool RunDirectory::is_held(const fs::path& path) {
  const int lock = ::open((path / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return held;
}

RunDirectory RunDirectory::create(const fs::path& path, const std::string& name) {
  const fs::path made = path.empty() ? make_numbered(name) : path;
  if (!path.empty()) {
    std::error_code problem;
    if (fs::exists(path, problem) && (!fs::is_directory(path, problem) || !fs::is_empty(path, problem)))
      throw Error("is there already", path.string(), "another --run, or --resume to go on with it");
    make_directories(path);
  }
  return {made, take_lock(made)};
}

void RunDirectory::require(const fs::path& path) {
  std::error_code problem;
  if (!fs::is_regular_file(path / "config.toml", problem))
    throw Error("is not a run directory: it has no config.toml", path.string(),
                "the directory that --run named; without --resume where no step was made yet");
}

RunDirectory RunDirectory::reopen(const fs::path& path) {
  require(path);
  RunDirectory run(path, take_lock(path));
  remove_stale_temporaries(path);
  return run;
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (!fs::exists(config_file(), ignored)) {
    fs::remove(path_ / "lock", ignored);
    fs::remove(path_, ignored);  // only where empty
  }
  ::close(lock_);
}

void RunDirectory::discard() const {
  std::error_code ignored;
  std::vector<fs::path> made = {config_file(), environment_file(), metrics_file(), result_file(), clusters_file()};
  for (const auto& entry : fs::directory_iterator(path_, ignored))
    if (entry.path().extension() == ".safetensors") made.push_back(entry.path());
  for (const fs::path& file : made) fs::remove(file, ignored);
}

void RunDirectory::append_metrics(const nlohmann::json& record) {
  const std::string line = record.dump() + "\n";
  const int file = ::open(metrics_file().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const bool whole = file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int why = errno;
  if (file >= 0) ::close(file);
  if (!whole) throw Error(fmt::format("cannot write: {}", std::strerror(why)), metrics_file().string());
}

void RunDirectory::drop_metrics_from(uint64_t epoch) {
  std::string kept;
  for (const nlohmann::json& record : read_metrics(metrics_file()))
    if (record.value("epoch", uint64_t{0}) < epoch) kept += record.dump() + "\n";
  write_file_atomically(metrics_file(), kept);
}

std::vector<nlohmann::json> read_metrics(const fs::path& path) {
  std::vector<nlohmann::json> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    nlohmann::json record = parse_json(line);
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

std::string recorded_store(const fs::path& run) {
  std::error_code problem;
  if (!fs::is_regular_file(run / "environment.json", problem)) return {};
  const auto record = parse_json(read_text_file(run / "environment.json"));
  const auto found = nlohmann::json::json_pointer("/store/store");
  return record.is_object() && record.contains(found) && record.at(found).is_string()
             ? record.at(found).get<std::string>()
             : std::string();
}

nlohmann::json describe_environment() {
  utsname system{};
  ::uname(&system);
  std::string processor = "unknown";
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; std::getline(cpu, line);)
    if (line.starts_with("model name")) {
      processor = line.substr(line.find(':') + 2);
      break;
    }
  std::vector<std::string> command;
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(arguments, word, '\0');) command.push_back(word);
  const std::time_t now = std::time(nullptr);
  char started[32];
  std::strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return {{"program", "clustergcn"},
          {"compiler", __VERSION__},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"processor", processor},
          {"threads", thread_count()},
          {"memory_bytes", total_memory()},
          {"started", started},
          {"command", command}};
}

}  // namespace cgcn

#include "train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
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

// A graph's name as part of a file's: it may have been written by anyone.
std::string file_name(const std::string& name) {
  constexpr size_t kLongest = 100;
  std::string plain;
  for (const char c : name.substr(0, kLongest))
    plain += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || (c == '.' && !plain.empty())
                 ? c
                 : '_';
  return plain.empty() ? "graph" : plain;
}

// runs/NAME-N: made with mkdir, so that two processes never get the same one.
fs::path make_numbered(const std::string& name) {
  make_directories("runs");
  for (int n = 1;; ++n) {
    const fs::path path = fs::path("runs") / fmt::format("{}-{}", file_name(name), n);
    std::error_code problem;
    if (fs::create_directory(path, problem)) return path;
    if (problem) throw Error(fmt::format("cannot make the directory: {}", problem.message()), path.string());
  }
}

// What a process leaves that was killed, or could not write, before its folder was a run.
bool is_left_over(const fs::path& path) {
  const RunFiles files(path.parent_path());
  return path == files.lock() || path == files.environment() || path == files.choices() ||
         is_temporary_name(path.filename().string());
}

bool holds_only_left_overs(const fs::path& folder) {
  std::error_code problem;
  if (!fs::is_directory(folder, problem)) return false;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (!entry.is_regular_file(problem) || !is_left_over(entry.path())) return false;
  return !problem;
}

// What is read from a record has the type it is written with; a loss that is not finite is written as null.
bool is_epoch_record(const nlohmann::json& record) {
  if (!record.is_object() || !record.value("epoch", nlohmann::json()).is_number_unsigned()) return false;
  for (const auto& [name, value] : record.items()) {
    if (name.ends_with("seconds") && !value.is_number()) return false;
    if (name == "loss" && !value.is_number() && !value.is_null()) return false;
    if ((name == "validation" || name == "memory") && !value.is_object()) return false;
  }
  return true;
}

}  // namespace

std::vector<fs::path> RunFiles::optimisers() const {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("optimiser-") && name.ends_with(".safetensors"))
      found.push_back(entry.path());
  return found;
}

int RunDirectory::take_lock(const fs::path& path) {
  const fs::path file = RunFiles(path).lock();
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
  const int lock = ::open(RunFiles(path).lock().c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0) return false;
  const bool held = ::flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return held;
}

RunDirectory RunDirectory::create(const fs::path& path, const std::string& name) {
  const fs::path made = path.empty() ? make_numbered(name) : path;
  if (!path.empty()) {
    std::error_code problem;
    if (fs::exists(path, problem) && !holds_only_left_overs(path))
      throw Error("already exists", path.string(),
                  is_run(path) ? "another --run, or --resume to continue it" : "another --run: it is not a run folder");
    make_directories(path);
  }
  return {made, take_lock(made), /*is_new=*/true};
}

// Others have a config.toml, too: the rest that a run has from its start tells.
bool RunDirectory::is_run(const fs::path& path) {
  std::error_code problem;
  const RunFiles files(path);
  return fs::is_regular_file(files.config(), problem) &&
         (fs::is_regular_file(files.environment(), problem) || fs::is_regular_file(files.last(), problem));
}

void RunDirectory::require(const fs::path& path) {
  if (is_run(path)) return;
  std::error_code problem;
  if (!fs::exists(path, problem)) throw Error("no such run folder", path.string(), "train without --resume");
  if (holds_only_left_overs(path))
    throw Error("holds no run yet: the training ended before its first checkpoint", path.string(),
                "train without --resume");
  throw Error("is not a run folder: it has no config.toml and environment.json", path.string(),
              "the folder that --run named");
}

RunDirectory RunDirectory::reopen(const fs::path& path) {
  require(path);
  RunDirectory run(path, take_lock(path), /*is_new=*/false);
  remove_stale_temporaries(path);
  return run;
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : files_(std::move(other.files_)), lock_(std::exchange(other.lock_, -1)), is_new_(other.is_new_) {}

RunDirectory::~RunDirectory() {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (!fs::exists(files_.config(), ignored) && holds_only_left_overs(path())) {
    for (const auto& entry : fs::directory_iterator(path(), ignored)) fs::remove(entry.path(), ignored);
    fs::remove(path(), ignored);
  }
  ::close(lock_);
}

void RunDirectory::discard() const {
  std::error_code ignored;
  std::vector<fs::path> made = files_.optimisers();
  for (const fs::path& file :
       {files_.config(), files_.environment(), files_.choices(), files_.metrics(), files_.result(), files_.clusters(),
        files_.embeddings(), files_.last(), files_.best(), files_.regular_best(), files_.former_best()})
    made.push_back(file);
  for (const fs::path& file : made) fs::remove(file, ignored);
}

void RunDirectory::append_metrics(const nlohmann::json& record) {
  append_to_file(files_.metrics(), record.dump() + "\n");
}

void RunDirectory::drop_metrics_from(uint64_t epoch) {
  std::string kept;
  for (const nlohmann::json& record : read_metrics(files_.metrics()))
    if (record.value("epoch", uint64_t{0}) < epoch) kept += record.dump() + "\n";
  write_file_atomically(files_.metrics(), kept);
}

std::vector<nlohmann::json> read_metrics(const fs::path& path) {
  std::vector<nlohmann::json> records;
  std::error_code problem;
  if (!fs::exists(path, problem)) return records;
  const std::string text = read_text_file(path);
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    nlohmann::json record = parse_json(std::string_view(text).substr(at, end - at));
    if (!is_epoch_record(record))
      throw Error("is not an epoch's record", fmt::format("{}:{}", path.string(), records.size() + 1),
                  "the file was changed or damaged: restore it from a copy, or delete that line");
    records.push_back(std::move(record));
  }
  return records;
}

std::string recorded_store(const fs::path& run) {
  std::error_code problem;
  const fs::path file = RunFiles(run).environment();
  if (!fs::is_regular_file(file, problem)) return {};
  const auto record = parse_json(read_text_file(file));
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
  std::tm time{};
  std::strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &time));
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

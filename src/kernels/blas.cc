#include "kernels/blas.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/descriptor.h"
#include "common/error.h"
#include "common/memory.h"
#include "common/threads.h"

namespace cgcn::kernels {
namespace {

struct Blas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&openblas_get_corename) core_name = nullptr;
  decltype(&openblas_get_config) config = nullptr;
  decltype(&openblas_set_num_threads) set_threads = nullptr;
  decltype(&openblas_get_parallel) get_parallel = nullptr;
  // In no header; a build of OpenBLAS for one kind of CPU lacks the first two, and that is fine.
  void (*start_core)() = nullptr;
  void (*end_core)() = nullptr;
  void* (*take_buffer)(int) = nullptr;
  void (*give_buffer)(void*) = nullptr;
};

Blas blas;

constexpr const char* kInstall = "apt-get install libopenblas0-pthread";
constexpr size_t kBufferBytes = size_t{128} << 20;  // of address space; OpenBLAS takes one per concurrent product
constexpr size_t kLibraryBytes = size_t{96} << 20;  // the library itself and libgfortran

bool is_core_without_avx2(std::string_view name) {
  constexpr std::array<std::string_view, 14> kOld = {"Katmai",      "Coppermine", "Northwood", "Prescott",   "Banias",
                                                     "Atom",        "Core2",      "Penryn",    "Dunnington", "Nehalem",
                                                     "Sandybridge", "Athlon",     "Opteron",   "Barcelona"};
  for (const auto old : kOld)
    if (name == old) return true;
  return false;
}

// The newest core known to OpenBLAS whose instructions this CPU has; null if there is nothing better than the
// oldest.
const char* best_core() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
#endif
  return nullptr;
}

// Sets a variable of the environment for as long as it lives.
class EnvironmentScope {
 public:
  EnvironmentScope(const char* name, const char* value) : name_(name) {
    if (const char* set = std::getenv(name)) before_ = set;
    ::setenv(name, value, 1);
  }
  ~EnvironmentScope() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

void restart_with(const char* core) {
  const EnvironmentScope chosen("OPENBLAS_CORETYPE", core);
  blas.end_core();
  blas.start_core();
}

void correct_core() {
  if (blas.start_core == nullptr || blas.end_core == nullptr) return;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;  // the user has decided
  const char* core = best_core();
  if (core == nullptr || !is_core_without_avx2(blas.core_name())) return;
  restart_with(core);
}

bool address_space_is_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void require_address_space(size_t bytes) {
  void* probe = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED)
    throw Error(
        fmt::format("the limit on address space leaves less than the {} that OpenBLAS needs", format_bytes(bytes)),
        "ulimit -v", "raise it, use fewer --threads, or limit memory with --memory instead");
  ::munmap(probe, bytes);
}

// Takes now what the products will need: later the rest of the process may have used it up.
void reserve_buffers(size_t count) {
  if (blas.take_buffer == nullptr || blas.give_buffer == nullptr) return;
  std::vector<void*> buffers;
  for (size_t i = 0; i < count; ++i) buffers.push_back(blas.take_buffer(0));
  for (void* buffer : buffers) blas.give_buffer(buffer);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;  // sanitizers refuse the other
#else
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;  // a program's own OpenBLAS does not get into ours
#endif

// A library that is loaded already is loaded again from a copy, which the loader takes for another file. Null if that
// is not possible here.
void* open_copy(const char* loaded) {
  const FileDescriptor source(loaded, O_RDONLY);
  const FileDescriptor copy(::memfd_create("openblas", MFD_CLOEXEC));
  struct stat status {};
  if (!source.is_open() || !copy.is_open() || ::fstat(source.get(), &status) != 0) return nullptr;
  for (off_t done = 0; done < status.st_size;)
    if (::sendfile(copy.get(), source.get(), &done, static_cast<size_t>(status.st_size - done)) <= 0) return nullptr;
  return ::dlopen(fmt::format("/proc/self/fd/{}", copy.get()).c_str(), kFlags);
}

// The pthread build by its place, or whichever is installed. It makes its threads while it is being loaded, unless told
// to make none; the OpenMP build asks OpenMP at each product. In a program that uses OpenBLAS itself (NumPy does), ours
// is a copy: the number of threads and the kernels are settings of the library, and the program keeps its own.
struct Library {
  void* handle;
  bool is_shared;  // with the program around us: it may be multiplying
};
Library open_library() {
  const EnvironmentScope pthread_build("OPENBLAS_NUM_THREADS", "1"), openmp_build("OMP_NUM_THREADS", "1");
  for (const char* name : {CGCN_OPENBLAS, "libopenblas.so.0"}) {
    if (void* const loaded = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {
      const link_map* map = nullptr;
      ::dlinfo(loaded, RTLD_DI_LINKMAP, &map);
      void* const copy = map != nullptr ? open_copy(map->l_name) : nullptr;
      return copy != nullptr ? Library{copy, false} : Library{loaded, true};
    }
    if (void* const library = ::dlopen(name, kFlags)) return {library, false};
  }
  throw Error(fmt::format("OpenBLAS cannot be loaded: {}", ::dlerror()), {}, kInstall);
}

void load_blas() {
  const auto concurrent = static_cast<size_t>(thread_count());
  const bool limited = address_space_is_limited();
  if (limited) require_address_space(kLibraryBytes + (concurrent + 1) * kBufferBytes);
  const Library library = open_library();
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library.handle, name));
  };
  find(blas.sgemm, "cblas_sgemm");
  find(blas.core_name, "openblas_get_corename");
  find(blas.config, "openblas_get_config");
  find(blas.set_threads, "openblas_set_num_threads");
  find(blas.get_parallel, "openblas_get_parallel");
  find(blas.start_core, "gotoblas_dynamic_init");
  find(blas.end_core, "gotoblas_dynamic_quit");
  find(blas.take_buffer, "blas_memory_alloc");
  find(blas.give_buffer, "blas_memory_free");
  if (blas.sgemm == nullptr || blas.core_name == nullptr || blas.set_threads == nullptr || blas.get_parallel == nullptr)
    throw Error("libopenblas.so.0 is not OpenBLAS", {}, kInstall);
  if (blas.get_parallel() == OPENBLAS_SEQUENTIAL && concurrent > 1)
    throw Error(
        "the OpenBLAS that was found is its serial build, which gives wrong results when several threads use it", {},
        std::string(kInstall) + ", or --threads 1");
  blas.set_threads(1);
  if (!library.is_shared) correct_core();
  if (limited) reserve_buffers(concurrent);
}

}  // namespace

void prepare_blas() {
  static std::once_flag once;
  std::call_once(once, load_blas);
}

decltype(&cblas_sgemm) blas_sgemm() {
  prepare_blas();
  return blas.sgemm;
}

std::string blas_core_name() {
  prepare_blas();
  return blas.core_name();
}

std::string blas_version() {
  prepare_blas();
  const std::string text = blas.config != nullptr ? blas.config() : "";  // "OpenBLAS 0.3.21 NO_LAPACKE …"
  const size_t begin = text.find(' '), end = text.find(' ', begin + 1);
  return begin == std::string::npos ? text : text.substr(begin + 1, end - begin - 1);
}

void use_blas_core(const std::string& name) {
  prepare_blas();
  if (name == blas.core_name()) return;
  if (blas.start_core != nullptr && blas.end_core != nullptr) restart_with(name.c_str());
  if (name != blas.core_name())
    throw Error(
        fmt::format("OpenBLAS has kernels for {} alone, and other machines need those for {}", blas.core_name(), name),
        {}, std::string(kInstall) + " on every machine, or OPENBLAS_CORETYPE for all");
}

}  // namespace cgcn::kernels

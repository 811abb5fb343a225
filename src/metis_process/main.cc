// clustergcn-metis: the process that METIS runs in. It is started by clustergcn with a job in a file in memory, whose
// result goes into the same file. Nothing else starts it.
#include <metis.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "partition/metis_job.h"

namespace {

using cgcn::MetisJob;
using cgcn::MetisJobPiece;

static_assert(sizeof(idx_t) == sizeof(int32_t), "this file is written for METIS with 32-bit indices, as Debian has it");
static_assert(sizeof(real_t) == sizeof(float));

// It dies with its parent, leaves no core, and lets the parent decide what Ctrl-C means.
void settle() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

int32_t partition(std::byte* file, const MetisJobPiece& piece) {
  const auto array = [&](uint64_t offset) { return offset == 0 ? nullptr : reinterpret_cast<idx_t*>(file + offset); };
  idx_t* const clusters = array(piece.clusters);
  if (piece.parts == 1 || piece.parts >= piece.nodes) {  // nothing to decide
    for (idx_t v = 0; v < piece.nodes; ++v) clusters[v] = piece.parts == 1 ? 0 : v;
    return METIS_OK;
  }
  idx_t settings[METIS_NOPTIONS];
  METIS_SetDefaultOptions(settings);
  settings[METIS_OPTION_NUMBERING] = 0;
  settings[METIS_OPTION_SEED] = piece.seed;
  settings[METIS_OPTION_OBJTYPE] = piece.volume != 0 ? METIS_OBJTYPE_VOL : METIS_OBJTYPE_CUT;
  idx_t nodes = piece.nodes, constraints = piece.constraints, parts = piece.parts, cut = 0;
  real_t imbalance[2] = {piece.imbalance, piece.imbalance};
  const auto method = piece.recursive != 0 ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  return method(&nodes, &constraints, array(piece.offsets), array(piece.targets), array(piece.node_weights), nullptr,
                array(piece.edge_weights), &parts, nullptr, imbalance, settings, &cut, clusters);
}

}  // namespace

int main() {
  settle();
  struct stat status {};
  if (::fstat(cgcn::kMetisJobFile, &status) != 0 || static_cast<size_t>(status.st_size) < sizeof(MetisJob)) {
    std::fputs("clustergcn-metis is started by clustergcn, and has nothing to do by itself\n", stderr);
    return 2;
  }
  void* const mapped =
      ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, cgcn::kMetisJobFile, 0);
  if (mapped == MAP_FAILED) return 1;
  auto* const file = static_cast<std::byte*>(mapped);
  MetisJob& job = *reinterpret_cast<MetisJob*>(file);
  if (job.magic != cgcn::kMetisJobMagic || job.bytes != static_cast<uint64_t>(status.st_size)) return 2;
  if (::getppid() != job.parent) return 1;  // it died before settle() could ask to be told
  const auto* const pieces = reinterpret_cast<const MetisJobPiece*>(file + job.table);
  const auto begun = std::chrono::steady_clock::now();
  int32_t code = METIS_OK;
  for (uint64_t i; code == METIS_OK && (i = job.next.fetch_add(1)) < job.pieces;) code = partition(file, pieces[i]);
  int32_t none = 0;
  if (code != METIS_OK)
    __atomic_store_n(&job.return_code, code, __ATOMIC_RELEASE);
  else
    __atomic_compare_exchange_n(&job.return_code, &none, code, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  job.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  __atomic_fetch_add(&job.ended, 1, __ATOMIC_RELEASE);
  ::_exit(code == METIS_OK ? 0 : 1);
}

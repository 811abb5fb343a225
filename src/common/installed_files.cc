#include "common/installed_files.h"

#include <dlfcn.h>

#include <cstring>

namespace cgcn {

std::vector<fs::path> code_folders() {
  std::error_code problem;
  std::vector<fs::path> folders;
  Dl_info info{};  // names a library by its path, and the program itself as it was typed
  if (::dladdr(reinterpret_cast<const void*>(&code_folders), &info) != 0 && info.dli_fname != nullptr &&
      std::strchr(info.dli_fname, '/') != nullptr)
    folders.push_back(fs::canonical(info.dli_fname, problem).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", problem).parent_path());
  std::erase_if(folders, [](const fs::path& folder) { return !folder.is_absolute(); });
  return folders;
}

}  // namespace cgcn

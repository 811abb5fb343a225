// Public data sets from their publishers: fetched with libcurl, checked, unpacked.
//
// What arrives is kept as NAME.part until it is whole, so that a transfer that was cut continues where it stopped, in
// the same call (a few times) or in the next one. A file is whole when it has the length that the server announced, and
// the size and checksum of the table if those are known; members of an archive are checked by their CRCs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/file.h"

namespace cgcn {

struct RemoteFile {
  std::string name;
  uint64_t size = 0;      // 0: not known
  uint64_t checksum = 0;  // XXH3, 64 bits; 0: not known
};

struct DownloadSource {
  std::string name;      // for the command line: "ppi"
  std::string format;    // the reader's name
  std::string base_url;  // files lie at base_url/name
  std::vector<RemoteFile> files;
  std::vector<std::string> members;  // if files is one zip: what to take out of it; empty if files are plain
  std::string inside;                // where the reader finds its source among them
};

const std::vector<DownloadSource>& download_sources();
const DownloadSource& find_download(const std::string& name);  // Error that lists the names

// Fetches what is not in `folder` yet and unpacks it there. Returns the path for the reader. `base_url` replaces the
// table's if it is not empty.
fs::path download(const DownloadSource& source, const std::string& base_url, const fs::path& folder);

}  // namespace cgcn

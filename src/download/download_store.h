// A public data set, fetched and imported in one step.
#pragma once

#include "engine/import.h"

namespace cgcn {

struct DownloadRequest {
  ImportRequest import;
  std::string folder;    // where files are kept while they arrive; empty: STORE.download
  std::string base_url;  // a mirror; empty: the publisher
  bool keep = false;     // the files after the import

  void list_options(OptionList& list);
};

ImportResult download_store(const std::string& dataset, const std::string& store, DownloadRequest request);

}  // namespace cgcn

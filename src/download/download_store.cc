#include "download/download_store.h"

#include "common/error.h"
#include "download/download.h"

namespace cgcn {
namespace {

// Only what came from the download; a folder that the user named may hold other things.
void remove_downloaded(const DownloadSource& source, const fs::path& folder) {
  std::error_code ignored;
  for (const RemoteFile& file : source.files) fs::remove(folder / file.name, ignored);
  for (const std::string& member : source.members)  // the file, then the folders above it that are empty by now
    for (fs::path path = member; !path.empty(); path = path.parent_path()) fs::remove(folder / path, ignored);
  fs::remove(folder, ignored);  // if empty
}

}  // namespace

void DownloadRequest::list_options(OptionList& list) {
  list.begin_group("Download");
  list.add("folder", &folder, "folder for the downloaded files; default: STORE.download").value("FOLDER");
  list.add("keep", &keep, "keep the downloaded files after the import");
  list.add("base-url", &base_url, "fetch from here: a mirror that has the publisher's file names").value("URL");
  import.list_options(list);
}

ImportResult download_store(const std::string& dataset, const std::string& store, DownloadRequest request) {
  const DownloadSource& source = find_download(dataset);
  std::error_code error;
  if (!request.import.force && fs::exists(store, error))  // before a gigabyte is fetched, not after
    throw Error("already exists", store, "another name, or --force to replace it");
  const fs::path kept = request.folder.empty() ? fs::path(store + ".download") : fs::path(request.folder);
  const std::string path = download(source, request.base_url, kept).string();
  if (request.import.import.format == "auto") request.import.import.format = source.format;
  if (request.import.name.empty()) request.import.name = source.name;
  ImportResult result = import_store(path, store, request.import);
  if (!request.keep) remove_downloaded(source, kept);
  return result;
}

}  // namespace cgcn

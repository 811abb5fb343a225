#include "download/download.h"

#include <curl/curl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "common/error.h"
#include "common/hash.h"
#include "common/interrupt.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/progress.h"
#include "io/numpy/npz.h"

namespace cgcn {
namespace {

constexpr int kAttempts = 4;
constexpr size_t kChunk = size_t{4} << 20;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct CurlCloser {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

// One request, appended to a file.
struct Transfer {
  std::unique_ptr<std::FILE, FileCloser> file;
  Progress progress;
  uint64_t resumed_from = 0;
  int write_error = 0;
};

size_t write_body(char* data, size_t size, size_t count, void* pointer) {
  auto& transfer = *static_cast<Transfer*>(pointer);
  const size_t written = std::fwrite(data, size, count, transfer.file.get());
  if (written != count) transfer.write_error = errno;
  return written * size;
}

int show_progress(void* pointer, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(pointer);
  if (total > 0) transfer.progress.set_total(transfer.resumed_from + static_cast<uint64_t>(total));
  transfer.progress.set(transfer.resumed_from + static_cast<uint64_t>(now));
  return interrupted() ? 1 : 0;
}

struct Answer {
  CURLcode code;
  long status = 0;
  std::string message;
};

Answer request(const std::string& url, Transfer& transfer) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, CurlCloser> curl(curl_easy_init());
  if (initialised != CURLE_OK || curl == nullptr) throw Error("libcurl could not be started");
  char message[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) { curl_easy_setopt(curl.get(), option, value); };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_ERRORBUFFER, message);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, 30L);
  set(CURLOPT_LOW_SPEED_LIMIT, 100L);  // less than this for a minute: the connection is dead
  set(CURLOPT_LOW_SPEED_TIME, 60L);
  set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.resumed_from));
  set(CURLOPT_WRITEFUNCTION, &write_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &show_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  Answer answer{.code = curl_easy_perform(curl.get()), .message = message};
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  if (answer.message.empty()) answer.message = curl_easy_strerror(answer.code);
  return answer;
}

uint64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// Whether the file is whole now. Throws if trying again cannot help.
bool fetch_once(const std::string& url, const fs::path& partial) {
  Transfer transfer{.file = {},
                    .progress = Progress("downloading " + partial.stem().string(), 0, "bytes"),
                    .resumed_from = size_or_zero(partial)};
  transfer.file.reset(std::fopen(partial.c_str(), "ab"));
  if (transfer.file == nullptr) throw Error(fmt::format("cannot write: {}", std::strerror(errno)), partial.string());
  const Answer answer = request(url, transfer);
  if (std::fflush(transfer.file.get()) != 0 && transfer.write_error == 0) transfer.write_error = errno;
  if (transfer.write_error != 0)
    throw Error(fmt::format("cannot write: {}", std::strerror(transfer.write_error)), partial.string(),
                "free some disk space; the same command resumes the download");
  throw_if_interrupted();
  const bool no_ranges = answer.code == CURLE_RANGE_ERROR || answer.status == 416;  // 416: curl takes it for the end
  if (answer.code == CURLE_OK && !no_ranges) return true;
  if (no_ranges &&
      transfer.resumed_from > 0) {  // the server cannot continue in the middle, or what is here is of another file
    log::note("{}: starting again from the beginning", url);
    fs::resize_file(partial, 0);
    return false;
  }
  if (answer.code == CURLE_HTTP_RETURNED_ERROR && answer.status < 500)
    throw Error(fmt::format("the server answered {}", answer.status), url,
                answer.status == 404 ? "the file may have moved; fetch it by hand and use 'clustergcn import'" : "");
  const bool may_pass = answer.code == CURLE_PARTIAL_FILE || answer.code == CURLE_RECV_ERROR ||
                        answer.code == CURLE_OPERATION_TIMEDOUT || answer.code == CURLE_GOT_NOTHING ||
                        answer.code == CURLE_HTTP_RETURNED_ERROR;
  if (!may_pass)
    throw Error(fmt::format("cannot be fetched: {}", answer.message), url,
                "check the network connection and the address");
  log::note("{}: {}; trying again", url, answer.message);
  return false;
}

void check_file(const RemoteFile& file, const fs::path& path, const std::string& url) {
  const MappedFile mapped(path);
  const auto refuse = [&](const std::string& what) {
    std::error_code ignored;
    fs::remove(path, ignored);
    throw Error(what, url, "it was removed; try again, or fetch it by hand and use 'clustergcn import'");
  };
  if (file.size != 0 && mapped.bytes().size() != file.size)
    refuse(fmt::format("is {} bytes long, but {} are expected", mapped.bytes().size(), file.size));
  if (file.checksum != 0 && checksum(mapped.bytes().data(), mapped.bytes().size()) != file.checksum)
    refuse("does not have the checksum that is expected");
}

void fetch(const RemoteFile& file, const std::string& base_url, const fs::path& folder) {
  const fs::path target = folder / file.name;
  fs::path partial = target;
  partial += ".part";
  std::error_code error;
  if (fs::exists(target, error)) return;  // from an earlier call; it was whole and checked
  const std::string url = base_url + "/" + file.name;
  int attempt = 1;
  while (!fetch_once(url, partial))
    if (++attempt > kAttempts)
      throw Error(
          fmt::format("the connection broke {} times; {} are here", kAttempts, format_bytes(size_or_zero(partial))),
          url, "the same command resumes the download");
  check_file(file, partial, url);
  fs::rename(partial, target);
}

// Length and CRCs show that a file arrived whole, not that it is the one its publisher made.
void say_what_is_unchecked(const DownloadSource& source) {
  std::vector<std::string> unknown;
  for (const RemoteFile& file : source.files)
    if (file.checksum == 0) unknown.push_back(file.name);
  if (!unknown.empty())
    log::warn("no checksum is known for {}: that {} arrived whole was checked, not that nobody changed {}",
              fmt::join(unknown, ", "), unknown.size() == 1 ? "it" : "they", unknown.size() == 1 ? "it" : "them");
}

// The member by its name, or by that without its first folder: archives are packed both ways.
std::string find_member(const NpzFile& zip, const std::string& member) {
  std::string key = member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
  if (zip.has(key)) return key;
  const std::string short_key = key.substr(key.find('/') + 1);
  return zip.has(short_key) ? short_key : key;
}

void unpack(const fs::path& archive, const std::vector<std::string>& members, const fs::path& folder) {
  const NpzFile zip(archive, folder);
  for (const std::string& member : members) {
    const fs::path target = folder / member;
    std::error_code error;
    if (fs::exists(target, error)) continue;
    fs::create_directories(target.parent_path());
    const SharedBytes bytes = zip.member(find_member(zip, member));
    OutputFile out = OutputFile::staged(target);
    for (size_t at = 0; at < bytes.span.size(); at += kChunk) {
      const SharedBytes chunk = bytes.slice(at, std::min(kChunk, bytes.span.size() - at));
      out.write(chunk.span.data(), chunk.span.size());
      chunk.release();
    }
    out.commit();
  }
}

}  // namespace

fs::path download(const DownloadSource& source, const std::string& base_url, const fs::path& folder) {
  fs::create_directories(folder);
  const std::string base = base_url.empty() ? source.base_url : base_url;
  for (const RemoteFile& file : source.files) fetch(file, base, folder);
  say_what_is_unchecked(source);
  if (!source.members.empty()) {
    const fs::path archive = folder / source.files[0].name;
    try {
      unpack(archive, source.members, folder);
    } catch (const Error& problem) {
      if (!problem.where().starts_with(archive.string())) throw;  // the disk, not the archive
      std::error_code ignored;
      fs::remove(archive, ignored);  // the next call must not find it
      throw Error("what arrived is not the archive that it should be: " + problem.problem(),
                  base + "/" + source.files[0].name,
                  "it was removed; try again, or fetch it by hand and use 'clustergcn import'");
    }
  }
  return folder / source.inside;
}

}  // namespace cgcn

#include "io/text/line_reader.h"

#include <cerrno>
#include <cstring>

#include "common/input_file.h"
#include "common/interrupt.h"
#include "io/file_kind.h"

namespace cgcn {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kLongestLine = size_t{1} << 28;

uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw Error("no such file", path.string());
  if (!fs::is_regular_file(status)) refuse_special_file(path);
  return fs::file_size(path, error);
}

}  // namespace

LineReader::LineReader(const fs::path& path)
    : path_(path), progress_("reading " + path.filename().string(), size_of(path), "bytes"), buffer_(kBufferBytes) {
  file_.reset(gzopen(path.c_str(), "rb"));
  if (file_ == nullptr) throw Error(fmt::format("cannot read: {}", std::strerror(errno)), path.string());
  gzbuffer(file_.get(), 1u << 18);
  refill();
  start();
}

void LineReader::start() {
  const std::string_view text(buffer_.data(), end_);
  if (text.starts_with("\xEF\xBB\xBF")) at_ = 3;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw Error("is UTF-16 text", path_.string(), "save it as UTF-8");
  if (kind_of_bytes(std::as_bytes(std::span(text)), path_.string()) != FileKind::kText)
    throw Error("holds arrays, but text is needed here", path_.string());
}

bool LineReader::refill() {
  throw_if_interrupted();
  const size_t seen = end_ - at_;
  std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
  end_ -= at_;
  at_ = 0;
  if (end_ == buffer_.size()) {  // one line fills it all
    if (end_ >= kLongestLine)
      throw Error("has a line of more than 256 MiB", fmt::format("{}:{}", path_.string(), line_number_ + 1));
    Buffer<char> larger(2 * buffer_.size());
    std::memcpy(larger.data(), buffer_.data(), end_);
    buffer_ = std::move(larger);
  }
  const int got = gzread(file_.get(), buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int status = Z_OK;
  std::string_view message = gzerror(file_.get(), &status);
  if (message.starts_with(path_.c_str())) message.remove_prefix(std::min(path_.native().size() + 2, message.size()));
  if (status == Z_BUF_ERROR)
    throw Error("is cut off: the gzip data ends too early", path_.string(), "copy or download it again");
  if (got < 0 || status < 0)
    throw Error(fmt::format("cannot be read: {}", status == Z_ERRNO ? std::strerror(errno) : message), path_.string(),
                status == Z_DATA_ERROR ? "the file is damaged: copy or download it again" : "");
  progress_.set(static_cast<uint64_t>(gzoffset(file_.get())));
  end_ += static_cast<size_t>(got);
  end_lines_at_returns(seen > 0 ? seen - 1 : 0);
  return got > 0;
}

// A carriage return alone ends a line, as in files of old Macs and of Excel's "CSV (Macintosh)". Whether one at the end
// of the buffer is alone shows when more is read; at the end of the file next() takes it off.
void LineReader::end_lines_at_returns(size_t from) {
  char* const end = buffer_.data() + end_;
  for (char* at = buffer_.data() + from; at + 1 < end; ++at) {
    at = static_cast<char*>(std::memchr(at, '\r', static_cast<size_t>(end - 1 - at)));
    if (at == nullptr) return;
    if (at[1] != '\n' && at[1] != '\r') *at = '\n';
  }
}

bool LineReader::next(std::string_view& line) {
  const char* newline = nullptr;
  for (size_t searched = 0;;) {
    const char* begin = buffer_.data() + at_;
    newline = static_cast<const char*>(std::memchr(begin + searched, '\n', end_ - at_ - searched));
    if (newline != nullptr) break;
    searched = end_ - at_;
    if (!refill()) {
      if (end_ == at_) return false;
      newline = buffer_.data() + end_;  // no final line ending
      break;
    }
  }
  const char* begin = buffer_.data() + at_;
  const char* end = newline;
  at_ = std::min(static_cast<size_t>(newline - buffer_.data()) + 1, end_);
  while (end > begin && (end[-1] == '\r' || end[-1] == ' ')) --end;
  while (begin < end && *begin == ' ') ++begin;
  line = {begin, static_cast<size_t>(end - begin)};
  ++line_number_;
  return true;
}

bool LineReader::next_content(std::string_view& line) {
  while (next(line)) {
    if (!line.empty() && line[0] > '#') [[likely]]
      return has_content_ = true;
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (line[0] != '#') return has_content_ = true;
    if (has_content_)
      fail("begins with '#', below other lines: a comment, or an id such as #tag?",
           "remove comments below the first line; quote ids that begin with #, as in \"#tag\"");
  }
  return false;
}

std::string LineReader::where() const { return fmt::format("{}:{}", path_.string(), line_number_); }

void LineReader::fail(const std::string& problem, const std::string& hint) const {
  throw Error(problem, where(), hint);
}

fs::path find_plain_or_gzip(const fs::path& path) {
  std::error_code error;
  fs::path compressed = path;
  compressed += ".gz";
  for (const fs::path& candidate : {path, compressed})
    if (fs::is_regular_file(candidate, error)) return candidate;
  return {};
}

}  // namespace cgcn

#include "common/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "common/log.h"
#include "common/memory.h"
#include "common/session.h"

namespace cgcn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{1500};       // quick work shows nothing
constexpr milliseconds kFrame{100};           // between frames on a terminal
constexpr milliseconds kLogInterval{10'000};  // between lines elsewhere

// Those that are there, the newest last: it has the line.
std::mutex bars_mutex;
std::vector<const Progress*> bars;

size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

std::string bar(double share, size_t cells) {
  constexpr const char* kPartial[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(cells) * 8);
  std::string text;
  for (size_t i = 0; i < eighths / 8; ++i) text += "█";
  size_t filled = eighths / 8;
  if (eighths % 8 != 0) {
    text += kPartial[eighths % 8];
    ++filled;
  }
  return text.append(cells - filled, ' ');
}

size_t columns_of(const std::string& text) {  // a UTF-8 character counts as one
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut(const std::string& text, size_t width) {
  size_t columns = 0, i = 0;
  for (; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++columns > width) break;
  return text.substr(0, i);
}

}  // namespace

Progress::Progress(std::string title, uint64_t total, std::string unit, uint64_t steps_per_unit)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      steps_per_unit_(std::max<uint64_t>(1, steps_per_unit)),
      total_(total) {
  if (log::level() != log::Level::kNormal || Session::current() != nullptr) return;
  const std::lock_guard lock(bars_mutex);
  thread_ = std::thread([this] { show_until_stopped(); });
  bars.push_back(this);
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_signal_.notify_all();
  thread_.join();
  const std::lock_guard lock(bars_mutex);
  std::erase(bars, this);
}

bool Progress::has_the_line() const {
  const std::lock_guard lock(bars_mutex);
  return !bars.empty() && bars.back() == this;
}

void Progress::set_note(std::string note) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(note);
}

void Progress::show_until_stopped() {
  const bool terminal = log::is_terminal();
  std::unique_lock lock(mutex_);
  milliseconds wait = terminal ? kPatience : kLogInterval;
  bool shown = false;
  for (unsigned frame = 0; !stop_signal_.wait_for(lock, wait, [this] { return stopping_; }); ++frame) {
    if (!has_the_line()) continue;
    const ProgressState state{title_, unit_, note_, done_, total_, begun_, timer_.seconds(), frame, steps_per_unit_};
    if (terminal) {
      const std::string output = "\r" + format_progress(state, terminal_width() - 1) + "\x1b[K";
      std::fwrite(output.data(), 1, output.size(), stderr);
      std::fflush(stderr);
      wait = kFrame;
      shown = true;
    } else {
      log::write_line(format_progress(state));
    }
  }
  if (shown) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
}

namespace {

// What a line is put together from.
struct LinePieces {
  std::string title, share, amount, left;
  std::vector<std::string> notes;
  double done_share = 0;
};

LinePieces make_pieces(const ProgressState& state) {
  LinePieces pieces{.title = state.title, .share = {}, .amount = {}, .left = {}, .notes = {}};
  const auto amount = [&](uint64_t value) {
    return state.unit == "bytes" ? format_bytes(value) : format_count(value / state.steps_per_unit);
  };
  const std::string suffix = state.unit.empty() || state.unit == "bytes" ? "" : " " + state.unit;
  for (size_t at = 0; at < state.note.size();) {
    const size_t end = std::min(state.note.find("  ", at), state.note.size());
    pieces.notes.push_back(state.note.substr(at, end - at));
    at = end + 2;
  }
  if (state.total == 0) {
    pieces.share = " " + format_seconds(state.seconds);
    if (state.done > 0) pieces.amount = "  " + amount(state.done) + suffix;
    return pieces;
  }
  const auto whole = static_cast<double>(state.total);
  pieces.done_share = std::min(1.0, static_cast<double>(state.done) / whole);
  pieces.share = fmt::format(" {:3.0f} %", pieces.done_share * 100);
  pieces.amount = fmt::format("  {}{}{}{}", amount(std::min(state.done, state.total)),
                              state.steps_per_unit > 1 ? "/" : " of ", amount(state.total), suffix);
  const double since = state.done > state.begun ? static_cast<double>(state.done - state.begun) : 0;
  if (since / whole > 0.005) {
    const double remaining = static_cast<double>(state.total - std::min(state.done, state.total));
    pieces.left = fmt::format("  {} left", format_seconds(state.seconds / since * remaining));
  }
  return pieces;
}

std::string join(const LinePieces& pieces, const std::string& bar) {
  std::string text = pieces.title + bar + pieces.share + pieces.amount + pieces.left;
  for (const std::string& note : pieces.notes) text += "  " + note;
  return text;
}

}  // namespace

std::string format_progress(const ProgressState& state) { return join(make_pieces(state), ""); }

std::string format_progress(const ProgressState& state, size_t width) {
  constexpr const char* kSpinner[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
  LinePieces pieces = make_pieces(state);
  if (state.total == 0) pieces.title = std::string(kSpinner[state.frame % 10]) + " " + pieces.title;
  size_t cells = state.total == 0 ? 0 : 20;
  const auto text = [&] { return join(pieces, cells == 0 ? "" : fmt::format(" ▕{}▏", bar(pieces.done_share, cells))); };
  const auto too_long = [&] { return columns_of(text()) > width; };
  if (state.steps_per_unit > 1) {  // units tell more than a percentage
    if (too_long()) cells /= 2;
    if (too_long()) pieces.share.clear();
    if (too_long() && pieces.notes.size() > 1) pieces.notes.pop_back();
  } else if (too_long() && state.total > 0) {
    pieces.amount.clear();
  }
  if (too_long()) cells = std::min<size_t>(cells, 10);
  if (too_long()) cells = 0;
  while (too_long() && !pieces.notes.empty()) pieces.notes.pop_back();
  if (too_long() && state.steps_per_unit == 1) pieces.amount.clear();
  if (too_long()) pieces.left.clear();
  return cut(text(), width);
}

std::string format_seconds(double seconds) {
  if (seconds < 0.1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace cgcn

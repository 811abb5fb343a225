#include "common/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "common/log.h"
#include "common/memory.h"

namespace cgcn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{1500};       // quick work shows nothing
constexpr milliseconds kFrame{100};           // between frames on a terminal
constexpr milliseconds kLogInterval{10'000};  // between lines elsewhere

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

// Cuts to `width` columns; a UTF-8 character counts as one.
std::string cut(const std::string& text, size_t width) {
  size_t columns = 0, i = 0;
  for (; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++columns > width) break;
  return text.substr(0, i);
}

}  // namespace

Progress::Progress(std::string title, uint64_t total, std::string unit)
    : title_(std::move(title)), unit_(std::move(unit)), total_(total) {
  if (log::level() == log::Level::kNormal) thread_ = std::thread([this] { show_until_stopped(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_signal_.notify_all();
  thread_.join();
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
    const std::string text = line(timer_.seconds(), frame);
    if (terminal) {
      const std::string output = "\r" + cut(text, terminal_width() - 1) + "\x1b[K";
      std::fwrite(output.data(), 1, output.size(), stderr);
      std::fflush(stderr);
      wait = kFrame;
      shown = true;
    } else {
      log::write_line(text);
    }
  }
  if (shown) {
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }
}

std::string Progress::line(double seconds, unsigned frame) {
  const uint64_t done = done_, total = total_;
  const auto amount = [&](uint64_t value) { return unit_ == "bytes" ? format_bytes(value) : format_count(value); };
  const std::string suffix = unit_.empty() || unit_ == "bytes" ? "" : " " + unit_;
  const std::string note = note_.empty() ? "" : "  " + note_;
  const bool terminal = log::is_terminal();
  if (total == 0) {
    constexpr const char* kSpinner[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    return fmt::format("{}{} {}{}{}", terminal ? std::string(kSpinner[frame % 10]) + " " : "", title_,
                       format_seconds(seconds), done > 0 ? "  " + amount(done) + suffix : "", note);
  }
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const std::string left = share > 0.005 ? fmt::format("  {} left", format_seconds(seconds / share - seconds)) : "";
  return fmt::format("{} {}{:3.0f} %  {} of {}{}{}{}", title_, terminal ? "▕" + bar(share, 20) + "▏" : "", share * 100,
                     amount(std::min(done, total)), amount(total), suffix, left, note);
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

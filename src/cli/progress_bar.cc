#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/io.h"

namespace sandglass::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{300};
constexpr std::chrono::milliseconds kShowEvery{50};
constexpr uint64_t kWidth = 20;
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

std::string ProgressText(const undo::RewindProgress& progress) {
  const uint64_t total = std::max<uint64_t>(1, progress.total);
  const uint64_t done = std::min(progress.done, total);
  const uint64_t filled = kWidth * done / total;
  return fmt::format("[{:#<{}}{:-<{}}] {:>3} %  {} of {} paths", "", filled, "", kWidth - filled,
                     100 * done / total, done, progress.total);
}

session::TellProgress ProgressBar::teller() {
  if (terminal_ < 0) return {};
  return [this](const undo::RewindProgress& progress) { Show(progress); };
}

void ProgressBar::Show(const undo::RewindProgress& progress) {
  const Instant now = clock_.Now();
  if (now < started_ + kPatience || now < shown_ + kShowEvery) return;
  shown_ = now;
  visible_ = true;
  // What cannot be shown is lost.
  (void)WriteFully(terminal_, AsBytes(fmt::format("{}{}", kClearLine, ProgressText(progress))));
}

void ProgressBar::Clear() {
  if (std::exchange(visible_, false)) (void)WriteFully(terminal_, AsBytes(kClearLine));
}

}  // namespace sandglass::cli

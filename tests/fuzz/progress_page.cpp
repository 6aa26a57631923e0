// SPDX-License-Identifier: Apache-2.0
// The pages in which workers say how far they are, of two ranks, or four if the length is odd, at some
// moments: what they say can be shown, travels as JSON, and ranks can be compared by it. And what a worker
// writes is read.
#include "acc/base/progress_page.hpp"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "acc/control/progress_view.hpp"
#include "acc/control/rank_state.hpp"
#include "acc/launch/step_comparison.hpp"
#include "fuzz/promise.hpp"

namespace {

using acc::Progress;
using acc::ProgressPage;

constexpr std::size_t kPage = 52 * sizeof(std::uint64_t);
constexpr auto kNow = std::chrono::hours(1000);
constexpr int kMoments = 12;

std::filesystem::path file() {
  return "/dev/shm/acc-fuzz-page-" + std::to_string(::getpid());
}

std::optional<Progress> read_page(std::string_view bytes) {
  std::ofstream(file(), std::ios::binary) << bytes;
  auto progress = ProgressPage::read_last(file());
  ProgressPage::read(file());
  std::filesystem::remove(file());
  return progress;
}

void check(const Progress& progress) {
  const auto view = acc::launcher::view_of(progress, kNow);
  const auto json = to_json(std::optional(view));
  const auto again = acc::launcher::progress_from_json(nlohmann::json::parse(json.dump()));
  // A NaN is not equal to itself.
  fuzz::require(again && to_json(again).dump() == json.dump(), "a view travels as JSON");
  const std::string text = to_string(view);
  fuzz::require(text == acc::printable(text), "a view is printable", text);
  acc::launcher::standing_of(view);
}

// A worker's calls, of which two bytes are one.
void write_page(ProgressPage& page, std::string_view calls) {
  fuzz::Choices choices(calls);
  while (!calls.empty()) {
    const auto call = choices.below(9);
    const auto value = static_cast<std::int64_t>(choices.below(256));
    if (call == 0) page.set_steps(value);
    if (call == 1) page.add_step();
    if (call == 2) page.restart_steps(value);
    if (call == 3) page.set_global_step(value);
    if (call == 4) page.add_samples(value);
    if (call == 5) page.add_tokens(value);
    if (call == 6) page.set_loss(static_cast<double>(value));
    if (call == 7) page.enter(acc::kSections[static_cast<std::size_t>(value) % acc::kSections.size()]);
    if (call == 8 && value % 2 == 0) page.begin_collective(calls.substr(0, static_cast<std::size_t>(value)));
    if (call == 8 && value % 2 != 0) page.end_collective();
  }
}

void check_writing(std::string_view calls) {
  ProgressPage page(file());
  fuzz::require(page.is_open(), "a worker has a page");
  write_page(page, calls);
  const auto progress = ProgressPage::read(file());
  fuzz::require(progress && progress->pid == ::getpid(), "a page is read as it was written");
  fuzz::require(progress->section == page.section(), "its section is that of the worker");
  check(*progress);
  fuzz::require(!ProgressPage(file()).is_open(), "a page has one writer");
  std::filesystem::remove(file());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  acc::launcher::StepComparison comparison;
  acc::launcher::StepComparison::TimePoint now;
  const int num_ranks = size % 2 == 0 ? 2 : 4;
  for (int moment = 0; moment < kMoments && !bytes.empty(); ++moment) {
    std::vector<std::optional<Progress>> pages;
    for (int rank = 0; rank < num_ranks; ++rank) {
      pages.push_back(read_page(bytes.substr(0, kPage)));
      if (pages.back()) check(*pages.back());
      bytes.remove_prefix(std::min(kPage, bytes.size()));
    }
    now += std::chrono::seconds(20);
    comparison.observe(pages, now);
    comparison.slow();
  }
  constexpr std::size_t kMaxCalls = 64;
  check_writing(fuzz::text_of(data, std::min(size, kMaxCalls)));
  return 0;
}

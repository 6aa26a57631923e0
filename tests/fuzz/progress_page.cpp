// SPDX-License-Identifier: Apache-2.0
// The pages in which workers say how far they are, of two ranks at three moments: what they say can be shown,
// travels as JSON, and ranks can be compared by it.
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

std::optional<Progress> read_page(std::string_view bytes) {
  static const std::filesystem::path kFile = "/dev/shm/acc-fuzz-page-" + std::to_string(::getpid());
  std::ofstream(kFile, std::ios::binary) << bytes;
  auto progress = ProgressPage::read_last(kFile);
  ProgressPage::read(kFile);
  std::filesystem::remove(kFile);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  acc::launcher::StepComparison comparison;
  acc::launcher::StepComparison::TimePoint now;
  for (int moment = 0; moment < 3; ++moment) {
    std::vector<std::optional<Progress>> pages;
    for (int rank = 0; rank < 2; ++rank) {
      pages.push_back(read_page(bytes.substr(0, kPage)));
      if (pages.back()) check(*pages.back());
      // The last page is that of all moments after it.
      if (bytes.size() > kPage) bytes.remove_prefix(kPage);
    }
    now += std::chrono::seconds(20);
    comparison.observe(pages, now);
    comparison.slow();
  }
  return 0;
}

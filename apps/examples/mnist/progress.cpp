// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace {

constexpr std::size_t kWidth = 30;

}  // namespace

Progress::Progress(bool visible, std::string title, std::size_t steps)
    : visible_(visible), terminal_(::isatty(STDOUT_FILENO) == 1), title_(std::move(title)), steps_(steps) {}

void Progress::step(double loss) {
  ++done_;
  if (!visible_ || !terminal_ || steps_ == 0) return;
  const std::size_t percent = 100 * done_ / steps_;
  if (std::exchange(drawn_percent_, percent) != percent) draw(loss);
}

void Progress::draw(double loss) const {
  const std::size_t filled = kWidth * done_ / steps_;
  const std::string bar = std::string(filled, '=') + std::string(kWidth - filled, ' ');
  std::printf("\r%s [%s] %3zu%%  loss %.3f", title_.c_str(), bar.c_str(), drawn_percent_, loss);
  std::fflush(stdout);
}

void Progress::finish(const std::string& result) const {
  if (!visible_) return;
  // On a terminal the bar is wiped away first.
  std::printf("%s%s  %s\n", terminal_ ? "\r\x1b[K" : "", title_.c_str(), result.c_str());
  std::fflush(stdout);
}

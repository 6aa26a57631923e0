// SPDX-License-Identifier: Apache-2.0
#include "narrator.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace acc::selftest {
namespace {

void say(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void Narrator::begin(const Report& head) {
  const std::lock_guard lock(mutex_);
  report_ = head;
  if (!speaks_ || json_) return;
  say(fmt::format("{} process{} on {}, mixed precision {}\n", head.num_processes,
                  head.num_processes == 1 ? "" : "es", head.device, head.mixed_precision));
}

void Narrator::add(const CheckResult& check) {
  const std::lock_guard lock(mutex_);
  report_.checks.push_back(check);
  if (speaks_ && !json_) say(check_text(check));
}

bool Narrator::finish(const Report& measured) {
  const std::lock_guard lock(mutex_);
  report_.links = measured.links;
  report_.all_reduces = measured.all_reduces;
  report_.matmuls = measured.matmuls;
  if (speaks_) say(json_ ? to_json(report_).dump(2) + "\n" : summary_text(report_));
  return report_.passed();
}

void Narrator::fail(const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (!board_.claim_report()) return;
  report_.error = error;
  fmt::print(stderr, "acc-selftest: {}\n", error);
  if (json_) say(to_json(report_).dump(2) + "\n");
}

}  // namespace acc::selftest

// SPDX-License-Identifier: Apache-2.0
#include "reporter.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "acc/base/text.hpp"

namespace acc::selftest {
namespace {

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

void Reporter::begin(const Report& head) {
  const std::lock_guard lock(mutex_);
  report_ = head;
  if (!writes_ || json_) return;
  write(fmt::format("{} on {}, mixed precision {}\n", pluralize(head.num_processes, "process"), head.device,
                    head.mixed_precision));
}

void Reporter::add(const CheckResult& check) {
  const std::lock_guard lock(mutex_);
  report_.checks.push_back(check);
  if (writes_ && !json_) write(check_text(check));
}

bool Reporter::finish(const Report& measured) {
  const std::lock_guard lock(mutex_);
  report_.links = measured.links;
  report_.all_reduces = measured.all_reduces;
  report_.matmuls = measured.matmuls;
  if (writes_) write(json_ ? to_json(report_).dump(2) + "\n" : summary_text(report_));
  return report_.passed();
}

void Reporter::fail(const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (!board_.claim_report()) return;
  report_.error = error;
  fmt::print(stderr, "acc-selftest: {}\n", error);
  if (json_) write(to_json(report_).dump(2) + "\n");
}

}  // namespace acc::selftest

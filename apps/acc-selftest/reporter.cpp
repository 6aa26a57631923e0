// SPDX-License-Identifier: Apache-2.0
#include "reporter.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"

namespace acc::selftest {
namespace {

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// A host name need not be UTF-8.
std::string json_text(const Report& report, int indent) {
  return to_json(report).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

void Reporter::begin(const Report& head) {
  const std::lock_guard lock(mutex_);
  report_ = head;
  if (!writes_ || json_) return;
  write(fmt::format("{} on {}, mixed precision {}\n", pluralize(head.num_processes.value(), "process"),
                    head.device, head.mixed_precision));
}

void Reporter::add(const CheckResult& check) {
  const std::lock_guard lock(mutex_);
  report_.checks.push_back(check);
  if (writes_ && !json_) write(check_text(check));
}

bool Reporter::finish() {
  const std::lock_guard lock(mutex_);
  if (writes_) {
    write(json_ ? json_text(report_, 2) : summary_text(report_));
    write_file();
  }
  return report_.passed();
}

void Reporter::fail(const std::string& error) {
  const std::lock_guard lock(mutex_);
  if (!board_.claim_report()) return;
  report_.error = error;
  fmt::print(stderr, "acc-selftest: {}\n", error);
  if (json_) write(json_text(report_, 2));
  write_file();
}

void Reporter::write_file() const {
  if (file_.empty()) return;
  const Descriptor file(::open(file_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file || !write_all(file.get(), json_text(report_, -1)))
    fmt::print(stderr, "acc-selftest: {}: the report cannot be written\n", file_.string());
}

}  // namespace acc::selftest

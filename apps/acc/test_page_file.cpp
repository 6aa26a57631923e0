// SPDX-License-Identifier: Apache-2.0
#include "test_page_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/report/event_lines.hpp"
#include "acc/report/job_history.hpp"
#include "acc/report/selftest_page.hpp"
#include "acc/report/selftest_results.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

Descriptor file_in_memory(const char* name) {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) throw_errno(name, "cannot be created", errno);
  return file;
}

// Processes that this one has not forked open it, too.
std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
}

// Some hundred bytes for each pair of ranks.
std::string text_of(const Descriptor& file) {
  constexpr std::size_t kMaxBytes = 1U << 30U;
  return read_file(path_of(file), kMaxBytes);
}

}  // namespace

TestPageFile::TestPageFile(std::filesystem::path file, bool is_first)
    : file_(std::move(file)), is_first_(is_first) {
  require_replaceable(file_);
  results_ = file_in_memory("acc-test-results");
  events_ = file_in_memory("acc-test-events");
}

std::string TestPageFile::results_path() const {
  return path_of(results_);
}

std::filesystem::path TestPageFile::events_path() const {
  return path_of(events_);
}

int TestPageFile::write(int exit_code) const {
  EventLines events;
  add_event_lines(events, text_of(events_), "events");
  const bool is_first = is_first_ && (events.lines.empty() || events.lines.back().node_rank == 0);
  if (!is_first) return exit_code;
  SelftestRun run = {
      .results = parse_selftest_results(text_of(results_)), .exit_code = exit_code, .version = kVersionLine};
  if (!events.lines.empty()) run.history = job_history(std::move(events));
  if (exit_code == 0 && run.results.checks.empty()) {
    log::write(log::Level::error, "acc test: the ranks ended without results");
    run.exit_code = 1;
  }
  try {
    replace_file(file_, selftest_page(run));
  } catch (const Error& error) {
    if (run.exit_code == 0) throw;
    log::write(log::Level::error, error.what());
  }
  return run.exit_code;
}

}  // namespace acc::launcher

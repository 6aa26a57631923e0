// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/control/log_reader.hpp"
#include "acc/launch/line_prefix.hpp"
#include "commands.hpp"
#include "running_jobs.hpp"

namespace acc::launcher {
namespace {

struct LogsOptions {
  std::string job = {};
  std::vector<int> ranks = {};
  bool follow = false;
};

// main() says what it is.
[[noreturn]] void stop_writing() {
  throw std::system_error(errno, std::generic_category());
}

void write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) stop_writing();
}

void flush() {
  if (std::fflush(stdout) != 0) stop_writing();
}

int show_logs(const LogsOptions& options) {
  RunningJob job = running_job(options.job, JobPart::ranks);
  if (job.view.hosts > 0) {
    throw Error({.what = "its ranks run on other hosts",
                 .where = job.view.id,
                 .hint = "acc launch --hosts shows what they write; acc logs shows it on each host"});
  }
  const bool one_rank = options.ranks.size() == 1 || (options.ranks.empty() && job.view.ranks.size() == 1);
  std::map<std::pair<int, StreamName>, LinePrefixer> lines;
  char last_byte = '\n';
  const auto on_output = [&](int rank, StreamName stream, std::string_view bytes) {
    const auto [line, added] = lines.try_emplace({rank, stream}, fmt::format("[{}] ", rank));
    write(one_rank ? std::string(bytes) : line->second.feed(bytes));
    if (one_rank && !bytes.empty()) last_byte = bytes.back();
    if (options.follow) flush();
  };
  const auto on_note = [](const std::string& text) { log::write(log::Level::info, text); };
  LogReader reader(job, options.ranks, on_output, on_note);
  if (options.follow) {
    const auto on_silence = [&](int rank, StreamName stream) {
      write(lines.at({rank, stream}).show_unfinished());
      flush();
    };
    const auto on_break = [&](int rank, StreamName stream) {
      if (std::exchange(last_byte, '\n') != '\n') write("\n");
      if (const auto line = lines.find({rank, stream}); line != lines.end()) write(line->second.finish());
      flush();
    };
    reader.follow(on_silence, on_break);
  } else {
    reader.read();
  }
  for (auto& [source, line] : lines) write(line.finish());
  return reader.has_failed() ? exit_code(ErrorKind::system) : 0;
}

}  // namespace

void add_logs_command(CLI::App& app, int& code) {
  CLI::App* logs = app.add_subcommand("logs", "Show the output of the ranks of a running job");
  const auto options = std::make_shared<LogsOptions>();
  add_job_option(*logs, options->job, "the only job");
  logs->add_option("-r,--rank", options->ranks, "Only these ranks")->delimiter(',')->allow_extra_args(false);
  logs->add_flag("-f,--follow", options->follow, "Go on until the job ends");
  logs->callback([options, &code] { code = show_logs(*options); });
}

}  // namespace acc::launcher

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/printable.hpp"
#include "acc/report/event_lines.hpp"
#include "acc/report/figures.hpp"
#include "acc/report/job_history.hpp"
#include "acc/report/report_page.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

struct ReportOptions {
  std::vector<std::filesystem::path> logs = {};
  std::string output = {};
  std::string run_id = {};
  bool json = false;
};

bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code error;
  return std::filesystem::equivalent(one, other, error);
}

// One that is given twice would count twice, and one that is the page would be lost.
void require_distinct(const ReportOptions& options) {
  for (auto log = options.logs.begin(); log != options.logs.end(); ++log) {
    if (is_same_file(*log, options.output))
      throw Error(
          {.what = "is one of the logs", .where = "-o " + options.output, .hint = "name another file"});
    if (std::any_of(options.logs.begin(), log, [&](const auto& other) { return is_same_file(other, *log); }))
      throw Error({.what = "is given twice", .where = log->string()});
  }
}

void report_job(const ReportOptions& options) {
  if (options.output.empty() && !options.json)
    throw Error({.what = "what is to be written is not said",
                 .hint = "acc report EVENTS -o FILE.html, or --json for the figures"});
  require_distinct(options);
  EventLines lines = read_event_logs(options.logs);
  if (lines.lines.empty())
    throw Error({.kind = ErrorKind::config,
                 .what = "has no event of a job",
                 .where = options.logs.front().string(),
                 .hint = "acc launch --event-log FILE writes one"});
  for (const std::string& note : lines.notes) log::write(log::Level::warn, printable_line(note));
  const JobHistory history = job_history(std::move(lines), options.run_id);
  if (!options.output.empty()) replace_file(options.output, report_page(history));
  if (options.json) fmt::print("{}", figures_json(history));
}

}  // namespace

void add_report_command(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* report = app.add_subcommand("report", "Tell from event logs how a job went: one HTML page");
  refuse_empty(report->add_option("events", options->logs, "Event logs of the job's nodes (--event-log)"))
      ->type_name("FILE")
      ->required();
  refuse_empty(report->add_option("-o,--output", options->output, "The page to write"))
      ->type_name("FILE.html");
  report->add_flag("--json", options->json, "Print the figures as JSON");
  report->add_option("--run-id", options->run_id, "The run, where the logs have several (default: the last)")
      ->type_name("ID");
  report->callback([options] { report_job(*options); });
}

}  // namespace acc::launcher

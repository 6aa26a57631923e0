// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "acc/base/blocked_signals.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/base/machine.hpp"
#include "acc/control/control_client.hpp"
#include "acc/control/job_file.hpp"
#include "acc/control/job_trust.hpp"
#include "acc/metrics/job_metrics.hpp"
#include "acc/metrics/metrics_server.hpp"
#include "acc/plan/flag_grammars.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"
#include "running_jobs.hpp"

namespace acc::launcher {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint16_t kDefaultPort = 9499;

struct MetricsOptions {
  std::string listen = {};
  std::string textfile = {};
  int interval = 0;
};

// Those of this user, of root all.
FoundJobs jobs_of_machine() {
  if (::geteuid() != 0) return find_jobs(runtime_folders(Environment::of_process(), ::geteuid()));
  std::vector<RuntimeFolder> folders = all_runtime_folders();
  for (const std::filesystem::path& folder : runtime_folders(Environment::of_process(), 0)) {
    if (std::ranges::find(folders, folder, &RuntimeFolder::path) == folders.end())
      folders.push_back({.path = folder, .owner = 0});
  }
  return find_jobs(folders);
}

// The jobs of other users say what they like. Of two with the same id, the first is shown.
void distrust(std::vector<RunningJob>& jobs, const ProcessTable& processes) {
  std::ranges::stable_partition(
      jobs, [](const RunningJob& job) { return has_id_of_process(job.view, processes_of(job.user)); });
  for (RunningJob& job : jobs) {
    if (job.user != ::geteuid())
      forget_processes_of_others(job.view, processes, job.agent, processes_of(job.user));
  }
}

std::vector<Metric> read_metrics() {
  FoundJobs jobs = jobs_of_machine();
  // A client of --hosts has no ranks here; each host shows its own.
  std::erase_if(jobs.running, [](const RunningJob& job) { return job.view.hosts > 0; });
  const ProcessTable processes = ProcessTable::read();
  distrust(jobs.running, processes);
  return job_metrics(usage_of(jobs.running, {}, processes, {}), jobs.silent.size(), host_name());
}

// Several clients that ask at once get one answer: a job that does not answer takes seconds.
class RecentMetrics {
 public:
  std::string text(MetricsFormat format) {
    const auto now = std::chrono::steady_clock::now();
    if (now - read_ > kFresh) {
      metrics_ = read_metrics();
      read_ = std::chrono::steady_clock::now();
    }
    return metrics_text(metrics_, format);
  }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kFresh{500};

  std::vector<Metric> metrics_ = {};
  TimePoint read_ = TimePoint() - kFresh;
};

// An address of this machine: a name would have several.
tcp::endpoint address_of(const std::string& text) try {
  const Endpoint endpoint = parse_endpoint(text, "");
  return {boost::asio::ip::make_address(endpoint.host), endpoint.port.value_or(kDefaultPort)};
} catch (const std::exception&) {
  throw Error({.what = fmt::format("'{}' is not an IP address with a port", text),
               .where = "--listen",
               .hint = "as in 127.0.0.1:9499, or 0.0.0.0:9499 for other machines"});
}

// Until SIGINT, SIGTERM or SIGHUP, but for what the caller ignores, as nohup does.
void run_until_asked(boost::asio::io_context& loop) {
  std::set<int> endings = {SIGINT, SIGTERM, SIGHUP};
  for (const int signal : ignored_of(endings)) endings.erase(signal);
  boost::asio::signal_set signals(loop);
  for (const int signal : endings) signals.add(signal);
  signals.async_wait([&](error_code, int) { loop.stop(); });
  loop.run();
}

void serve(const std::string& address) {
  boost::asio::io_context loop;
  RecentMetrics metrics;
  const MetricsServer server(loop, address_of(address),
                             [&](MetricsFormat format) { return metrics.text(format); });
  log::write(log::Level::info, fmt::format("the metrics are at http://{}/metrics", server.address()));
  run_until_asked(loop);
}

// Once, or every `interval`; then it is removed at the end, since node_exporter would go on to show it.
void write_textfile(const std::filesystem::path& file, std::chrono::seconds interval) {
  if (!std::filesystem::is_directory(std::filesystem::absolute(file).parent_path()))
    throw Error({.what = "its folder does not exist", .where = file.string()});
  const auto write = [&] { replace_file(file, metrics_text(read_metrics(), MetricsFormat::prometheus)); };
  write();
  if (interval.count() == 0) return;
  boost::asio::io_context loop;
  boost::asio::steady_timer timer(loop);
  const std::function<void()> write_later = [&] {
    timer.expires_after(interval);
    timer.async_wait([&](error_code) {
      try {
        write();
      } catch (const std::exception& error) {
        log::write(log::Level::warn, error.what());
      }
      write_later();
    });
  };
  write_later();
  run_until_asked(loop);
  // A link to it is the user's, and stays.
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::canonical(file, ignored), ignored);
}

}  // namespace

void add_metrics_command(CLI::App& app) {
  CLI::App* metrics = app.add_subcommand(
      "metrics", "Show the running jobs of this machine to Prometheus: yours, or as root all users'");
  const auto options = std::make_shared<MetricsOptions>();
  CLI::Option* listen =
      metrics
          ->add_option("--listen", options->listen, "Answer HTTP at this address (default: 127.0.0.1:9499)")
          ->type_name("ADDRESS");
  CLI::Option* textfile =
      metrics
          ->add_option("--textfile", options->textfile,
                       "Write them to this file once, for node_exporter's textfile collector")
          ->type_name("FILE");
  metrics->add_option("--interval", options->interval, "Write it again every so many seconds")
      ->type_name("SECONDS")
      ->needs(textfile)
      ->check(CLI::Range(1, 86400));
  refuse_empty(textfile)->excludes(listen);
  metrics->callback([options] {
    if (!options->textfile.empty()) {
      write_textfile(options->textfile, std::chrono::seconds(options->interval));
    } else {
      serve(options->listen.empty() ? "127.0.0.1" : options->listen);
    }
  });
}

}  // namespace acc::launcher

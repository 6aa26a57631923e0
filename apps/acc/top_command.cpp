// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/detached_thread.hpp"
#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/cli/dialog.hpp"
#include "acc/cli/raw_terminal.hpp"
#include "acc/control/job_file.hpp"
#include "acc/top/top_screen.hpp"
#include "acc/top/top_state.hpp"
#include "commands.hpp"
#include "replace_process.hpp"
#include "running_jobs.hpp"

namespace acc::launcher {
namespace {

using std::chrono::milliseconds;

struct TopOptions {
  std::string filter = {};
  double interval = 1;
};

// Reads the jobs again and again in a thread of its own: one that does not answer takes seconds, and the
// screen goes on.
class TopReader {
 public:
  explicit TopReader(milliseconds interval) : shared_(std::make_shared<Shared>()) {
    start_detached([shared = shared_, interval] { read_until_ended(*shared, interval); });
  }
  ~TopReader() {
    {
      const std::scoped_lock lock(shared_->mutex);
      shared_->has_ended = true;
    }
    shared_->changed.notify_all();
  }
  TopReader(const TopReader&) = delete;
  TopReader& operator=(const TopReader&) = delete;

  /// Can be read when there is a new reading.
  int descriptor() const { return shared_->arrived.get(); }

  /// The past of this rank is read, too, from now on; absent: of none.
  void read_past(const std::optional<RankId>& rank) {
    const std::scoped_lock lock(shared_->mutex);
    if (std::exchange(shared_->rank_of_past, rank) == rank) return;
    shared_->has_changed = true;
    shared_->changed.notify_all();
  }

  /// The newest, if there is one since the last call.
  std::optional<TopReading> take() {
    const std::scoped_lock lock(shared_->mutex);
    eventfd_t ignored = 0;
    ::eventfd_read(shared_->arrived.get(), &ignored);
    return std::exchange(shared_->reading, std::nullopt);
  }

 private:
  struct Shared {
    std::mutex mutex = {};
    std::condition_variable changed = {};
    bool has_ended = false;
    /// What is to be read is another than before.
    bool has_changed = false;
    std::optional<RankId> rank_of_past = {};
    std::optional<TopReading> reading = {};
    Descriptor arrived = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  };

  static void read_until_ended(Shared& shared, milliseconds interval) {
    RateWindow rates;
    ProcessTable before = ProcessTable::read();
    auto measured = std::chrono::steady_clock::now();
    FoundJobs jobs;
    TopReading reading;
    std::unique_lock lock(shared.mutex);
    while (!shared.has_ended) {
      const std::optional<RankId> rank_of_past = shared.rank_of_past;
      // Another rank is selected: the jobs were just asked.
      const bool asks_past_alone = std::exchange(shared.has_changed, false);
      lock.unlock();
      if (!asks_past_alone) {
        // All are asked at once, and those that answer do so at once.
        jobs = find_jobs(runtime_folders(Environment::of_process(), ::geteuid()));
        const auto request_time = std::chrono::steady_clock::now();
        const auto asked_at = std::chrono::system_clock::now();
        ask_anew(jobs.running);
        ProcessTable now = ProcessTable::read();
        const auto time = std::chrono::steady_clock::now();
        std::vector<JobUsage> usage =
            usage_of(jobs.running, before, now, std::chrono::duration_cast<milliseconds>(time - measured));
        before = std::move(now);
        measured = time;
        read_other_nodes(jobs.running, usage);
        rates.observe(usage, request_time);
        reading = reading_of(usage, jobs.silent, rates, asked_at);
      }
      reading.past = rank_of_past ? std::optional(past_of(jobs.running, *rank_of_past)) : std::nullopt;
      lock.lock();
      shared.reading = reading;
      ::eventfd_write(shared.arrived.get(), 1);
      const auto next = measured + interval;
      shared.changed.wait_until(lock, next, [&] { return shared.has_ended || shared.has_changed; });
    }
  }

  static RankPast past_of(std::vector<RunningJob>& jobs, const RankId& rank) {
    for (RunningJob& job : jobs) {
      if (job.view.id == rank.job) return {.rank = rank, .history = ask_history(job, rank.rank)};
    }
    return {.rank = rank};
  }

  std::shared_ptr<Shared> shared_;
};

struct Command {
  std::string file = {};
  std::vector<std::string> words = {};
};

// Becomes the command, which ends when this program does.
[[noreturn]] void become(const Command& command, const std::vector<char*>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::signal(SIGINT, SIG_DFL);
  replace_process(command.file.c_str(), words.data());
  constexpr int kNotStarted = 127;
  ::_exit(kNotStarted);
}

// Runs a command in the terminal, where Ctrl-C is for it alone.
void run_in_terminal(const Command& command) {
  const std::vector<char*> words = pointers_to(command.words);
  struct sigaction ignored = {};
  struct sigaction before = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignored, &before);
  const pid_t process = ::fork();
  if (process == 0) become(command, words);
  int status = 0;
  while (process > 0 && ::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ::sigaction(SIGINT, &before, nullptr);
}

Command command_for(const TopAction& action) {
  const auto acc = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "acc");
    words.push_back(action.job);
    return Command{"/proc/self/exe", std::move(words)};
  };
  switch (action.kind) {
    case TopAction::Kind::logs:
      return action.rank ? acc({"logs", "-f", "--rank", std::to_string(*action.rank)}) : acc({"logs", "-f"});
    case TopAction::Kind::stacks:
      return acc({"ps", "--stacks"});
    case TopAction::Kind::stop:
      return acc({"stop"});
    case TopAction::Kind::debug:
      return {"gdb", {"gdb", "-p", std::to_string(action.pid)}};
    case TopAction::Kind::quit:
      break;
  }
  return {};
}

// With the terminal as it was before, until the user has read what it wrote.
void perform(const TopAction& action) {
  const Command command = command_for(action);
  if (command.file == "gdb" && find_program("gdb", Environment::of_process()).empty()) {
    fmt::print("gdb is not on PATH\n");
  } else {
    run_in_terminal(command);
  }
  fmt::print("acc top: press any key to go back\n");
  std::fflush(stdout);
  const RawTerminal terminal(STDIN_FILENO, STDOUT_FILENO);
  try {
    Key key = terminal.next_key().key;
    while (key == Key::resized || key == Key::continued) key = terminal.next_key().key;
  } catch (const Interrupted&) {  // NOLINT: also a key
  }
}

// Draws until the user asks for something.
TopAction show_until_asked(TopState& state, TopReader& reader, TopStyle style) {
  const RawTerminal terminal(STDIN_FILENO, STDOUT_FILENO, RawTerminal::Area::whole_screen);
  for (;;) {
    style.columns = terminal.columns();
    style.rows = terminal.rows();
    terminal.write(draw(state, style));
    const std::optional<KeyPress> press = terminal.next_key_or(reader.descriptor());
    if (press) {
      if (const auto action = state.press(*press, table_lines(style.rows, state.shows_past())))
        return *action;
      reader.read_past(state.rank_of_past());
    } else if (auto reading = reader.take()) {
      state.show(std::move(*reading));
      reader.read_past(state.rank_of_past());
    }
  }
}

// A range lets it through.
std::string refuse_nan(const std::string& text) {
  const auto number = parse_number(text);
  return number && std::isnan(*number) ? "is not a number" : "";
}

void require_terminal(const Environment& environment) {
  const std::string hint = "acc ps shows the same once, acc ps --json for programs";
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    throw Error({.what = "needs a terminal", .where = "acc top", .hint = hint});
  if (environment.get("TERM", "dumb") == "dumb")
    throw Error({.what = "needs a terminal that can move its cursor", .where = "TERM=dumb", .hint = hint});
}

void watch_jobs(const TopOptions& options) {
  const Environment environment = Environment::of_process();
  require_terminal(environment);
  const TopStyle style{.color = environment.get("NO_COLOR").empty(), .host = host_name()};
  TopState state(options.filter);
  TopReader reader(to_milliseconds(options.interval));
  try {
    for (;;) {
      const TopAction action = show_until_asked(state, reader, style);
      if (action.kind == TopAction::Kind::quit) return;
      perform(action);
    }
  } catch (const Interrupted&) {  // NOLINT: Ctrl-C ends it as q does
  }
}

}  // namespace

void add_top_command(CLI::App& app) {
  CLI::App* top = app.add_subcommand(
      "top", "Show the running jobs in the terminal as they go on: who is slow, who waits for whom");
  const auto options = std::make_shared<TopOptions>();
  top->add_option("FILTER", options->filter,
                  "Show only what contains this text: a job's id, its command, ...");
  top->add_option("--interval", options->interval, "Look again after so many seconds (default: 1)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0) & CLI::Validator(refuse_nan, ""));
  top->callback([options] { watch_jobs(*options); });
}

}  // namespace acc::launcher

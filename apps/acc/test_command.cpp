// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/program.hpp"
#include "commands.hpp"
#include "launch_command.hpp"
#include "plain_test.hpp"
#include "test_page_file.hpp"
#include "version.hpp"

namespace acc::launcher {
namespace {

// The dynamic linker ends a program with this code when a library is missing or cannot be read; so does a
// shell that finds no program.
constexpr int kNotLoaded = 127;

struct TestOptions {
  bool nodes = false;
  bool json = false;
  std::filesystem::path html = {};
  double time_limit = 60;
  /// The flags for acc launch.
  std::vector<std::string> others = {};
};

double to_seconds(const std::string& text) {
  const auto seconds = parse_number(text);
  if (!seconds || *seconds <= 0) {
    throw Error({.what = "must be a positive number of seconds", .where = "--time-limit " + text});
  }
  return *seconds;
}

// A flag of `acc test` itself.
struct TestFlag {
  std::string_view name;
  /// What its value is; empty: it has none.
  std::string_view value;
  /// For the man page and completion.
  std::string_view summary;
  std::string_view help;
  void (*set)(TestOptions& options, const std::string& value);

  std::string synopsis() const { return fmt::format("{}{}{}", name, value.empty() ? "" : " ", value); }
};

std::string page_named(const std::string& value) {
  if (value.empty() || value.starts_with("--"))
    throw Error(
        {.what = "needs the name of a file", .where = "--html " + value, .hint = "as in --html test.html"});
  return value;
}

constexpr std::array kTestFlags = {
    TestFlag{"--nodes", "", "Only check the nodes and the network between them",
             "only check the nodes and the network between them: devices, memory, disk, clocks, names, "
             "connections and bandwidth; exits 1 and says what to do if something is wrong",
             [](TestOptions& options, const std::string&) { options.nodes = true; }},
    TestFlag{"--json", "", "What it found, as JSON on standard output",
             "what it found, as one JSON object on standard output",
             [](TestOptions& options, const std::string&) { options.json = true; }},
    TestFlag{"--html", "FILE", "What it found, as a page of HTML",
             "what it found, as one page of HTML: links as matrices, all-reduces beside the speed of memory, "
             "outliers; of several nodes the first writes it",
             [](TestOptions& options, const std::string& value) { options.html = page_named(value); }},
    TestFlag{"--time-limit", "SECONDS", "Seconds of each step of the training test",
             "of each step, 60 by default; then it names the rank that is missing and ends",
             [](TestOptions& options, const std::string& value) { options.time_limit = to_seconds(value); }}};

std::string help_text() {
  constexpr std::size_t kIndent = 24;
  constexpr std::size_t kWidth = 107;
  std::string usage = "usage: acc test";
  std::string entries;
  for (const TestFlag& flag : kTestFlags) {
    usage += fmt::format(" [{}]", flag.synopsis());
    entries += fmt::format("{:<{}}{}\n", "  " + flag.synopsis(), kIndent, wrap(flag.help, kIndent, kWidth));
  }
  return usage +
         " [--config_file FILE] [options of acc launch]\n\n"
         "Starts a distributed sanity program with the config: checks what a training needs, measures every\n"
         "pair of processes, all-reduces and each rank's speed, and names the outlier. Exits 0 when all "
         "checks\n"
         "passed with the configured number of processes.\n\n" +
         entries;
}

TestOptions read_options(const std::vector<std::string>& words) {
  TestOptions options;
  for (auto word = words.begin(); word != words.end(); ++word) {
    const std::size_t equals = word->find('=');
    const bool joined = equals != std::string::npos;
    const auto* const flag =
        std::ranges::find(kTestFlags, std::string_view(*word).substr(0, equals), &TestFlag::name);
    if (flag == kTestFlags.end() || (joined && flag->value.empty())) {
      options.others.push_back(*word);
    } else if (joined) {
      flag->set(options, word->substr(equals + 1));
    } else if (flag->value.empty()) {
      flag->set(options, "");
    } else {
      if (std::next(word) == words.end()) throw Error({.what = "expected one argument", .where = *word});
      flag->set(options, *++word);
    }
  }
  return options;
}

// A hanging rank does not end on SIGTERM, and only the launcher notices one that hangs before its first
// step. The flags of the user come later and take precedence.
std::vector<std::string> with_limits(const TestOptions& options) {
  std::vector<std::string> words = {
      "--shutdown-timeout", "2",    "--max-restarts", "0",
      "--on-hang",          "kill", "--hang-timeout", fmt::format("{:g}", 2 * options.time_limit + 10)};
  words.insert(words.end(), options.others.begin(), options.others.end());
  return words;
}

int requested_processes(const LaunchPlan& plan) {
  const auto requested = plan.settings[key::num_processes];
  const auto* number = requested ? std::get_if<std::int64_t>(&*requested) : nullptr;
  if (number != nullptr) return static_cast<int>(*number);
  return plan.num_machines * plan.nproc_per_node;
}

// Starts no worker, so that what is wrong with the workers of this node does not matter.
int check_nodes(CommandLine command_line, const TestOptions& options) {
  if (!options.html.empty()) {
    throw Error({.what = "shows the training test, not that of --nodes",
                 .where = "--html " + options.html.string(),
                 .hint = "leave one of them out"});
  }
  command_line.program = {(program_folder() / "acc").string()};
  LaunchPlan plan = make_plan(std::move(command_line), Dialect::launch);
  plan.preflight = Preflight::alone;
  plan.preflight_json = options.json;
  plan.problems.clear();
  return start_or_explain(std::move(plan));
}

// Processes open files of this one by its id: on this machine.
void require_visible_files(const LaunchPlan& plan) {
  if (!plan.pid_namespace) return;
  throw Error({.what = "would hide the files of the test from its ranks",
               .where = "--pid-namespace",
               .hint = "leave it out"});
}

std::optional<TestPageFile> make_page(const LaunchPlan& plan, const TestOptions& options) {
  std::optional<TestPageFile> page;
  if (options.html.empty() || plan.settings[key::dry_run]) return page;
  require_visible_files(plan);
  if (plan.delegated)
    throw Error({.what = fmt::format("is not written where {} starts the ranks", plan.worker_command.front()),
                 .where = "--html " + options.html.string(),
                 .hint = "--json prints the results"});
  const bool is_first = plan.settings[key::machine_rank] == 0;
  page.emplace(options.html, is_first);
  return page;
}

// Runs the test, and writes the page if there is to be one. Returns the exit code of the test.
int run_with_page(LaunchPlan plan, const std::optional<TestPageFile>& page) {
  if (!page) return start_or_explain(std::move(plan));
  plan.event_copy = page->events_path();
  const int code = start(std::move(plan));
  return page->write(code);
}

// Without acc-selftest, as in the wheel: what can be tested without libacc.
int run_plain_test(CommandLine command_line, const TestOptions& options) {
  command_line.program = {(program_folder() / "acc").string()};
  const LaunchPlan plan = make_plan(command_line, Dialect::launch);
  const std::optional<TestPageFile> page = make_page(plan, options);
  command_line.program = plain_test(command_line, requested_processes(plan), options.time_limit, options.json,
                                    page ? page->results_path() : std::string());
  return run_with_page(make_plan(std::move(command_line), Dialect::launch), page);
}

// Whether the dynamic linker cannot load the program: it says so in place of the program's help.
bool misses_libraries(const std::filesystem::path& program) {
  const auto output = run_command({program.string(), "--help"}, Environment::of_process(), {});
  return output && output->text.find("shared librar") != std::string::npos;
}

}  // namespace

void describe_test_command(CLI::App& app) {
  CLI::App* test =
      app.add_subcommand("test", "Test distributed training, or the nodes alone, with the config");
  for (const TestFlag& flag : kTestFlags) {
    const std::string name(flag.name);
    CLI::Option* option = flag.value.empty() ? test->add_flag(name) : test->add_option(name);
    option->description(std::string(flag.summary));
  }
}

int test_command(const std::vector<std::string>& words) {
  constexpr std::size_t kWorkerWords = 6;
  if (words.size() == kWorkerWords && words[0] == kPlainTestWorker)
    return plain_test_worker({words.begin() + 1, words.end()});
  const TestOptions options = read_options(words);
  CommandLine command_line = parse_command_line(with_limits(options), Dialect::launch);
  if (command_line.version) {
    fmt::print("{}\n", version_text());
    return 0;
  }
  if (command_line.help) {
    fmt::print("{}", help_text());
    return 0;
  }
  if (!command_line.program.empty()) {
    throw Error({.what = "accepts no program: it runs acc-selftest",
                 .where = "acc test " + command_line.program.front()});
  }
  if (command_line.flags.contains(key::print_script))
    throw Error({.what = "prints scripts for acc launch alone", .where = "--print-script"});
  run_with_srun(command_line, "test", words);
  if (options.nodes) return check_nodes(std::move(command_line), options);
  const auto program = program_folder() / "acc-selftest";
  command_line.program = {program.string()};
  if (kind_of_file(program) != FileKind::executable) return run_plain_test(std::move(command_line), options);
  LaunchPlan plan = make_plan(std::move(command_line), Dialect::launch);
  require_visible_files(plan);
  // Shared memory in which the ranks publish their progress; it ends with this process.
  const Descriptor progress(::memfd_create("acc-test", MFD_CLOEXEC));
  const std::vector<std::string> arguments = {"--expect-processes", fmt::to_string(requested_processes(plan)),
                                              "--time-limit", fmt::format("{:g}", options.time_limit)};
  plan.worker_command.insert(plan.worker_command.end(), arguments.begin(), arguments.end());
  // Another machine may have another process of this id, whose file that would be.
  if (!plan.delegated) {
    plan.worker_command.emplace_back("--progress-file");
    plan.worker_command.push_back(fmt::format("/proc/{}/fd/{}", ::getpid(), progress.get()));
  }
  if (options.json) plan.worker_command.emplace_back("--json");
  const std::optional<TestPageFile> page = make_page(plan, options);
  if (page) plan.worker_command.insert(plan.worker_command.end(), {"--report-file", page->results_path()});
  const int code = run_with_page(std::move(plan), page);
  if (code == kNotLoaded && misses_libraries(program)) {
    fmt::print(stderr,
               "acc: {}: its libraries cannot be loaded (`ldd {}` names them; where LibTorch is in another "
               "user's folder, build acc with one that you can read: -DLibTorch_ROOT=<folder>)\n",
               program.string(), program.string());
  }
  return code;
}

}  // namespace acc::launcher

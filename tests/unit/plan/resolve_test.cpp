// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/resolve.hpp"

#include "acc/plan/worker_environment.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/inputs.hpp"

namespace resolve_test {

using acc::Environment;
using acc::launcher::Dialect;
using acc::launcher::expected_round;
using acc::launcher::LaunchInputs;
using acc::launcher::LaunchPlan;
using acc::launcher::resolve;
using acc::launcher::Streams;
using acc::launcher::worker_environment;
using acc::test::error_of;
using acc::test::inputs;
namespace key = acc::launcher::key;

namespace {

std::string resolve_error(const std::vector<std::string>& words, Dialect dialect = Dialect::launch) {
  return error_of([&] { resolve(inputs(words, dialect)); });
}

}  // namespace

TEST_CASE("resolve: torchrun's rules run Python unbuffered, accelerate's plain jobs do not", "[plan]") {
  CHECK(resolve(inputs({"train.py"}, Dialect::torchrun)).worker_command ==
        std::vector<std::string>{"/usr/bin/python3", "-u", "train.py"});
  CHECK(resolve(inputs({"train.py"})).worker_command ==
        std::vector<std::string>{"/usr/bin/python3", "train.py"});
}

TEST_CASE("resolve: torchrun's rules add nothing of accelerate's", "[plan]") {
  CHECK(resolve(inputs({"train.py"}, Dialect::torchrun)).environment.empty());
}

TEST_CASE("resolve: a program that cannot be started is a problem of the plan, for a dry run to show",
          "[plan]") {
  const LaunchPlan plan = resolve(inputs({"missing.py"}));
  REQUIRE(plan.problems.size() == 1);
  CHECK(plan.problems[0].where == "missing.py");
}

TEST_CASE("resolve: output and limits are taken from their flags", "[plan]") {
  const LaunchPlan plan =
      resolve(inputs({"--tee", "0:1", "-r", "2", "--log-dir", "logs", "--local-ranks-filter", "1",
                      "--max-restarts", "3", "--shutdown-timeout", "0.5", "--pid-namespace", "train.py"},
                     Dialect::torchrun));
  CHECK(plan.output.tee.streams_of(0) == Streams::out);
  CHECK(plan.output.redirects.streams_of(5) == Streams::err);
  CHECK(plan.output.log_dir == "logs");
  CHECK(plan.output.local_ranks_filter == std::vector<int>{1});
  CHECK(plan.max_restarts == 3);
  CHECK(plan.shutdown_timeout == std::chrono::milliseconds(500));
  CHECK(plan.pid_namespace);
  CHECK(resolve(inputs({"--log-dir", "/dev/null", "train.py"})).output.no_logs);
}

TEST_CASE("resolve: a hang is watched for when a time is given", "[plan]") {
  CHECK(resolve(inputs({"train.py"})).hang == acc::launcher::HangPlan{});
  const LaunchPlan plan =
      resolve(inputs({"--hang-timeout", "2.5", "--on-hang=restart", "--hang_watch", "output", "train.py"},
                     Dialect::torchrun));
  CHECK(plan.hang == acc::launcher::HangPlan{std::chrono::milliseconds(2500), acc::launcher::OnHang::restart,
                                             acc::launcher::ActivityKind::output});
  CHECK(plan.output.observed);
  CHECK(error_of([] { resolve(inputs({"--on-hang", "kill", "train.py"})); }) ==
        "--on-hang: needs a hang timeout (--hang-timeout SECONDS)");
  CHECK(error_of([] { resolve(inputs({"--hang-watch", "progress", "train.py"})); }) ==
        "--hang-watch: needs a hang timeout (--hang-timeout SECONDS)");
  CHECK(error_of([] { resolve(inputs({"--hang-timeout", "-1", "train.py"})); }) ==
        "--hang-timeout: must be a number of seconds, or 0 for never");
}

TEST_CASE("resolve: a time below a millisecond is not none", "[plan]") {
  const LaunchPlan plan = resolve(inputs({"--hang-timeout", "0.0004", "--on-hang", "kill", "--min-uptime",
                                          "0.0001", "--node-timeout", "1e-9", "train.py"}));
  CHECK(plan.hang.timeout == std::chrono::milliseconds(1));
  CHECK(plan.min_uptime == std::chrono::milliseconds(1));
  CHECK(plan.rendezvous.node_timeout == std::chrono::milliseconds(1));
}

TEST_CASE("resolve: the prefix of lines is the flag's, else that of torchrun's variable", "[plan]") {
  LaunchInputs launch_inputs =
      inputs({"--log-line-prefix-template", "$rank|", "train.py"}, Dialect::torchrun);
  launch_inputs.environment.set("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "${rank}>");
  CHECK(resolve(launch_inputs).output.line_prefix_template == "$rank|");
  launch_inputs.command_line = acc::launcher::parse_command_line({"train.py"}, Dialect::torchrun);
  const LaunchPlan plan = resolve(launch_inputs);
  CHECK(plan.output.line_prefix_template == "${rank}>");
  CHECK(plan.settings.setting(key::log_line_prefix_template).origin ==
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  CHECK(resolve(inputs({"train.py"})).output.line_prefix_template == "[${role_name}${local_rank}]:");
}

TEST_CASE("resolve: a filter that no rank of the job passes is refused, or noted where torchrun takes it",
          "[plan]") {
  const auto plan_of = [](const char* flag, const char* ranks) {
    return resolve(inputs({flag, ranks, "--nproc-per-node", "2", "train.py"}, Dialect::torchrun));
  };
  CHECK(error_of([&] { plan_of("--ranks-filter", "9"); }) ==
        "--ranks-filter: there is no rank 9: the job has 2 workers");
  CHECK(plan_of("--ranks-filter", "1-9").notes.empty());
  CHECK(plan_of("--local-ranks-filter", "9").notes ==
        std::vector<std::string>{
            "--local-ranks-filter: there is no rank 9: the job has 2 workers, and the console shows none"});
  CHECK_NOTHROW(resolve(inputs({"--ranks-filter", "9", "--nnodes", "2", "--master-addr", "node0", "train.py"},
                               Dialect::torchrun)));
}

TEST_CASE("resolve: filters of ranks and lines", "[plan]") {
  const acc::launcher::OutputPlan output =
      resolve(inputs({"--ranks-filter", "0-1", "--duplicate-stdout-filters", "a,b",
                      "--duplicate-stderr-filters", "c", "--log-timestamps", "train.py"},
                     Dialect::torchrun))
          .output;
  CHECK(output.ranks_filter == std::vector<int>{0, 1});
  CHECK(output.duplicate_stdout_filters == std::vector<std::string>{"a", "b"});
  CHECK(output.duplicate_stderr_filters == std::vector<std::string>{"c"});
  CHECK(output.log_timestamps);
}

TEST_CASE("resolve: the file timer is torchrun's, by its variables", "[plan]") {
  LaunchInputs launch_inputs = inputs({"train.py"}, Dialect::torchrun);
  launch_inputs.environment.set("TORCHELASTIC_ENABLE_FILE_TIMER", "1");
  CHECK(resolve(launch_inputs).timer_file == "/tmp/watchdog_timer_random");
  launch_inputs.temporary_folder = "/scratch";
  CHECK(resolve(launch_inputs).timer_file == "/scratch/watchdog_timer_random");
  launch_inputs.environment.set("TORCHELASTIC_TIMER_FILE", "/run/timer");
  CHECK(resolve(launch_inputs).timer_file == "/run/timer");
  launch_inputs.environment.set("TORCHELASTIC_ENABLE_FILE_TIMER", "true");
  CHECK(resolve(launch_inputs).timer_file.empty());
}

TEST_CASE("resolve: events go to a file, to the console, or nowhere", "[plan]") {
  const auto plan_of = [](std::vector<std::string> words) {
    words.emplace_back("train.py");
    return resolve(inputs(words, Dialect::torchrun));
  };
  CHECK(plan_of({}).event_log.empty());
  CHECK_FALSE(plan_of({"--event-log-handler", "dynamic_rendezvous"}).events_on_console);
  CHECK(plan_of({"--event-log-handler", "console"}).events_on_console);
  CHECK(plan_of({"--event-log", "e.jsonl"}).event_log == "e.jsonl");
  const LaunchPlan shortened = plan_of({"--event-log", "console"});
  CHECK(shortened.events_on_console);
  CHECK(shortened.event_log.empty());
  CHECK(resolve_error({"--event-log-handler", "bogus", "train.py"})
            .starts_with("--event-log-handler: 'bogus' is not a handler of events (null, console"));
}

TEST_CASE("resolve: an empty name of a log or of a Python is refused", "[plan]") {
  CHECK(resolve_error({"--event-log", "", "train.py"}) == "--event-log: is empty (name a file)");
  CHECK(resolve_error({"--event_log=", "train.py"}, Dialect::torchrun) ==
        "--event_log: is empty (name a file)");
  CHECK(resolve_error({"--log-file", "", "train.py"}) == "--log-file: is empty (name a file)");
  CHECK(resolve_error({"--python", "", "train.py"}) == "--python: is empty (name a Python)");
}

TEST_CASE("resolve: GPUs are queried only if they matter", "[plan]") {
  const auto needs = [](const acc::launcher::LaunchInputs& launch_inputs) {
    return needs_gpus(launch_inputs.dialect, acc::launcher::Settings(launch_inputs));
  };
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"--nproc-per-node", "gpu"}, Words{"--nproc-per-node", " auto"},
                             Words{"--isolate-gpus"}, Words{"--numa-binding", "node"}}) {
    CHECK(needs(inputs(words, Dialect::torchrun)));
  }
  LaunchInputs by_variable = inputs({"train.py"}, Dialect::torchrun);
  by_variable.environment.set("PET_NPROC_PER_NODE", "gpu");
  CHECK(needs(by_variable));
  CHECK(needs(inputs({"--num_processes", "2", "train.py"})));
  CHECK_FALSE(needs(inputs({"--cpu", "train.py"})));

  for (const Words& words : {Words{"train.py"}, Words{"--nproc-per-node", "2", "train.py"},
                             Words{"--nproc-per-node", "cpu", "train.py"},
                             Words{"--nproc-per-node", "2", "--virtual-local-rank", "train.py"}}) {
    REQUIRE_FALSE(needs(inputs(words, Dialect::torchrun)));
    const LaunchPlan on_gpus = resolve(inputs(words, Dialect::torchrun, 8));
    const LaunchPlan on_cpus = resolve(inputs(words, Dialect::torchrun));
    CHECK(on_gpus == on_cpus);
  }
}

TEST_CASE("resolve: virtual local ranks divide the visible devices", "[plan]") {
  LaunchInputs launch_inputs =
      inputs({"--virtual-local-rank", "--nproc-per-node", "2", "train.py"}, Dialect::torchrun);
  CHECK(resolve(launch_inputs).device_of_rank == std::vector<std::string>{"0", "1"});
  launch_inputs.environment.set("CUDA_VISIBLE_DEVICES", "4, 7");
  CHECK(resolve(launch_inputs).device_of_rank == std::vector<std::string>{"4", "7"});
  launch_inputs.environment.set("CUDA_VISIBLE_DEVICES", "4");
  CHECK(error_of([&] {
          resolve(launch_inputs);
        }).starts_with("--virtual-local-rank: 2 workers, but CUDA_VISIBLE_DEVICES='4'"));
}

TEST_CASE("resolve: HIP_VISIBLE_DEVICES comes before CUDA_VISIBLE_DEVICES, and workers get both", "[plan]") {
  for (const char* flag : {"--virtual-local-rank", "--isolate-gpus"}) {
    LaunchInputs launch_inputs = inputs({flag, "--nproc-per-node", "2", "train.py"}, Dialect::torchrun, 8);
    launch_inputs.environment.set("CUDA_VISIBLE_DEVICES", "0,1");
    launch_inputs.environment.set("HIP_VISIBLE_DEVICES", "4,5");
    const LaunchPlan plan = resolve(launch_inputs);
    const Environment second = worker_environment(plan, 1, {.round = expected_round(plan)});
    CHECK(second.get("HIP_VISIBLE_DEVICES") == "5");
    CHECK(second.get("CUDA_VISIBLE_DEVICES") == "5");
    launch_inputs.environment.set("HIP_VISIBLE_DEVICES", "");
    const LaunchPlan empty = resolve(launch_inputs);
    CHECK_FALSE(
        worker_environment(empty, 0, {.round = expected_round(empty)}).contains("HIP_VISIBLE_DEVICES"));
    launch_inputs.environment.set("HIP_VISIBLE_DEVICES", "4");
    CHECK(error_of([&] {
            resolve(launch_inputs);
          }).starts_with(std::string(flag) + ": 2 workers, but HIP_VISIBLE_DEVICES='4'"));
  }
}

TEST_CASE("resolve: gpu_ids select of the devices in HIP_VISIBLE_DEVICES, too", "[plan]") {
  for (const char* flag : {"--virtual-local-rank", "--isolate-gpus"}) {
    LaunchInputs launch_inputs =
        inputs({flag, "--gpu_ids", "2,0", "--num_processes", "2", "train.py"}, Dialect::launch, 8);
    launch_inputs.environment.set("HIP_VISIBLE_DEVICES", "4,5,6");
    const LaunchPlan plan = resolve(launch_inputs);
    CHECK(plan.device_of_rank == std::vector<std::string>{"6", "4"});
    const Environment first = worker_environment(plan, 0, {.round = expected_round(plan)});
    CHECK(first.get("HIP_VISIBLE_DEVICES") == "6");
    CHECK(first.get("CUDA_VISIBLE_DEVICES") == "6");
    launch_inputs.environment.set("HIP_VISIBLE_DEVICES", "4");
    CHECK(error_of([&] {
            resolve(launch_inputs);
          }).starts_with("--gpu_ids: there is no device 2 in HIP_VISIBLE_DEVICES='4', which acc inherited"));
  }
}

TEST_CASE("resolve: a name that the prefix template does not know is noted", "[plan]") {
  const auto notes = [](const std::string& line_template) {
    return resolve(inputs({"--log-line-prefix-template", line_template, "train.py"}, Dialect::torchrun))
        .notes;
  };
  CHECK(notes("${hostname}:${rank}: ").empty());
  REQUIRE(notes("${node}: ").size() == 1);
  CHECK(notes("${node}: ")
            .front()
            .starts_with("--log-line-prefix-template: ${node} is not a name that it knows"));
}

TEST_CASE("resolve: isolated workers see one GPU each, of those that gpu_ids select", "[plan]") {
  using Devices = std::vector<std::string>;
  const std::vector<std::string> words = {"--isolate-gpus", "--num_processes", "2", "train.py"};
  CHECK(resolve(inputs(words, Dialect::launch, 4)).device_of_rank == Devices{"0", "1"});
  CHECK_FALSE(resolve(inputs(words, Dialect::launch, 4)).virtual_local_rank);
  LaunchInputs launch_inputs =
      inputs({"--isolate-gpus", "--gpu_ids", "2,0", "--num_processes", "2", "train.py"}, Dialect::launch, 4);
  CHECK(resolve(launch_inputs).device_of_rank == Devices{"2", "0"});
  launch_inputs.environment.set("CUDA_VISIBLE_DEVICES", "3,2,1");
  CHECK(resolve(launch_inputs).device_of_rank == Devices{"1", "3"});
  CHECK(resolve(launch_inputs).environment.get("CUDA_VISIBLE_DEVICES") == "1,3");
  CHECK(error_of([&] {
          resolve(inputs(words, Dialect::launch, 1));
        }).starts_with("--isolate-gpus: 2 workers, "));
}

TEST_CASE("resolve: torch.distributed.launch's scripts get their local rank before their own arguments",
          "[plan]") {
  const auto command = [](std::vector<std::string> words) {
    words.insert(words.begin(), "--legacy-launch");
    const LaunchPlan plan = resolve(inputs(words, Dialect::torchrun));
    return acc::launcher::worker_command(plan, 1);
  };
  using Words = std::vector<std::string>;
  CHECK(command({"train.py", "u"}) == Words{"/usr/bin/python3", "-u", "train.py", "--local-rank=1", "u"});
  CHECK(command({"-m", "train", "u"}) ==
        Words{"/usr/bin/python3", "-u", "-m", "train", "--local-rank=1", "u"});
  CHECK(command({"train.py"}) == Words{"/usr/bin/python3", "-u", "train.py", "--local-rank=1"});
  CHECK(command({"--use-env", "train.py"}) == Words{"/usr/bin/python3", "-u", "train.py"});
  CHECK(resolve_error({"--legacy-launch", "--no-python", "./a.out"}, Dialect::torchrun)
            .starts_with("--no-python: --legacy-launch passes --local-rank to Python programs only"));
  CHECK(resolve_error({"--use-env", "train.py"}) == "--use-env: is valid only with --legacy-launch");
}

TEST_CASE("resolve: --run-path is a Python file, whatever else is given", "[plan]") {
  const LaunchPlan plan =
      resolve(inputs({"--run-path", "-m", "--no-python", "./a.out", "q"}, Dialect::torchrun));
  CHECK(plan.worker_command == std::vector<std::string>{"/usr/bin/python3", "-u", "./a.out", "q"});
  CHECK(plan.notes ==
        std::vector<std::string>{
            "--run-path: each worker is a separate Python process that runs the file; nothing is forked"});
}

TEST_CASE("resolve: the signals that end a job are those four and the given ones", "[plan]") {
  const LaunchPlan plan = resolve(inputs({"--signals-to-handle", "SIGUSR1", "train.py"}, Dialect::torchrun));
  CHECK(plan.stop_signals == std::set<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1});
  CHECK(plan.signals_to_handle == "SIGUSR1");
}

TEST_CASE("resolve: a usage error is not restarted, unless it is listed", "[plan]") {
  const acc::launcher::FailureKinds mistakes = {.exit_codes = {2, 126, 127}};
  CHECK(resolve(inputs({"train.py"})).retry_on == acc::launcher::RetryOn{.excluded = mistakes});
  const LaunchPlan plan =
      resolve(inputs({"--retry-on", "all", "--min-uptime", "1.5", "train.py"}, Dialect::torchrun));
  CHECK(plan.retry_on == acc::launcher::RetryOn{});
  CHECK(plan.min_uptime == std::chrono::milliseconds(1500));
  CHECK(resolve(inputs({"train.py"})).min_uptime == std::chrono::milliseconds(0));
}

TEST_CASE("resolve: restarts without progress end the job if that is asked for", "[plan]") {
  CHECK(resolve(inputs({"train.py"})).restarts_without_progress == 0);
  CHECK(resolve(inputs({"--restarts-without-progress", "3", "train.py"})).restarts_without_progress == 3);
  LaunchInputs launch_inputs = inputs({"train.py"});
  launch_inputs.environment.set("ACC_RESTARTS_WITHOUT_PROGRESS", "2");
  CHECK(resolve(launch_inputs).restarts_without_progress == 2);
  CHECK(resolve(inputs({"--max-restarts", "2", "--restarts-without-progress", "2", "train.py"})).notes ==
        std::vector<std::string>{
            "--restarts-without-progress has no effect: there are no more restarts than 2 (--max-restarts)"});
  CHECK(
      resolve(inputs({"--max-restarts", "3", "--restarts-without-progress", "2", "train.py"})).notes.empty());
  launch_inputs.environment.set("ACC_RESTARTS_WITHOUT_PROGRESS", "0");
  CHECK(resolve(launch_inputs).restarts_without_progress == 0);
  CHECK(resolve_error({"--restarts-without-progress", "-1", "train.py"}) ==
        "--restarts-without-progress: must be a non-negative number");
  CHECK(resolve_error({"--restarts-without-progress", "1", "--nnodes", "2", "--rdzv-backend", "c10d",
                       "--rdzv-endpoint", "/shared/file", "--rdzv-conf", "store_type=file", "train.py"},
                      Dialect::torchrun)
            .starts_with("--restarts-without-progress: no node decides on restarts"));
}

TEST_CASE("resolve: contradictions are refused with the flag", "[plan]") {
  CHECK(resolve_error({"--num_processes", "1"})
            .starts_with("the following arguments are required: training_script"));
  CHECK(resolve_error({"-m", "--no_python", "x"}).starts_with("-m and --no_python exclude each other"));
  CHECK(resolve_error({"--max-restarts", "-1", "train.py"}) ==
        "--max-restarts: must be a non-negative number");
  CHECK(resolve_error({"--monitor-interval", "0", "train.py"}) ==
        "--monitor-interval: must be a positive number of seconds");
  CHECK(resolve_error({"--logs-specs", "mine", "train.py"})
            .starts_with("--logs-specs: 'mine' is a Python plug-in, which acc cannot load"));
  CHECK(resolve_error({"--logs-specs", "default", "train.py"}) == "no error");
  CHECK(resolve_error({"--shutdown-timeout", "-1", "train.py"}) ==
        "--shutdown-timeout: must be a non-negative number of seconds");
}

TEST_CASE("resolve: a number that config files may not have is refused with its flag", "[plan]") {
  CHECK(resolve_error({"--num_cpu_threads_per_process", "-3", "train.py"}) ==
        "--num_cpu_threads_per_process: must be at least 1, not -3");
  CHECK(resolve_error({"--num_cpu_threads_per_process", "0", "train.py"}) ==
        "--num_cpu_threads_per_process: must be at least 1, not 0");
  CHECK(resolve_error({"--zero_stage", "9", "train.py"}) == "--zero_stage: must be at most 3, not 9");
  CHECK(resolve_error({"--attach", "-1", "train.py"}) == "--attach: must be at least 0, not -1");
  CHECK(resolve_error({"--gradient_accumulation_steps", "auto", "train.py"}) == "no error");
  // The rendezvous gives the ranks.
  CHECK(resolve_error({"--node-rank", "-1", "--rdzv-backend", "c10d", "train.py"}, Dialect::torchrun) ==
        "no error");
}

TEST_CASE("resolve: torchrun's rules restart every failure, ours not a usage error", "[plan]") {
  const auto worth = [](const std::vector<std::string>& words, Dialect dialect) {
    return resolve(inputs(words, dialect)).retry_on.excluded.exit_codes.empty();
  };
  CHECK(worth({"train.py"}, Dialect::torchrun));
  CHECK_FALSE(worth({"train.py"}, Dialect::launch));
  CHECK_FALSE(worth({"--retry-on", "!2", "train.py"}, Dialect::torchrun));
}

TEST_CASE("resolve: a script that can be read only once is for one start of one worker", "[plan]") {
  const auto problem_with = [](std::vector<std::string> words) {
    words.emplace_back("-");
    const auto problems = resolve(inputs(words, Dialect::torchrun)).problems;
    REQUIRE(problems.size() <= 1);
    return problems.empty() ? std::string() : to_string(problems[0]);
  };
  CHECK(problem_with({}).empty());
  CHECK(problem_with({"--nnodes", "2", "--rdzv-endpoint", "node0:29500"}).empty());
  CHECK(problem_with({"--nproc-per-node", "2", "--max-restarts", "1"}) ==
        "-: can be read only once, but 2 workers need it (write the script into a file)");
  CHECK(problem_with({"--max-restarts", "1"}) ==
        "-: can be read only once, but a restart (--max-restarts) would need it again (write the script into "
        "a file)");
  CHECK(problem_with({"--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "node0:29500"}) ==
        "-: can be read only once, but a node that joins or leaves restarts the workers, which would need it "
        "again (write the script into a file)");
  const auto launched = resolve(inputs({"--max_restarts", "1", "-"}, Dialect::launch)).problems;
  CHECK(launched.size() == 1);
}

TEST_CASE("resolve: temporary files that go elsewhere than expected are noted", "[plan]") {
  using Notes = std::vector<std::string>;
  LaunchInputs launch_inputs = inputs({"train.py"}, Dialect::torchrun);
  launch_inputs.temporary_folder = "/var/tmp";
  CHECK(resolve(launch_inputs).notes == Notes{"/tmp cannot be written: temporary files go to /var/tmp"});
  launch_inputs.environment.set("TMP", "/var/tmp");
  CHECK(resolve(launch_inputs).notes.empty());
  launch_inputs.environment.set("TMPDIR", "/gone");
  CHECK(resolve(launch_inputs).notes ==
        Notes{"TMPDIR (/gone) cannot be written: temporary files go to /var/tmp"});
  launch_inputs.temporary_folder = "/gone";
  CHECK(resolve(launch_inputs).notes.empty());
}

TEST_CASE("resolve: the Python that runs the script is a setting with its origin", "[plan]") {
  const LaunchPlan plan = resolve(inputs({"train.py"}));
  CHECK(plan.settings.setting(key::python) == acc::launcher::Setting{"/usr/bin/python3", "PATH"});
  CHECK(interpreter_text(plan) == "/usr/bin/python3 (PATH)");
  CHECK(interpreter_text(resolve(inputs({"./a.out"}))).empty());
}

TEST_CASE("resolve: a timeout of torchrun for workers in the kernel has a note, if torchrun would use it",
          "[plan]") {
  const auto notes = [](const std::string& value) {
    LaunchInputs launch_inputs = inputs({"train.py"});
    launch_inputs.environment.set("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", value);
    return resolve(launch_inputs).notes;
  };
  const auto on_cpus = resolve(inputs({"train.py"})).notes;
  for (const char* unused : {"", "0", "-1", "soon"}) CHECK(notes(unused) == on_cpus);
  CHECK(notes("2.5").size() == on_cpus.size() + 1);
  CHECK(
      notes("2.5").back() ==
      "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT has no effect: --hang-timeout and --on-hang notice workers "
      "that stand still");
}

TEST_CASE("resolve: TORCH_ELASTIC_SHUTDOWN_TIMEOUT applies without the flag", "[plan]") {
  const auto timeout = [](std::vector<std::string> words, const std::string& variable) {
    words.emplace_back("train.py");
    LaunchInputs launch_inputs = inputs(words, Dialect::torchrun);
    launch_inputs.environment.set("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", variable);
    return resolve(launch_inputs).shutdown_timeout;
  };
  CHECK(timeout({}, "7") == std::chrono::seconds(7));
  CHECK(timeout({"--shutdown-timeout", "3"}, "7") == std::chrono::seconds(3));
  CHECK(error_of([&] { timeout({}, "soon"); }) ==
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT: 'soon' is not a number of seconds");
  CHECK(error_of([&] { timeout({}, "-1"); }) ==
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT: must be a non-negative number of seconds");
}

TEST_CASE("resolve: nodes are checked before their workers start when that is asked for", "[plan]") {
  using acc::launcher::Preflight;
  CHECK(resolve(inputs({"train.py"})).preflight == Preflight::none);
  CHECK(resolve(inputs({"--preflight", "train.py"})).preflight == Preflight::before_workers);
  CHECK(resolve(inputs({"--preflight", "train.py"}, Dialect::torchrun)).preflight ==
        Preflight::before_workers);
}

TEST_CASE("resolve: nodes cannot be checked where a worker or torchrun serves the store", "[plan]") {
  const std::vector<std::string> words = {"--preflight", "--nnodes",        "2",           "--rdzv-backend",
                                          "c10d",        "--rdzv-endpoint", "node0:29400", "train.py"};
  LaunchInputs launch_inputs = inputs(words, Dialect::torchrun);
  CHECK(error_of([&] { resolve(launch_inputs); }) == "no error");
  launch_inputs.environment.set("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
  CHECK(error_of([&] { resolve(launch_inputs); }).starts_with("--preflight: needs a store that acc serves"));
}

}  // namespace resolve_test

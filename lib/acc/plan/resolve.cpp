// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/resolve.hpp"

#include <fmt/format.h>

#include <chrono>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/accelerate_environment.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/deepspeed.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/mpi.hpp"
#include "acc/plan/numa_binding.hpp"
#include "acc/plan/rendezvous.hpp"
#include "acc/plan/streams.hpp"
#include "acc/plan/tpu.hpp"
#include "acc/plan/visible_devices.hpp"

namespace acc {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& hint = "") {
  throw Error({.kind = ErrorKind::usage, .what = what, .where = where, .hint = hint});
}

void choose_program(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan) {
  if (inputs.command_line.program.empty()) {
    fail("", "the following arguments are required: training_script", "as in `acc launch train.py --lr 0.1`");
  }
  const ProgramRequest request{
      .words = inputs.command_line.program,
      .module = settings.truth("module"),
      .no_python = settings.truth("no_python"),
      .python = settings.text("python"),
      .unbuffered = plan.launcher != "simple",
  };
  if (request.module && request.no_python) {
    fail("",
         fmt::format("{} and {} exclude each other", settings.origin("module"), settings.origin("no_python")),
         "give one of them");
  }
  WorkerProgram program = find_program(request, inputs.environment, inputs.file_kind);
  plan.worker_command = std::move(program.command);
  plan.program = std::move(program.file);
  if (program.problem) plan.problems.push_back(*program.problem);
}

OutputPlan plan_output(const Settings& settings) {
  OutputPlan output;
  output.redirects = parse_stream_map(settings.text("redirects"), settings.origin("redirects"));
  output.tee = parse_stream_map(settings.text("tee"), settings.origin("tee"));
  output.local_ranks_filter =
      parse_ranks(settings.text("local_ranks_filter"), settings.origin("local_ranks_filter"));
  output.log_dir = settings.text("log_dir");
  output.no_logs = output.log_dir == "/dev/null";
  return output;
}

void assign_devices(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan) {
  plan.virtual_local_rank = settings.truth("virtual_local_rank");
  const bool isolate = settings.truth("isolate_gpus");
  if (!plan.virtual_local_rank && !isolate) return;
  const auto mask = plan.environment.find("CUDA_VISIBLE_DEVICES");
  // torchrun's flag never asks the machine.
  const auto gpus = isolate ? std::optional(inputs.machine.gpus.size()) : std::nullopt;
  plan.device_of_rank = device_of_each_worker(
      mask ? mask : inputs.environment.find("CUDA_VISIBLE_DEVICES"), gpus, plan.nproc_per_node,
      settings.origin(isolate ? "isolate_gpus" : "virtual_local_rank"));
}

void take_limits(const Settings& settings, LaunchPlan& plan) {
  const std::int64_t restarts = settings.integer("max_restarts");
  if (restarts < 0 || restarts > 1'000'000'000)
    fail(settings.origin("max_restarts"), "must be a number from 0 on");
  plan.max_restarts = static_cast<int>(restarts);
  const double seconds = settings.number("shutdown_timeout");
  if (seconds < 0 || seconds > 1e9)
    fail(settings.origin("shutdown_timeout"), "must be a number of seconds from 0 on");
  plan.shutdown_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// One process of this machine, which is the other launcher.
void delegate(const LaunchInputs& inputs, const JobShape& shape, const Settings& settings, LaunchPlan& plan) {
  OtherLauncher other = shape.launcher == "deepspeed" ? deepspeed_command(inputs, shape, settings)
                        : shape.launcher == "tpu"     ? tpu_command(inputs, settings)
                        : shape.launcher == "tpu-pod"
                            ? tpu_pod_command(inputs, settings)
                            : mpi_command(inputs, shape, settings, plan.worker_command);
  plan.delegated = true;
  plan.worker_command = std::move(other.command);
  plan.program = std::move(other.file);
  if (other.problem) plan.problems.push_back(*other.problem);
  plan.num_machines = 1;
  plan.machine_rank = 0;
  plan.nproc_per_node = 1;
  if (shape.launcher == "deepspeed") plan.deepspeed_env = plan.environment.to_strings();
}

HangPlan plan_hang(const Settings& settings) {
  const double seconds = settings.number("hang_timeout");
  if (seconds < 0 || seconds > 1e9)
    fail(settings.origin("hang_timeout"), "must be a number of seconds, or 0 for never");
  const std::string then = settings.text("on_hang");
  if (seconds == 0 && settings.given("on_hang")) {
    fail(settings.origin("on_hang"), "needs to know when a job counts as hung", "--hang-timeout SECONDS");
  }
  return {.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)),
          .then = then == "kill"      ? OnHang::kill
                  : then == "restart" ? OnHang::restart
                                      : OnHang::report,
          .cpu_counts = settings.text("hang_watch") == "activity"};
}

}  // namespace

LaunchPlan resolve(const LaunchInputs& inputs) {
  Settings settings(inputs);
  const JobShape shape = decide_shape(inputs, settings);
  LaunchPlan plan;
  plan.dialect = inputs.dialect;
  plan.launcher = shape.launcher;
  plan.sets_ranks = shape.sets_ranks;
  plan.nproc_per_node = shape.nproc_per_node;
  plan.num_machines = shape.num_machines;
  plan.machine_rank = shape.machine_rank;
  plan.inherited = inputs.environment;
  plan.role = settings.text("role");
  if (inputs.dialect == Dialect::launch) plan.environment = accelerate_environment(inputs, shape, settings);
  if (shape.distributed_type != "XLA") plan.environment.overlay(thread_environment(inputs, shape, settings));
  plan.notes = shape.notes;
  plan.problems = shape.problems;
  if (shape.distributed_type == "DEEPSPEED") {
    for (Problem& problem : deepspeed_problems(settings)) plan.problems.push_back(std::move(problem));
  }
  choose_program(inputs, settings, plan);
  if (shape.delegated) {
    delegate(inputs, shape, settings, plan);
  } else {
    plan_rendezvous(settings, shape, inputs.random_id, plan);
  }
  take_limits(settings, plan);
  plan.hang = plan_hang(settings);
  plan.output = plan_output(settings);
  plan.output.observed = plan.hang.timeout.count() > 0;
  plan_debugging(inputs, settings, plan);
  assign_devices(inputs, settings, plan);
  plan.cpus_of_rank =
      decide_numa_binding(inputs, settings, plan.environment, plan.nproc_per_node, !shape.use_cpu);
  plan.settings = settings.all();
  return plan;
}

}  // namespace acc

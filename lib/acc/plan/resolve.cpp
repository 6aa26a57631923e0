// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/resolve.hpp"

#include <fmt/format.h>

#include <chrono>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/accelerate_environment.hpp"
#include "acc/plan/debugging.hpp"
#include "acc/plan/job_shape.hpp"
#include "acc/plan/streams.hpp"

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

std::uint16_t parse_port(const Settings& settings, std::string_view name) {
  const std::int64_t port = settings.integer(name);
  if (port < 0 || port > 65535)
    fail(settings.origin(name), fmt::format("{} is not a port", port), "0 to 65535; 0 is a free one");
  return static_cast<std::uint16_t>(port);
}

// `host:port`, `[v6]:port`, `host`; torchrun's static rendezvous meets there.
void take_endpoint(const Settings& settings, LaunchPlan& plan) {
  const std::string endpoint(trim(settings.text("rdzv_endpoint")));
  const std::size_t colon = endpoint.rfind(':');
  const bool has_port = colon != std::string::npos && endpoint.find(']', colon) == std::string::npos;
  std::string host = has_port ? endpoint.substr(0, colon) : endpoint;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  plan.master_addr = host;
  if (!has_port) return;
  const auto port = parse_integer(endpoint.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || host.empty()) {
    fail(settings.origin("rdzv_endpoint"), "'" + endpoint + "' is not host:port");
  }
  plan.master_port = static_cast<std::uint16_t>(*port);
}

void choose_meeting_point(const LaunchInputs& inputs, const Settings& settings, LaunchPlan& plan) {
  plan.run_id = settings.text("rdzv_id");
  if (settings.truth("standalone")) {
    if (plan.num_machines > 1) {
      fail("", fmt::format("--standalone is a job of one machine, and {} says {}",
                           settings.origin("num_machines"), plan.num_machines));
    }
    plan.run_id = inputs.random_id;
    return;
  }
  if (settings.given("main_process_ip")) plan.master_addr = settings.text("main_process_ip");
  if (settings.given("main_process_port")) plan.master_port = parse_port(settings, "main_process_port");
  // With c10d the endpoint is where agents meet; a job of one machine meets nobody.
  if (settings.given("rdzv_endpoint") && settings.text("rdzv_backend") == "static")
    take_endpoint(settings, plan);
  if (plan.num_machines > 1 && (!settings.given("main_process_ip") || plan.master_port == 0) &&
      !settings.given("rdzv_endpoint")) {
    fail("", fmt::format("{} machines need the address and port of machine 0", plan.num_machines),
         "--main_process_ip and --main_process_port");
  }
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
  if (!plan.virtual_local_rank) return;
  const auto mask = plan.environment.find("CUDA_VISIBLE_DEVICES");
  const auto list = mask ? mask : inputs.environment.find("CUDA_VISIBLE_DEVICES");
  for (int rank = 0; rank < plan.nproc_per_node; ++rank) plan.device_of_rank.push_back(fmt::to_string(rank));
  if (!list) return;
  const std::vector<std::string> devices = split(*list, ',');
  if (static_cast<int>(devices.size()) < plan.nproc_per_node || trim(*list).empty()) {
    fail(settings.origin("virtual_local_rank"),
         fmt::format("{} workers, but CUDA_VISIBLE_DEVICES='{}' names fewer devices", plan.nproc_per_node,
                     *list));
  }
  for (std::size_t rank = 0; rank < plan.device_of_rank.size(); ++rank)
    plan.device_of_rank[rank] = trim(devices[rank]);
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
  JobShape shape = decide_shape(inputs, settings);
  LaunchPlan plan;
  plan.dialect = inputs.dialect;
  plan.launcher = shape.launcher;
  plan.sets_ranks = shape.sets_ranks;
  plan.nproc_per_node = shape.nproc_per_node;
  plan.num_machines = shape.num_machines;
  plan.machine_rank = shape.machine_rank;
  plan.inherited = inputs.environment;
  plan.role = settings.text("role");
  if (inputs.dialect == Dialect::launch) plan.environment = accelerate_environment(shape, settings);
  plan.environment.overlay(thread_environment(inputs, shape, settings));
  plan.notes = std::move(shape.notes);
  plan.problems = std::move(shape.problems);
  choose_program(inputs, settings, plan);
  choose_meeting_point(inputs, settings, plan);
  take_limits(settings, plan);
  plan.hang = plan_hang(settings);
  plan.output = plan_output(settings);
  plan.output.observed = plan.hang.timeout.count() > 0;
  plan_debugging(inputs, settings, plan);
  assign_devices(inputs, settings, plan);
  plan.settings = settings.all();
  return plan;
}

}  // namespace acc

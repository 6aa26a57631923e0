// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/json_reporter.hpp"

#include <nlohmann/json.hpp>

#include "acc/preflight/xid_json.hpp"

namespace acc::launcher {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::int64_t nanoseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

double to_seconds(std::chrono::duration<double> duration) {
  return duration.count();
}

// Exactly one of exit_code and signal is null.
void add_status(OrderedJson& line, const ExitStatus& status) {
  const auto* signaled = std::get_if<Signaled>(&status);
  line["exit_code"] = signaled == nullptr ? OrderedJson(std::get<Exited>(status).code) : OrderedJson();
  line["signal"] = signaled == nullptr ? OrderedJson() : OrderedJson(signal_name(signaled->signal));
}

OrderedJson to_json(const WorkerFailure& failure) {
  OrderedJson object = {{"rank", failure.rank},       {"local_rank", failure.local_rank},
                        {"pid", failure.pid},         {"host", failure.host},
                        {"attempt", failure.attempt}, {"time_ns", nanoseconds(failure.time)}};
  add_status(object, failure.status);
  object["out_of_memory"] = failure.out_of_memory;
  object["xids"] = failure.xids ? OrderedJson(*failure.xids) : OrderedJson();
  object["message"] = failure.error_file ? OrderedJson(failure.error_file->message) : OrderedJson();
  object["traceback"] = failure.error_file ? OrderedJson(failure.error_file->traceback) : OrderedJson();
  const bool has_file = failure.error_file && failure.error_file->stays;
  object["error_file"] = has_file ? OrderedJson(failure.error_file->path.string()) : OrderedJson();
  object["last_words"] = failure.stderr_tail;
  return object;
}

// To the millisecond: a day of many ranks is long enough. Not by std::round, which is libm's: to load that
// takes a part of each start.
OrderedJson rounded(std::optional<std::chrono::duration<double>> duration) {
  if (!duration) return nullptr;
  const auto time = std::chrono::round<std::chrono::milliseconds>(*duration);
  return static_cast<double>(time.count()) / 1000;
}

// A column of a table: the value of each rank that says how far it is, else null.
template <class ValueOf>
OrderedJson column(const ProgressNoted& event, ValueOf value_of) {
  OrderedJson values = OrderedJson::array();
  for (const ProgressNoted::Rank& rank : event.ranks)
    values.push_back(rank.progress ? OrderedJson(value_of(*rank.progress)) : OrderedJson());
  return values;
}

// Each adds the event's fields and returns its name.
std::string add(OrderedJson& line, const JobStarted& event) {
  line["workers"] = event.workers;
  line["command"] = event.command;
  OrderedJson& settings = line["settings"] = OrderedJson::object();
  for (const auto& [name, setting] : event.settings)
    settings[name] = {{"value", setting.value}, {"origin", setting.origin}};
  return "job_started";
}

std::string add(OrderedJson& line, const AttemptStarted& event) {
  line["nodes"] = event.round.num_machines;
  line["first_rank"] = event.round.first_rank;
  line["world_size"] = event.round.world_size;
  line["master_addr"] = event.round.master_addr;
  line["master_port"] = event.round.master_port;
  return "attempt_started";
}

std::string add(OrderedJson& line, const WorkerStarted& event) {
  line.update({{"rank", event.rank}, {"local_rank", event.local_rank}, {"pid", event.pid}});
  return "worker_started";
}

std::string add(OrderedJson& line, const WorkerFinished& event) {
  line.update({{"rank", event.rank}, {"local_rank", event.local_rank}, {"pid", event.pid}});
  add_status(line, event.status);
  return "worker_finished";
}

std::string add(OrderedJson& line, const Stopping& event) {
  line.update({{"signal", signal_name(event.signal)},
               {"workers", event.workers},
               {"grace_s", to_seconds(event.grace)}});
  return "stopping";
}

std::string add(OrderedJson& line, const SignalPassedOn& event) {
  line.update({{"signal", signal_name(event.signal)},
               {"from", event.host.empty() ? line["host"] : OrderedJson(event.host)},
               {"ranks", event.ranks},
               {"ranks_without_handler", event.ranks_without_handler}});
  return "signal_passed_on";
}

std::string add(OrderedJson& line, const Killed& event) {
  line.update({{"ranks", event.ranks}, {"grace_s", to_seconds(event.grace)}, {"asked", event.second_signal}});
  return "killed";
}

std::string add(OrderedJson&, const Suspended&) {
  return "suspended";
}

std::string add(OrderedJson&, const Resumed&) {
  return "resumed";
}

std::string add(OrderedJson& line, const Restarting& event) {
  line.update({{"restart", event.restart},
               {"max_restarts", event.max_restarts},
               {"cause", event.cause ? to_json(*event.cause) : OrderedJson()}});
  return "restarting";
}

std::string add(OrderedJson& line, const WaitingForNodes& event) {
  line["text"] = event.text;
  return "waiting_for_nodes";
}

std::string add(OrderedJson& line, const PreflightFinished& event) {
  line["passed"] = event.result.passed;
  line["report"] = event.result.json.empty() ? OrderedJson() : OrderedJson::parse(event.result.json);
  return "preflight";
}

std::string add(OrderedJson& line, const GroupChanged& event) {
  line.update({{"text", event.text}, {"again", event.restart}});
  return "group_changed";
}

std::string add(OrderedJson& line, const HangFound& event) {
  const char* const names[] = {"report", "restart", "kill"};
  line.update({{"idle_s", to_seconds(event.idle)},
               {"then", names[static_cast<int>(event.action)]},
               {"places", event.rank_states}});
  return "hang_found";
}

std::string add(OrderedJson& line, const HangStacksFound& event) {
  line["text"] = event.text;
  return "hang_stacks";
}

std::string add(OrderedJson& line, const StragglerFound& event) {
  const SlowSection& slow = event.slow;
  line.update({{"rank", event.rank},
               {"rank_host", event.host.empty() ? line["host"] : OrderedJson(event.host)},
               {"section", name_of(slow.section)},
               {"seconds", to_seconds(slow.spent)},
               {"reference_seconds", to_seconds(slow.reference)},
               {"other_rank", event.other ? OrderedJson(*event.other) : OrderedJson()},
               {"step_seconds", to_seconds(slow.step)},
               {"for_s", to_seconds(slow.duration)}});
  return "straggler_found";
}

std::string add(OrderedJson& line, const ProgressNoted& event) {
  const auto of_all = [&](auto value_of) {
    OrderedJson values = OrderedJson::array();
    for (const ProgressNoted::Rank& rank : event.ranks) values.push_back(value_of(rank));
    return values;
  };
  line["ranks"] = of_all([](const auto& rank) { return rank.rank; });
  line["steps"] = column(event, [](const ProgressView& view) { return view.steps; });
  line["counts_over_restarts"] = of_all([](const auto& rank) { return rank.counts_over_restarts; });
  line["step_seconds"] = column(event, [](const ProgressView& view) { return rounded(view.step_time); });
  line["since_step_seconds"] =
      column(event, [](const ProgressView& view) { return rounded(view.since_step); });
  line["samples"] = column(event, [](const ProgressView& view) { return view.samples; });
  line["tokens"] = column(event, [](const ProgressView& view) { return view.tokens; });
  line["loss"] = column(event, [](const ProgressView& view) { return loss_to_json(view.loss); });
  line["section"] = column(event, [](const ProgressView& view) { return view.section; });
  OrderedJson& spent = line["spent_seconds"] = OrderedJson::object();
  for (const acc::Section section : kSections) {
    const std::string name(name_of(section));
    spent[name] = column(event, [&](const ProgressView& view) { return rounded(view.spent.at(name)); });
  }
  line["cpu_seconds"] = of_all([](const auto& rank) { return rounded(rank.cpu_time); });
  line["memory_bytes"] = of_all(
      [](const auto& rank) { return rank.memory_bytes ? OrderedJson(*rank.memory_bytes) : OrderedJson(); });
  return "progress";
}

std::string add(OrderedJson& line, const GpuUseNoted& event) {
  const auto of_all = [&](auto value_of) {
    OrderedJson values = OrderedJson::array();
    for (const GpuUseNoted::Gpu& gpu : event.gpus) values.push_back(value_of(gpu));
    return values;
  };
  const auto if_known = [](const auto& value) { return value ? OrderedJson(*value) : OrderedJson(); };
  line["gpus"] = of_all([](const auto& gpu) { return gpu.use.index; });
  line["uuids"] = of_all([](const auto& gpu) { return gpu.use.uuid; });
  line["ranks"] = of_all([](const auto& gpu) { return gpu.ranks; });
  line["use_percent"] = of_all([&](const auto& gpu) { return if_known(gpu.use.percent); });
  line["memory_bytes"] = of_all([&](const auto& gpu) { return if_known(gpu.use.memory_bytes); });
  line["watts"] = of_all([&](const auto& gpu) { return if_known(gpu.use.watts); });
  line["joules"] = of_all([&](const auto& gpu) { return if_known(gpu.use.joules); });
  return "gpu_use";
}

std::string add(OrderedJson&, const StateFlushing&) {
  return "state_flushing";
}

std::string add(OrderedJson& line, const StateFlushed& event) {
  const FlushResult& result = event.result;
  line.update({{"folder", result.folder.empty() ? OrderedJson() : OrderedJson(result.folder.string())},
               {"damaged", result.damaged},
               {"problem", result.problem.empty() ? OrderedJson() : OrderedJson(result.problem)}});
  return "state_flushed";
}

std::string add(OrderedJson& line, const Warning& event) {
  line["text"] = event.text;
  return "warning";
}

std::string add(OrderedJson& line, const Failed& event) {
  line.update({{"exit_code", event.exit_code}, {"text", event.text}});
  return "failed";
}

std::string add(OrderedJson& line, const Finished& event) {
  const LaunchReport& report = event.report;
  line["exit_code"] = report.exit_code;
  line["restarts"] = report.restarts;
  line["stop_signal"] = report.stop_signal ? OrderedJson(signal_name(*report.stop_signal)) : OrderedJson();
  line["stopped_ranks"] = report.stopped_ranks;
  line["killed_ranks"] = report.killed_ranks;
  line["cause"] = report.first_failure ? to_json(*report.first_failure) : OrderedJson();
  return "finished";
}

}  // namespace

std::string event_json(const Event& event, const EventContext& context) {
  OrderedJson line = {{"schema", 1},
                      {"event", ""},
                      {"time_ns", nanoseconds(context.time)},
                      {"run_id", context.run_id},
                      {"host", context.host},
                      {"node_rank", context.node_rank},
                      {"attempt", context.attempt}};
  line["event"] = std::visit([&](const auto& one) { return add(line, one); }, event);
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

void JsonReporter::report(const Event& event) {
  if (const auto* started = std::get_if<AttemptStarted>(&event)) {
    context_.attempt = started->attempt;
    context_.node_rank = started->round.machine_rank;
  }
  context_.time = std::chrono::system_clock::now();
  write_(event_json(event, context_) + '\n');
}

}  // namespace acc::launcher

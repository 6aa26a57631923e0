// SPDX-License-Identifier: Apache-2.0
#include "acc/report/job_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/printable.hpp"
#include "acc/base/text.hpp"
#include "acc/report/html_text.hpp"

namespace acc::launcher {
namespace {

using nlohmann::json;

// Nodes notice the same event within this time, if their clocks are right.
constexpr double kMinClockOffset = 1;
// Within this time all nodes have reported what they noticed, also those that waited for their workers to
// end: 30 s, where nothing else is set.
constexpr double kMaxSameTime = 120;
// Of two nodes whose clocks are not corrected, as they differ too little from that of the first node, one may
// be ahead and the other behind.
constexpr double kMaxStartOffset = 2 * kMinClockOffset;

std::string status_text(const json& failure) {
  const std::string signal = text_in(failure, "signal");
  std::string text =
      !signal.empty() ? signal : fmt::format("exit code {}", integer_in(failure, "exit_code").value_or(1));
  const auto memory = failure.find("out_of_memory");
  if (memory != failure.end() && *memory == true) text += ", out of memory";
  return text;
}

// The failure of a worker that ended an attempt, or the job.
std::optional<FailureRecord> failure_in(const EventLine& line) {
  const auto cause = line.fields.find("cause");
  if (cause == line.fields.end() || !cause->is_object()) return std::nullopt;
  return FailureRecord{
      .time = line.time,
      .attempt = static_cast<int>(integer_in(*cause, "attempt").value_or(line.attempt) % kMaxRanks),
      .rank = static_cast<int>(integer_in(*cause, "rank").value_or(0) % kMaxRanks),
      .host = text_in(*cause, "host"),
      .status = status_text(*cause),
      .message = text_in(*cause, "message"),
      .stderr_tail = text_in(*cause, "last_words")};
}

// --- Which lines ---

void choose_run(EventLines& lines, std::string run_id) {
  std::map<std::string, double> runs;
  for (const EventLine& line : lines.lines) runs[line.run_id] = std::max(runs[line.run_id], line.time);
  if (run_id.empty() && !runs.empty())
    run_id = std::ranges::max_element(runs, {}, [](const auto& run) { return run.second; })->first;
  if (!runs.contains(run_id) && !runs.empty()) {
    std::vector<std::string> run_ids;
    for (const auto& [name, last] : runs) run_ids.push_back(name);
    throw Error({.what = fmt::format("the logs have no run '{}'", run_id),
                 .where = "--run-id",
                 .hint = "they have " + shorten(printable(join(run_ids, ", ")), 200)});
  }
  if (runs.size() > 1)
    lines.notes.push_back(
        fmt::format("The logs have {} runs; this is {} (--run-id chooses another).", runs.size(), run_id));
  std::erase_if(lines.lines, [&](const EventLine& line) { return line.run_id != run_id; });
}

// Finds the last of several jobs with one run id that were appended to the logs: a host starts again after
// all agents have ended or were killed. While others go on, it has come back to the same job. Agents are
// counted by host: their node ranks are not known before they have met.
class StartFinder {
 public:
  explicit StartFinder(const std::vector<EventLine>& lines) : lines_(lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& event = lines[i].event;
      // These an agent may also report before the nodes have met.
      if (event != "waiting_for_nodes" && event != "warning" && event != "preflight")
        lines_of_host_[lines[i].host].push_back(i);
    }
  }

  /// The index of the line with which the last job begins.
  std::size_t find() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].event == "job_started") {
        add_start(i);
      } else {
        add(lines_[i]);
      }
    }
    return begin_;
  }

  int starts() const { return starts_; }

  /// Those whose part of the last job begins later, with their own start.
  const std::set<std::string>& ending_hosts() const { return ending_hosts_; }

 private:
  void add(const EventLine& line) {
    if (hosts_.insert(line.host).second) agents_[line.host] = 1;
    if (line.event == "attempt_started") {
      attempts_.insert(attempt_of(line));
      running_hosts_.insert(line.host);
    }
    if (line.event != "finished" && line.event != "failed") return;
    has_ended_ = true;
    const auto agents = agents_.find(line.host);
    if (agents != agents_.end() && --agents->second == 0) agents_.erase(agents);
  }

  void add_start(std::size_t i) {
    const std::string& host = lines_[i].host;
    const bool has_begun = has_ended_ || !attempts_.empty();
    const EventLine* const attempt = next_attempt(i);
    // The first attempt of a job has the number 0.
    const bool comes_back = attempt != nullptr && attempt->attempt > 0;
    const bool repeats_attempt = attempt != nullptr && attempts_.contains(attempt_of(*attempt));
    if (has_begun && !comes_back && (hosts_.contains(host) || repeats_attempt) &&
        std::ranges::all_of(agents_, [&](const auto& open) { return is_over(open.first, open.second, i); })) {
      begin_ = i;
      ++starts_;
      ending_hosts_.clear();
      for (const auto& [open, agents] : agents_) ending_hosts_.insert(open);
      hosts_.clear();
      agents_.clear();
      attempts_.clear();
      running_hosts_.clear();
      has_ended_ = false;
    }
    hosts_.insert(host);
    int& agents = agents_[host];
    // Agents that were killed left no end in the log. Until they take part, several starts are several
    // agents.
    if (running_hosts_.contains(host) && is_over(host, agents, i)) agents = 0;
    ++agents;
  }

  // Whether as many agents of a host start from line `i` on before any of them goes on, or the host says
  // nothing more.
  bool is_over(const std::string& host, int agents, std::size_t i) const {
    const auto entry = lines_of_host_.find(host);
    if (entry == lines_of_host_.end() || entry->second.back() < i) return true;
    const std::vector<std::size_t>& lines = entry->second;
    for (auto line = std::ranges::lower_bound(lines, i); agents > 0 && line != lines.end(); ++line) {
      if (lines_[*line].event == "job_started") {
        --agents;
      } else if (goes_on(lines_[*line], lines_[i].time)) {
        return false;
      }
    }
    return agents == 0;
  }

  // Whether a host does more than to end soon after another one has started. A node that joins or comes back
  // begins an attempt on all.
  static bool goes_on(const EventLine& line, double start) {
    return line.time - start > kMaxSameTime || line.event == "attempt_started" ||
           line.event == "restarting" || line.event == "group_changed";
  }

  // Where a host that starts in line `i` takes part for the first time. A host that is new and repeats what
  // another one did is of another job; else it may be a node of the same one whose clock is ahead.
  const EventLine* next_attempt(std::size_t i) const {
    const std::vector<std::size_t>& lines = lines_of_host_.at(lines_[i].host);
    const auto first = std::find_if(std::ranges::lower_bound(lines, i), lines.end(), [&](std::size_t line) {
      return lines_[line].event == "attempt_started";
    });
    return first == lines.end() ? nullptr : &lines_[*first];
  }

  using Attempt = std::array<std::int64_t, 4>;
  static Attempt attempt_of(const EventLine& line) {
    return {line.attempt, line.node_rank, integer_in(line.fields, "nodes").value_or(1),
            integer_in(line.fields, "world_size").value_or(1)};
  }

  const std::vector<EventLine>& lines_;
  std::map<std::string, std::vector<std::size_t>> lines_of_host_ = {};
  std::size_t begin_ = 0;
  int starts_ = 1;
  std::set<std::string> ending_hosts_ = {};
  // Of the job that the lines up to now are of: its hosts, how many agents each has that have not ended, the
  // attempts that it has begun, and the hosts that took part.
  std::set<std::string> hosts_ = {};
  std::map<std::string, int> agents_ = {};
  std::set<Attempt> attempts_ = {};
  std::set<std::string> running_hosts_ = {};
  bool has_ended_ = false;
};

void choose_start(EventLines& lines) {
  StartFinder finder(lines.lines);
  const std::size_t begin = finder.find();
  if (finder.starts() == 1) return;
  lines.notes.push_back(
      fmt::format("The logs have {} starts of this run; this is the last one.", finder.starts()));
  std::set<std::string> ending_hosts = finder.ending_hosts();
  std::vector<EventLine> chosen;
  for (EventLine& line : std::span(lines.lines).subspan(begin)) {
    if (line.event == "job_started") ending_hosts.erase(line.host);
    if (!ending_hosts.contains(line.host)) chosen.push_back(std::move(line));
  }
  lines.lines = std::move(chosen);
}

// When the nodes of a round began an attempt: all at once, unlike ends, for which workers need their time. By
// number, nodes and world size.
using AttemptStarts = std::map<std::array<std::int64_t, 3>, std::vector<double>>;

std::map<std::string, AttemptStarts> attempt_starts(const std::vector<EventLine>& lines) {
  std::map<std::string, AttemptStarts> starts;
  for (const EventLine& line : lines) {
    if (line.event == "attempt_started")
      starts[line.host][{line.attempt, integer_in(line.fields, "nodes").value_or(1),
                         integer_in(line.fields, "world_size").value_or(1)}]
          .push_back(line.time);
  }
  return starts;
}

// The smallest difference of `time` to a time in `reference`, which is sorted; negative if it is earlier.
double nearest_offset(double time, const std::vector<double>& reference) {
  const auto next = std::ranges::lower_bound(reference, time);
  if (next == reference.begin()) return time - *next;
  const double since_previous = time - *std::prev(next);
  return next == reference.end() || since_previous <= *next - time ? since_previous : time - *next;
}

// How much later than its counterpart in `reference` each of `times` is. Where nodes leave and come back, one
// number has several starts, and a host may have missed some.
std::vector<double> offsets_of(const std::vector<double>& times, const std::vector<double>& reference) {
  std::vector<double> offsets;
  for (std::size_t i = 0; i < times.size() && times.size() == reference.size(); ++i)
    offsets.push_back(times[i] - reference[i]);
  // Equal counts may still be of different rounds.
  if (!offsets.empty() && std::ranges::max(offsets) - std::ranges::min(offsets) < kMinClockOffset)
    return offsets;
  offsets.clear();
  for (const double time : times) offsets.push_back(nearest_offset(time, reference));
  return offsets;
}

// How much later it is by the clock of a host than by that of the reference.
double clock_offset(const AttemptStarts& starts, const AttemptStarts& reference) {
  std::vector<double> offsets;
  for (const auto& [attempt, times] : starts) {
    const auto counterpart = reference.find(attempt);
    if (counterpart == reference.end()) continue;
    const std::vector<double> more = offsets_of(times, counterpart->second);
    offsets.insert(offsets.end(), more.begin(), more.end());
  }
  if (offsets.empty()) return 0;
  std::ranges::sort(offsets);
  const double lower = offsets[(offsets.size() - 1) / 2];
  const double upper = offsets[offsets.size() / 2];
  return std::abs(lower) <= std::abs(upper) ? lower : upper;
}

std::string reference_host(const std::vector<EventLine>& lines) {
  const auto first = std::ranges::min_element(lines, {}, [](const EventLine& line) {
    return std::pair(line.event != "attempt_started" || line.node_rank != 0, line.time);
  });
  return first == lines.end() ? "" : first->host;
}

void correct_clocks(EventLines& lines) {
  const std::map<std::string, AttemptStarts> starts = attempt_starts(lines.lines);
  const std::string reference = reference_host(lines.lines);
  if (!starts.contains(reference)) return;
  for (const auto& [host, of_host] : starts) {
    const double offset = clock_offset(of_host, starts.at(reference));
    if (std::abs(offset) < kMinClockOffset) continue;
    lines.notes.push_back(fmt::format("The clock of {} is {:.1f} s {} that of {}; its times are corrected.",
                                      host, std::abs(offset), offset > 0 ? "ahead of" : "behind", reference));
    for (EventLine& line : lines.lines) {
      if (line.host == host) move_back(line, offset);
    }
  }
}

void sort_lines(EventLines& lines) {
  std::ranges::stable_sort(lines.lines, {}, &EventLine::time);
}

// --- What they tell ---

/// How a node's part of the job has ended.
struct NodeEnd {
  std::string node = {};
  int exit_code = 0;
  std::string stop_signal = {};
  std::string failed = {};
  std::optional<FailureRecord> cause = {};
};

class HistoryBuilder {
 public:
  explicit HistoryBuilder(EventLines lines) : lines_(std::move(lines)) {}

  JobHistory build() {
    history_.notes = std::move(lines_.notes);
    if (lines_.lines.empty()) return std::move(history_);
    history_.run_id = lines_.lines.front().run_id;
    history_.time = {lines_.lines.front().time, lines_.lines.back().time};
    for (EventLine& line : lines_.lines) {
      history_.hosts.insert(line.host);
      history_.last.name = line.event;
      history_.last.time = line.time;
      history_.last.host = line.host;
      add(line);
    }
    end_job();
    end_attempts();
    end_hangs();
    end_gpus();
    return std::move(history_);
  }

 private:
  void add(EventLine& line) {
    const std::string& event = line.event;
    if (event == "progress") return add_progress(line);
    if (event == "gpu_use") return add_gpus(line);
    if (event == "worker_started") return add_worker(line);
    if (event == "worker_finished") return add_worker_end(line);
    if (event == "attempt_started") return add_attempt(line);
    if (event == "job_started") return add_job(line);
    if (event == "restarting") return add_restart(line);
    if (event == "finished") return add_end(line);
    if (event == "suspended" || event == "resumed") return add_suspension(line);
    add_moment(line);
  }

  void add_job(const EventLine& line) {
    if (!history_.command.empty()) return;
    for (const json& word : array_in(line.fields, "command")) {
      if (word.is_string()) history_.command.push_back(word.get<std::string>());
    }
    const auto settings = line.fields.find("settings");
    if (settings == line.fields.end() || !settings->is_object()) return;
    for (const auto& [name, setting] : settings->items()) {
      if (!setting.is_object() || !setting.contains("value")) continue;
      const json& value = setting["value"];
      history_.settings.push_back(
          {name, value.is_string() ? value.get<std::string>() : value.dump(), text_in(setting, "origin")});
    }
  }

  // Each node says that it begins. The number of an attempt is also that of one in which nodes joined or
  // left.
  void add_attempt(const EventLine& line) {
    const auto count = [&](const char* field) {
      return static_cast<int>(
          std::clamp<std::int64_t>(integer_in(line.fields, field).value_or(1), 1, kMaxRanks));
    };
    const AttemptRecord attempt = {.number = line.attempt,
                                   .time = {line.time, 0},
                                   .nodes = count("nodes"),
                                   .world_size = count("world_size")};
    if (const auto index = find_begun(attempt, line.node())) {
      nodes_[*index].insert(line.node());
      return;
    }
    nodes_.push_back({line.node()});
    history_.last.running.clear();
    // Nodes that had ended have left a job that goes on.
    ends_.clear();
    history_.attempts.push_back(attempt);
  }

  // The index of an attempt that other nodes have begun and that lacks nodes: the last one, or, where
  // attempts are shorter than clocks differ, one just before it.
  std::optional<std::size_t> find_begun(const AttemptRecord& attempt, const std::string& node) const {
    for (std::size_t i = history_.attempts.size(); i-- > 0;) {
      const AttemptRecord& begun = history_.attempts[i];
      const bool is_last = i + 1 == history_.attempts.size();
      if (!is_last && attempt.time.begin - begun.time.begin > kMaxStartOffset) break;
      const bool is_same = begun.number == attempt.number && begun.nodes == attempt.nodes &&
                           begun.world_size == attempt.world_size;
      if (is_same && !nodes_[i].contains(node) && !is_complete(i)) return i;
    }
    return std::nullopt;
  }

  // Whether the logs have all nodes of an attempt.
  bool is_complete(std::size_t attempt) const {
    return nodes_[attempt].size() >= static_cast<std::size_t>(history_.attempts[attempt].nodes);
  }

  AttemptRecord* attempt_of(const EventLine& line) {
    const auto match =
        std::find_if(history_.attempts.rbegin(), history_.attempts.rend(),
                     [&](const AttemptRecord& attempt) { return attempt.number == line.attempt; });
    return match == history_.attempts.rend() ? nullptr : &*match;
  }

  void add_worker(const EventLine& line) {
    const auto rank = integer_in(line.fields, "rank");
    if (rank && *rank >= 0 && *rank < kMaxRanks) history_.last.running.insert(static_cast<int>(*rank));
  }

  void add_worker_end(const EventLine& line) {
    if (const auto rank = integer_in(line.fields, "rank"); rank && *rank >= 0 && *rank < kMaxRanks)
      history_.last.running.erase(static_cast<int>(*rank));
    if (AttemptRecord* attempt = attempt_of(line)) attempt->time.end = std::max(attempt->time.end, line.time);
  }

  void add_progress(EventLine& line) {
    AttemptRecord* attempt = attempt_of(line);
    if (attempt == nullptr) return;
    for (auto& [rank, sample] : line.samples) {
      follow_loss(line, *attempt, rank, sample);
      std::vector<RankSample>& samples = attempt->ranks[rank];
      // The clock of a host may have been set.
      if (samples.empty() || samples.back().time <= sample.time) samples.push_back(std::move(sample));
    }
    line.samples = {};
  }

  // Of the ranks of an attempt the first is named: soon it is the loss of all. After it has recovered, the
  // next one is told again.
  void follow_loss(const EventLine& line, const AttemptRecord& attempt, int rank, const RankSample& sample) {
    if (!sample.loss) return;
    const auto index = static_cast<std::size_t>(&attempt - history_.attempts.data());
    const auto known = losses_.find(index);
    if (std::isfinite(*sample.loss)) {
      if (known == losses_.end() || rank != known->second.rank) return;
      const NonFiniteLoss& loss = known->second;
      history_.moments[loss.moment].text =
          fmt::format("the loss of rank {} was not finite at step {}", rank, loss.step);
      losses_.erase(known);
    } else if (known == losses_.end()) {
      const std::int64_t step = sample.steps.value_or(0);
      losses_[index] = {.rank = rank, .step = step, .moment = history_.moments.size()};
      history_.moments.push_back(
          {.kind = Moment::Kind::warning,
           .time = line.time,
           .host = line.host,
           .text = fmt::format("the loss of rank {} is not finite at step {}", rank, step)});
    }
  }

  void add_gpus(const EventLine& line) {
    for (const GpuSample& gpu : line.gpus) {
      if (gpu.has_ranks) hosts_with_known_gpus_.insert(line.host);
      gpus_[line.host].push_back(gpu);
    }
  }

  // Before ranks begin with their GPUs, as while they import, the driver shows no process of theirs.
  void end_gpus() {
    for (auto& [host, samples] : gpus_) {
      const bool is_known = hosts_with_known_gpus_.contains(host);
      for (GpuSample& gpu : samples) {
        if (is_known && !gpu.has_ranks) continue;
        // Several nodes on one host may share a GPU.
        const std::string id = gpu.uuid.empty() ? fmt::format("{}/{}", host, gpu.index) : gpu.uuid;
        std::vector<GpuSample>& samples_of_gpu = history_.gpus[id];
        if (samples_of_gpu.empty() || samples_of_gpu.back().time <= gpu.time)
          samples_of_gpu.push_back(std::move(gpu));
      }
    }
  }

  void add_failure(const EventLine& line) {
    const std::optional<FailureRecord> failure = failure_in(line);
    if (!failure) return;
    // Each node tells it.
    const bool is_known = std::ranges::any_of(history_.failures, [&](const FailureRecord& record) {
      return record.attempt == failure->attempt && record.rank == failure->rank;
    });
    set_problem(line, fmt::format("rank {} failed with {}", failure->rank, failure->status));
    if (!is_known) history_.failures.push_back(*failure);
  }

  void add_restart(const EventLine& line) {
    add_failure(line);
    set_problem(line, "all ranks hung");
    const AttemptRecord* attempt = attempt_of(line);
    const auto restart = static_cast<int>(
        std::clamp<std::int64_t>(integer_in(line.fields, "restart").value_or(1), 0, kMaxRanks));
    history_.restarts = std::max(history_.restarts, restart);
    note(Moment::Kind::restart, line,
         fmt::format("restart {}: {}", restart, attempt == nullptr ? "" : attempt->problem));
  }

  void add_end(const EventLine& line) {
    add_failure(line);
    end_node(line, {.exit_code = exit_code_in(line, 0),
                    .stop_signal = text_in(line.fields, "stop_signal"),
                    .cause = failure_in(line)});
    const auto restarts =
        std::clamp<std::int64_t>(integer_in(line.fields, "restarts").value_or(0), 0, kMaxRanks);
    history_.restarts = std::max(history_.restarts, static_cast<int>(restarts));
  }

  void add_suspension(const EventLine& line) {
    const bool begins = line.event == "suspended";
    if (begins && !suspended_) suspended_ = line.time;
    if (!begins && suspended_)
      history_.standstills.push_back({*std::exchange(suspended_, std::nullopt), line.time});
    note(Moment::Kind::signal, line, begins ? "the workers were suspended" : "the workers go on");
  }

  void add_moment(const EventLine& line) {
    const std::string& event = line.event;
    const std::string text = text_in(line.fields, "text");
    const std::string signal = text_in(line.fields, "signal");
    if (event == "hang_found") return add_hang(line);
    if (event == "straggler_found") return note_straggler(line);
    if (event == "failed") return add_failed(line);
    if (event == "state_flushed") return note_flush(line);
    if (event == "group_changed") set_problem(line, text);
    if (event == "group_changed" || event == "waiting_for_nodes") note(Moment::Kind::nodes, line, text);
    if (event == "stopping") note(Moment::Kind::signal, line, signal + " asked the job to end");
    if (event == "signal_passed_on")
      note(Moment::Kind::signal, line, signal + " announced the end of the job");
    if (event == "killed") note(Moment::Kind::signal, line, "workers were killed that did not end in time");
    if (event == "warning") note(Moment::Kind::warning, line, text);
  }

  void note_flush(const EventLine& line) {
    const std::string problem = text_in(line.fields, "problem");
    const std::string on_disk =
        "the newest state in memory is on the disk: " + text_in(line.fields, "folder");
    if (problem.empty()) return note(Moment::Kind::state, line, on_disk);
    note(Moment::Kind::warning, line, "the newest state in memory could not be put on the disk: " + problem);
  }

  void add_hang(const EventLine& line) {
    const double idle = std::max(0.0, number_in(line.fields, "idle_s").value_or(0));
    hangs_.push_back({line.time - idle, line.time});
    if (text_in(line.fields, "then") != "report") set_problem(line, "all ranks hung");
    const std::string time = rounded_seconds_text(std::chrono::duration<double>(idle));
    note(Moment::Kind::hang, line, "no rank has done anything for " + time);
  }

  void add_failed(const EventLine& line) {
    end_node(line, {.exit_code = exit_code_in(line, 1), .failed = text_in(line.fields, "text")});
  }

  // The first problem of an attempt is its cause.
  void set_problem(const EventLine& line, const std::string& problem) {
    AttemptRecord* attempt = attempt_of(line);
    if (attempt != nullptr && attempt->problem.empty()) attempt->problem = problem;
  }

  static int exit_code_in(const EventLine& line, int default_value) {
    constexpr int kCodes = 256;
    return static_cast<int>(integer_in(line.fields, "exit_code").value_or(default_value) % kCodes);
  }

  // The end of a node that is not in the last attempt, as a spare or one that has left, is not that of the
  // job. Nodes of one host may have had the same rank one after the other; then the last one counts. A spare
  // on the host of a node that has ended may report that node's rank, and says only that it failed.
  void end_node(const EventLine& line, NodeEnd end) {
    end.node = line.node();
    const auto is_same = [&](const NodeEnd& before) { return before.node == end.node; };
    if (!end.failed.empty() && std::ranges::any_of(ends_, is_same)) return;
    const auto takes_part = [&](const std::set<std::string>& nodes) { return nodes.contains(end.node); };
    const bool is_known = std::ranges::any_of(nodes_, takes_part);
    // A node that leaves says that it has finished; one that cannot begin the next attempt has failed.
    const bool may_be_missing = !is_known || !end.failed.empty();
    const bool counts =
        nodes_.empty() || takes_part(nodes_.back()) || (may_be_missing && !is_complete(nodes_.size() - 1));
    if (!counts) return;
    std::erase_if(ends_, is_same);
    ends_.push_back(std::move(end));
  }

  // Of several nodes one that failed counts.
  void end_job() {
    for (NodeEnd& end : ends_) {
      if (history_.exit_code.value_or(0) == 0) history_.exit_code = end.exit_code;
      if (history_.stop_signal.empty()) history_.stop_signal = std::move(end.stop_signal);
      if (history_.failed.empty()) history_.failed = std::move(end.failed);
      if (!history_.cause) history_.cause = std::move(end.cause);
    }
  }

  void note_straggler(const EventLine& line) {
    const json& fields = line.fields;
    const auto time = [&](const char* field) { return duration_text(number_in(fields, field).value_or(0)); };
    const std::string host = text_in(fields, "rank_host");
    note(Moment::Kind::straggler, line,
         fmt::format("rank {}{} was slow in {}: {} a step, others {}", integer_in(fields, "rank").value_or(0),
                     host.empty() ? "" : " on " + host, text_in(fields, "section"), time("seconds"),
                     time("reference_seconds")));
  }

  // Several nodes report what concerns them all, which is told once. What one of them reports again has
  // happened again. Restarts are numbered.
  void note(Moment::Kind kind, const EventLine& line, const std::string& text) {
    const auto [noted, is_new] =
        noted_.try_emplace({kind, line.attempt, text}, NotedLine{.node = line.node(), .time = line.time});
    if (!is_new) {
      NotedLine& last = noted->second;
      const bool is_same_time = last.node != line.node() && line.time - last.time <= kMaxSameTime;
      if (kind == Moment::Kind::restart || is_same_time) return;
      last = {.node = line.node(), .time = line.time};
    }
    history_.moments.push_back({.kind = kind, .time = line.time, .host = line.host, .text = text});
  }

  // Of one without an end the log is cut, or its agent was killed.
  void end_attempts() {
    double next = history_.time.end;
    for (auto attempt = history_.attempts.rbegin(); attempt != history_.attempts.rend(); ++attempt) {
      if (attempt->time.end == 0 || attempt->time.end > next) attempt->time.end = next;
      attempt->time.end = std::max(attempt->time.end, attempt->time.begin);
      next = attempt->time.begin;
    }
  }

  // A hang lasts until a step ends, or the attempt.
  void end_hangs() {
    for (const TimeSpan& hang : hangs_) {
      double end = history_.time.end;
      for (const AttemptRecord& attempt : history_.attempts) {
        if (attempt.time.begin > hang.end || attempt.time.end < hang.end) continue;
        end = attempt.time.end;
        for (const auto& [rank, samples] : attempt.ranks) {
          for (const RankSample& sample : samples) {
            if (sample.step_ended > hang.end) end = std::min(end, sample.step_ended);
          }
        }
      }
      history_.standstills.push_back({hang.begin, std::max(end, hang.end)});
    }
    if (suspended_) history_.standstills.push_back({*suspended_, history_.time.end});
    merge_standstills();
  }

  void merge_standstills() {
    std::vector<TimeSpan>& spans = history_.standstills;
    std::ranges::sort(spans, {}, &TimeSpan::begin);
    std::vector<TimeSpan> merged;
    for (const TimeSpan& span : spans) {
      if (!merged.empty() && span.begin <= merged.back().end) {
        merged.back().end = std::max(merged.back().end, span.end);
      } else {
        merged.push_back(span);
      }
    }
    spans = std::move(merged);
  }

  struct NotedLine {
    std::string node = {};
    double time = 0;
  };

  /// Which rank had one first, when, and the moment that says so.
  struct NonFiniteLoss {
    int rank = 0;
    std::int64_t step = 0;
    std::size_t moment = 0;
  };

  EventLines lines_;
  JobHistory history_ = {};
  /// Those that have not recovered, by the index of the attempt.
  std::map<std::size_t, NonFiniteLoss> losses_ = {};
  /// Those that take part in each attempt.
  std::vector<std::set<std::string>> nodes_ = {};
  /// Of nodes in the last attempt, in the order of time.
  std::vector<NodeEnd> ends_ = {};
  /// The lines of moments that were noted last, by kind, attempt and text.
  std::map<std::tuple<Moment::Kind, int, std::string>, NotedLine> noted_ = {};
  std::vector<TimeSpan> hangs_ = {};
  std::map<std::string, std::vector<GpuSample>> gpus_ = {};
  std::set<std::string> hosts_with_known_gpus_ = {};
  std::optional<double> suspended_ = {};
};

}  // namespace

double overlap(const TimeSpan& first, const TimeSpan& second) {
  return std::max(0.0, std::min(first.end, second.end) - std::max(first.begin, second.begin));
}

JobHistory job_history(EventLines lines, const std::string& run_id) {
  choose_run(lines, run_id);
  sort_lines(lines);
  choose_start(lines);
  correct_clocks(lines);
  sort_lines(lines);
  return HistoryBuilder(std::move(lines)).build();
}

}  // namespace acc::launcher

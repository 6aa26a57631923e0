// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/hang_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/control/process_table.hpp"
#include "acc/launch/relay.hpp"

namespace acc::launcher {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr int kSamplesPerTimeout = 8;
constexpr int kIdlePercent = 1;
constexpr milliseconds kIdleTime = milliseconds(1);
constexpr milliseconds kMinInterval = milliseconds(10);

bool has_moved(const std::optional<Progress>& before, const std::optional<Progress>& after) {
  if (!before || !after) return before.has_value() != after.has_value();
  return before->steps != after->steps || before->section_began != after->section_began ||
         before->collectives != after->collectives || before->collective_began != after->collective_began;
}

// Whether a rank may stay where it is for an hour, as far as it says.
bool lasts(const std::optional<Progress>& progress) {
  if (!progress) return true;
  switch (progress->section) {
    case acc::Section::data:
    case acc::Section::evaluation:
    case acc::Section::saving:
    case acc::Section::other:
      return progress->collective.empty();
    default:
      return false;
  }
}

}  // namespace

void IdleClock::restart(TimePoint now) {
  last_.clear();
  observed_ = active_ = now;
  reported_ = false;
}

bool IdleClock::observe(const std::vector<RankActivity>& ranks, TimePoint now) {
  const milliseconds elapsed = duration_cast<milliseconds>(now - observed_);
  bool active = ranks.size() != last_.size();
  for (std::size_t i = 0; !active && i < ranks.size(); ++i) active = was_active(last_[i], ranks[i], elapsed);
  last_ = ranks;
  observed_ = now;
  if (active) {
    active_ = now;
    reported_ = false;
    return false;
  }
  if (reported_ || now - active_ < timeout_) return false;
  reported_ = true;
  return true;
}

bool IdleClock::was_active(const RankActivity& before, const RankActivity& after,
                           milliseconds elapsed) const {
  const bool writes = after.written != before.written;
  if (watch_ == ActivityKind::output) return writes;
  if (has_moved(before.progress, after.progress)) return true;
  if (watch_ == ActivityKind::progress && !lasts(after.progress)) return false;
  if (writes) return true;
  const bool spins = after.progress && !after.progress->collective.empty();
  const std::chrono::nanoseconds idle =
      std::max<std::chrono::nanoseconds>(std::chrono::nanoseconds(elapsed) * kIdlePercent / 100, kIdleTime);
  return !spins && after.cpu_time - before.cpu_time > idle;
}

milliseconds IdleClock::idle(TimePoint now) const {
  return duration_cast<milliseconds>(now - active_);
}

milliseconds IdleClock::interval() const {
  return std::max(timeout_ / kSamplesPerTimeout, kMinInterval);
}

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// For what an examination does besides waiting for debuggers.
constexpr auto kExaminationMargin = std::chrono::seconds(20);
// How many samples after the question: the first one looks at a time that began before it.
constexpr int kSamplesToConfirm = kSamplesPerTimeout + 1;
constexpr std::size_t kStackBytes = std::size_t{16} << 10U;
// Separates the state of the ranks from the stacks that follow.
constexpr char kEndOfStates = '\0';

// Of daemons of the workers: this process is their parent now, and its helpers are in its own session.
// `counted`: all others of the workers.
std::chrono::nanoseconds cpu_time_of_orphans(const ProcessTable& table, std::set<pid_t> counted) {
  std::chrono::nanoseconds time = {};
  for (const ProcessStat* child : table.tree(::getpid(), &counted)) {
    if (child->parent != ::getpid() || ::getsid(child->pid) == ::getsid(0)) continue;
    for (const ProcessStat* process : table.tree(child->pid)) time += exact_cpu_time(*process);
  }
  return time;
}

}  // namespace

struct HangWatch::Impl : std::enable_shared_from_this<HangWatch::Impl> {
  Impl(asio::io_context& loop, const HangPlan& hang, HangWatchParts watch_parts)
      : plan(hang),
        parts(std::move(watch_parts)),
        clock(hang.timeout, hang.watch),
        timer(loop),
        timeout(loop),
        stacks(loop) {}

  void begin(const Round& round) {
    is_single_node = round.num_machines == 1;
    examined_for.reset();
    start();
  }

  void start() {
    watching = true;
    asked.reset();
    clock.restart(RunningClock::now());
    wait();
  }

  // The others wait for this node's ranks, and for what it is to examine.
  void suspend() {
    if (watching && clock.is_idle()) tell(NodeHangStage::active);
    if (examined_for) tell(NodeHangStage::examined, *std::exchange(examined_for, std::nullopt));
    stop();
  }

  void stop() {
    watching = false;
    timer.cancel();
    timeout.cancel();
    error_code ignored;
    stacks.close(ignored);
  }

  void wait() {
    timer.expires_after(clock.interval());
    timer.async_wait([self = weak_from_this()](error_code error) {
      const auto watch = self.lock();
      // The handler of an expired timer cannot be cancelled any more.
      if (error || !watch || !watch->watching) return;
      watch->sample();
      watch->wait();
    });
  }

  // Only the first and the last of a time in which all ranks are idle matter.
  void sample() {
    const bool was_idle = clock.is_idle();
    clock.observe(activity_of_ranks(), RunningClock::now());
    if (!clock.is_idle()) asked.reset();
    if (asked && --asked->samples == 0)
      tell(NodeHangStage::confirmed, std::exchange(asked, std::nullopt)->number);
    if (clock.is_idle() == was_idle) return;
    if (!is_single_node) return tell(clock.is_idle() ? NodeHangStage::idle : NodeHangStage::active);
    if (clock.is_idle() && !stacks.is_open()) examine();
  }

  // In a job of several nodes.
  void tell(NodeHangStage stage, int number = 0) {
    if (is_single_node) return;
    const std::string reason = parts.tell_hang({.stage = stage, .number = number});
    if (!reason.empty() && stage == NodeHangStage::idle) send_node_idle(reason);
  }

  void send_node_idle(const std::string& reason) {
    parts.send(NodeIdle{parts.job().attempt, clock.idle(RunningClock::now()), reason});
  }

  void on_job_hang(const JobHang& hang) {
    switch (hang.stage) {
      case JobHangStage::suspected:
        if (!watching || !clock.is_idle()) return tell(NodeHangStage::active, hang.number);
        asked = Question{.number = hang.number};
        return;
      case JobHangStage::found:
        if (!watching || stacks.is_open()) return tell(NodeHangStage::examined, hang.number);
        examined_for = hang.number;
        return examine();
      case JobHangStage::examined:
        return parts.send(HangExamined{parts.job().attempt});
      case JobHangStage::unknown:
        return send_node_idle("some of them cannot say whether theirs are");
    }
  }

  // Of the ranks, and then of the processes that they have left.
  std::vector<RankActivity> activity_of_ranks() const {
    const ProcessTable table = ProcessTable::read();
    std::set<pid_t> counted;
    std::vector<RankActivity> ranks;
    for (const RankView& rank : parts.job().ranks) {
      RankActivity& activity = ranks.emplace_back(RankActivity{.written = parts.written(rank.local_rank),
                                                               .progress = parts.progress(rank.local_rank)});
      // The pid of a rank that has ended may be another process's by now.
      if (!rank.ended.empty()) continue;
      for (const ProcessStat* process : table.tree(rank.own_pid(), &counted))
        activity.cpu_time += exact_cpu_time(*process);
    }
    // A daemon may go on while ranks that say where they are stand still.
    const bool say_nothing =
        std::ranges::none_of(ranks, [](const RankActivity& rank) { return rank.progress.has_value(); });
    ranks.push_back({.cpu_time = say_nothing ? cpu_time_of_orphans(table, std::move(counted))
                                             : std::chrono::nanoseconds()});
    return ranks;
  }

  // In a child, since debuggers take seconds and the job must not wait for them.
  void examine() {
    hung = {.attempt = parts.job().attempt, .idle = clock.idle(RunningClock::now())};
    received.clear();
    states_sent = false;
    Channel channel = make_pipe();
    stacks.assign(channel.ours.release());
    const StackOptions options = parts.stack_options();
    run_in_child(std::move(channel.workers), [&](int to) {
      bool first = true;
      write_stacks(parts.view(), options, [&](std::string_view text) {
        std::string part(text);
        if (std::exchange(first, false)) part += kEndOfStates;
        if (!write_all(to, part)) ::_exit(1);
      });
    });
    timeout.expires_after(max_time(options) + kExaminationMargin);
    timeout.async_wait([self = weak_from_this()](error_code error) {
      const auto watch = self.lock();
      // The handler of an expired timer cannot be cancelled any more, and a closed descriptor throws.
      if (watch && !error && watch->stacks.is_open()) watch->stacks.cancel();
    });
    read();
  }

  void read() {
    stacks.async_read_some(asio::buffer(buffer.get(), kStackBytes),
                           [self = weak_from_this()](error_code error, std::size_t size) {
                             const auto watch = self.lock();
                             if (!watch || !watch->stacks.is_open()) return;
                             watch->received.append(watch->buffer.get(), size);
                             watch->send_received(error.failed());
                             if (!error) return watch->read();
                             watch->timeout.cancel();
                             watch->stacks.close();
                             watch->on_examined();
                           });
  }

  void on_examined() {
    if (is_single_node) return parts.send(HangExamined{hung.attempt});
    if (examined_for) tell(NodeHangStage::examined, *std::exchange(examined_for, std::nullopt));
  }

  // Sends whole lines; if this `is_last`, what follows them too.
  void send_received(bool is_last) {
    if (!states_sent) {
      const std::size_t end = received.find(kEndOfStates);
      if (end == std::string::npos && !is_last) return;
      hung.rank_states = received.substr(0, end);
      received.erase(0, end == std::string::npos ? end : end + 1);
      states_sent = true;
      parts.send(hung);
    }
    const std::size_t lines = is_last ? received.size() : received.rfind('\n') + 1;
    if (lines == 0) return;
    parts.send(HangStacks{hung.attempt, received.substr(0, lines)});
    received.erase(0, lines);
  }

  /// Whether this node is idle is to be said again, after samples that began later.
  struct Question {
    int number = 0;
    int samples = kSamplesToConfirm;
  };

  HangPlan plan;
  HangWatchParts parts;
  IdleClock clock;
  bool watching = false;
  /// The job has no other nodes.
  bool is_single_node = true;
  /// The hang that is being examined, which the other nodes wait for.
  std::optional<int> examined_for = {};
  std::optional<Question> asked = {};
  RunningTimer timer;
  RunningTimer timeout;
  asio::posix::stream_descriptor stacks;
  // Not zeroed: its memory is taken when it is used.
  std::unique_ptr<char[]> buffer = std::make_unique_for_overwrite<char[]>(kStackBytes);
  std::string received = {};
  bool states_sent = false;
  Hung hung = {};
};

HangWatch::HangWatch(asio::io_context& loop, const HangPlan& plan, HangWatchParts parts)
    : impl_(std::make_shared<Impl>(loop, plan, std::move(parts))) {}

HangWatch::~HangWatch() {
  impl_->stop();
}

void HangWatch::report(const Event& event) {
  if (impl_->plan.timeout.count() == 0) return;
  if (const auto* attempt = std::get_if<AttemptStarted>(&event)) impl_->begin(attempt->round);
  if (std::holds_alternative<Resumed>(event)) impl_->start();
  if (std::holds_alternative<Suspended>(event)) impl_->suspend();
  const bool ends = std::holds_alternative<Stopping>(event) || std::holds_alternative<Restarting>(event) ||
                    std::holds_alternative<GroupChanged>(event) || std::holds_alternative<Finished>(event);
  if (ends) impl_->stop();
}

void HangWatch::on_job_hang(const JobHang& hang) {
  impl_->on_job_hang(hang);
}

}  // namespace acc::launcher

// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/hang_watch.hpp"

#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <utility>

#include "acc/base/files.hpp"
#include "acc/base/subprocess/child_task.hpp"
#include "acc/control/process_table.hpp"
#include "acc/control/stacks.hpp"
#include "acc/launch/channel.hpp"
#include "acc/launch/idle_clock.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// Beyond the limits of the debuggers themselves.
constexpr auto kMaxLooking = std::chrono::seconds(150);
// Ends the first part of the report, where each rank stands.
constexpr char kEndOfPlaces = '\0';

}  // namespace

struct HangWatch::Impl : std::enable_shared_from_this<HangWatch::Impl> {
  Impl(asio::io_context& loop, const HangPlan& hang, HangWatchParts of)
      : plan(hang),
        parts(std::move(of)),
        clock(hang.timeout, hang.cpu_counts),
        timer(loop),
        patience(loop),
        stacks(loop) {}

  void start() {
    watching = true;
    clock.restart(Clock::now());
    wait();
  }

  void stop() {
    watching = false;
    timer.cancel();
    patience.cancel();
    error_code ignored;
    stacks.close(ignored);
  }

  void wait() {
    timer.expires_after(clock.interval());
    timer.async_wait([self = weak_from_this()](error_code error) {
      const auto watch = self.lock();
      // A timer that has expired already cannot be cancelled any more.
      if (error || !watch || !watch->watching) return;
      watch->look();
      watch->wait();
    });
  }

  void look() {
    const ProcessTable table = ProcessTable::read();
    std::vector<RankActivity> ranks;
    for (const RankView& rank : parts.job().ranks) {
      RankActivity& activity = ranks.emplace_back(RankActivity{.written = parts.written(rank.local_rank)});
      for (const ProcessStat* process : table.tree(rank.own_pid())) activity.cpu_time += process->cpu_time;
    }
    const auto now = Clock::now();
    if (clock.observe(ranks, now) && !stacks.is_open()) find_places(clock.idle(now));
  }

  // In a process of its own: a debugger takes seconds, and the job must not wait for it.
  void find_places(std::chrono::milliseconds idle) {
    hung = {.attempt = parts.job().attempt, .idle = idle};
    received.clear();
    told_places = false;
    Channel channel = make_pipe();
    stacks.assign(channel.ours.release());
    const StackOptions options{.environment = parts.environment};
    run_in_child(std::move(channel.workers), [&](int to) {
      bool first = true;
      write_stacks(parts.job(), options, [&](std::string_view text) {
        std::string part(text);
        if (std::exchange(first, false)) part += kEndOfPlaces;
        if (!write_all(to, part)) ::_exit(1);
      });
    });
    patience.expires_after(kMaxLooking);
    patience.async_wait([self = weak_from_this()](error_code error) {
      const auto watch = self.lock();
      if (watch && !error) watch->stacks.cancel();
    });
    read();
  }

  void read() {
    stacks.async_read_some(asio::buffer(buffer),
                           [self = weak_from_this()](error_code error, std::size_t size) {
                             const auto watch = self.lock();
                             if (!watch || !watch->stacks.is_open()) return;
                             watch->received.append(watch->buffer.data(), size);
                             watch->tell_received(error.failed());
                             if (!error) return watch->read();
                             watch->patience.cancel();
                             watch->stacks.close();
                             watch->parts.tell(HangExamined{watch->hung.attempt});
                           });
  }

  // `all`: nothing follows. Otherwise what is told ends with a line.
  void tell_received(bool all) {
    if (!told_places) {
      const std::size_t end = received.find(kEndOfPlaces);
      if (end == std::string::npos && !all) return;
      hung.places = received.substr(0, end);
      received.erase(0, end == std::string::npos ? end : end + 1);
      told_places = true;
      parts.tell(hung);
    }
    const std::size_t lines = all ? received.size() : received.rfind('\n') + 1;
    if (lines == 0) return;
    parts.tell(HangStacks{hung.attempt, received.substr(0, lines)});
    received.erase(0, lines);
  }

  HangPlan plan;
  HangWatchParts parts;
  IdleClock clock;
  bool watching = false;
  asio::steady_timer timer;
  asio::steady_timer patience;
  asio::posix::stream_descriptor stacks;
  std::array<char, std::size_t{16} << 10U> buffer = {};
  std::string received = {};
  bool told_places = false;
  Hung hung = {};
};

HangWatch::HangWatch(asio::io_context& loop, const HangPlan& plan, HangWatchParts parts)
    : impl_(std::make_shared<Impl>(loop, plan, std::move(parts))) {}

HangWatch::~HangWatch() {
  impl_->stop();
}

void HangWatch::report(const Event& event) {
  if (impl_->plan.timeout.count() == 0) return;
  if (std::holds_alternative<AttemptStarted>(event) || std::holds_alternative<Resumed>(event)) impl_->start();
  const bool ends = std::holds_alternative<Stopping>(event) || std::holds_alternative<Restarting>(event) ||
                    std::holds_alternative<Suspended>(event) || std::holds_alternative<Finished>(event);
  if (ends) impl_->stop();
}

}  // namespace acc::launcher

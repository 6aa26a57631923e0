// SPDX-License-Identifier: Apache-2.0
#include "exploration/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

using exploration::Execution;

namespace acc::detail::platform {

std::byte* exchange_memory() {
  alignas(4096) static std::byte memory[2 * 4096];
  return memory;
}

}  // namespace acc::detail::platform

namespace exploration {
namespace {

using acc::Descriptor;
using acc::detail::Collective;
using acc::detail::MemoryGroup;
using acc::detail::RankBell;
using acc::detail::Segment;

constexpr std::size_t kMemoryBytes = std::size_t{2} * 4096;

// Small integers: sums of them are exact in any order.
float value_of(int rank, std::size_t step, std::size_t i) {
  return static_cast<float>(1000 * (rank + 1) + 100 * static_cast<int>(step) + static_cast<int>(i % 97));
}

std::byte* bytes_of(std::vector<float>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// An operation of a rank: its memory, and how it ended.
struct Operation {
  Step step = {};
  std::vector<float> data = {};
  std::vector<std::vector<float>> sources = {};
  std::vector<std::vector<float>> gathered = {};
  int ends = 0;
  std::string failure = {};
};

class Rank {
 public:
  Rank(const Scenario& scenario, int rank) : scenario_(scenario), rank_(rank), name_(std::to_string(rank)) {
    std::vector<Step> steps = scenario.steps;
    if (scenario.vary) scenario.vary(rank, steps);
    operations_.reserve(steps.size());
    for (const Step& step : steps) operations_.push_back(new_operation(step));
  }

  void run(const Descriptor& memory) {
    MemoryGroup::Ranks ranks{
        .rank = rank_, .size = scenario_.ranks, .core_for_each = scenario_.core_for_each};
    for (int other = 0; other < scenario_.ranks; ++other) ranks.processes.push_back({other});
    MemoryGroup group(memory, std::move(ranks));
    group_ = &group;
    run_operations();
    if (scenario_.promise != Promise::right) Execution::current().expect_timeouts();
    Execution::current().note("leaves");
  }

  // What is wrong with the results, or nothing.
  std::string wrong(std::size_t step) const;
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  Operation new_operation(const Step& step) const {
    Operation operation{.step = step};
    const std::size_t number = operations_.size();
    const auto ranks = static_cast<std::size_t>(scenario_.ranks);
    const auto values = [&](int rank) {
      std::vector<float> made(step.floats);
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = value_of(rank, number, i);
      return made;
    };
    operation.data = values(rank_);
    if (step.kind == Kind::all_gather || step.kind == Kind::all_to_all)
      operation.gathered.assign(ranks, std::vector<float>(step.floats));
    for (int to = 0; step.kind == Kind::all_to_all && to < scenario_.ranks; ++to)
      operation.sources.push_back(values(10 * rank_ + to));
    return operation;
  }

  std::uint64_t begin(std::size_t step) {
    Operation& operation = operations_[step];
    Collective what{.kind = operation.step.kind,
                    .bytes = operation.step.floats * sizeof(float),
                    .root = operation.step.root,
                    .type = c10::ScalarType::Float,
                    .timeout = scenario_.timeout,
                    .done = [this, step](const std::exception_ptr& failure) { on_done(step, failure); }};
    if (operation.step.kind == Kind::barrier) what.bytes = 0;
    what.data = bytes_of(operation.data);
    for (auto& values : operation.sources) what.sources.push_back(bytes_of(values));
    for (auto& values : operation.gathered) what.gathered.push_back(bytes_of(values));
    Execution::current().note(fmt::format("begins its operation {}", step));
    return group_->begin(std::move(what));
  }

  void on_done(std::size_t step, const std::exception_ptr& failure) {
    Operation& operation = operations_[step];
    Execution& execution = Execution::current();
    if (++operation.ends > 1) execution.fail(fmt::format("operation {} of rank {} ended twice", step, rank_));
    if (failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const acc::Error& error) {
        operation.failure = error.what();
      }
    }
    execution.note(
        fmt::format("its operation {} {}", step, failure ? "failed: " + operation.failure : "is done"));
    ++ended_;
    if (scenario_.waiting == Waiting::chained && step + 1 < operations_.size()) {
      begin(step + 1);
      group_->hurry();
    }
    execution.wake(this, /*all=*/true);
  }

  void wait(std::uint64_t number) {
    try {
      if (scenario_.waiting == Waiting::with_timeout) {
        while (!group_->wait(number, std::chrono::milliseconds(1))) {
        }
      } else {
        group_->wait(number, std::nullopt);
      }
    } catch (const acc::detail::MemoryFailure&) {
      // Its callback was told the same.
    }
  }

  void wait_for_callbacks() {
    while (ended_ < operations_.size()) Execution::current().block("callbacks", this, kNever);
  }

  void run_from(std::size_t first, std::size_t end) {
    std::uint64_t last = 0;
    for (std::size_t step = first; step < end; ++step) {
      last = begin(step);
      if (scenario_.waiting == Waiting::for_each || scenario_.waiting == Waiting::with_timeout) wait(last);
    }
    if (last > 0) wait(last);
  }

  void run_operations() {
    if (operations_.empty()) return;
    Execution& execution = Execution::current();
    switch (scenario_.waiting) {
      case Waiting::for_each:
      case Waiting::for_last:
      case Waiting::with_timeout:
        run_from(0, operations_.size());
        break;
      case Waiting::callbacks:
        for (std::size_t step = 0; step < operations_.size(); ++step) begin(step);
        group_->hurry();
        break;
      case Waiting::chained:
        begin(0);
        group_->hurry();
        break;
      case Waiting::two_threads: {
        const std::uint64_t number = begin(0);
        const int other = execution.start(rank_, name_ + "b", [this] { run_from(1, operations_.size()); });
        wait(number);
        execution.join(other);
        break;
      }
    }
    // Whoever waits may go on before the callback was called by another thread.
    wait_for_callbacks();
  }

  const Scenario& scenario_;
  int rank_;
  std::string name_;
  MemoryGroup* group_ = nullptr;
  std::vector<Operation> operations_ = {};
  std::size_t ended_ = 0;
};

std::string Rank::wrong(std::size_t number) const {
  const Operation& operation = operations_[number];
  const auto differs = [&](const std::vector<float>& got, auto expected) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] != expected(i))
        return fmt::format("rank {} has {} in place of {} at {} of operation {}", rank_, got[i], expected(i),
                           i, number);
    }
    return std::string();
  };
  switch (operation.step.kind) {
    case Kind::barrier:
      return "";
    case Kind::broadcast:
      return differs(operation.data, [&](std::size_t i) { return value_of(operation.step.root, number, i); });
    case Kind::all_reduce:
      return differs(operation.data, [&](std::size_t i) {
        float sum = 0;
        for (int rank = 0; rank < scenario_.ranks; ++rank) sum += value_of(rank, number, i);
        return sum;
      });
    case Kind::all_gather:
    case Kind::all_to_all:
      break;
  }
  for (int rank = 0; rank < scenario_.ranks; ++rank) {
    const bool exchanged = operation.step.kind == Kind::all_to_all;
    if (exchanged && rank == rank_) continue;
    const std::string text = differs(operation.gathered[static_cast<std::size_t>(rank)], [&](std::size_t i) {
      return value_of(exchanged ? 10 * rank + rank_ : rank, number, i);
    });
    if (!text.empty()) return text;
  }
  return "";
}

std::string wrong_result(const Scenario& scenario, int number, const Rank& rank,
                         std::size_t steps_of_victim) {
  bool has_failed = false;
  for (std::size_t step = 0; step < rank.operations().size(); ++step) {
    const Operation& operation = rank.operations()[step];
    const auto told = [&](std::string_view text) {
      return fmt::format("operation {} of rank {} {}", step, number, text);
    };
    if (operation.ends == 0) return told("never ended");
    const bool failed = !operation.failure.empty();
    if (!failed && has_failed) return told("is said to be done after a failure");
    has_failed = failed;
    if (!failed && scenario.promise != Promise::last_fails) {
      if (std::string text = rank.wrong(step); !text.empty()) return text;
    }
    const bool is_last = step + 1 == rank.operations().size();
    if (scenario.promise == Promise::last_fails && is_last && !failed)
      return told("is done, but the ranks did not make the same calls");
    const bool may_fail = scenario.promise == Promise::right_or_failed ||
                          scenario.promise == Promise::last_fails ||
                          (scenario.promise == Promise::left && step >= steps_of_victim);
    if (failed && !may_fail) return told("failed: " + operation.failure);
    if (scenario.promise == Promise::left && step >= steps_of_victim && !failed)
      return told("is done, but a rank had left");
    const bool may_time_out = scenario.possibilities.fault == Fault::stop_forever;
    if (failed && !may_time_out && operation.failure.starts_with("Timed out")) return told(operation.failure);
  }
  return "";
}

std::string name_in(const Segment& segment, int ranks, std::size_t offset) {
  const std::byte* const address = acc::detail::platform::exchange_memory() + offset;
  const auto is = [address](const auto& member) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&member);
    return address >= begin && address < begin + sizeof member;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string owner = fmt::format(" of rank {}", rank);
    if (is(segment.progress(rank).posted)) return "posted" + owner;
    if (is(segment.progress(rank).reduced)) return "reduced" + owner;
    if (is(segment.progress(rank).consumed)) return "consumed" + owner;
    if (is(segment.progress(rank).has_left)) return "has_left" + owner;
    if (is(segment.bell(rank).rings)) return "rings" + owner;
    if (is(segment.bell(rank).waiting_for)) return "waiting_for" + owner;
    for (std::size_t chunk = 0; chunk < 2 * Segment::kSlots; ++chunk) {
      if (is(segment.signature(rank, chunk))) return fmt::format("signature {}{}", chunk, owner);
    }
    for (std::size_t chunk = 0; chunk < Segment::kSlots; ++chunk) {
      const std::byte* const slot = segment.slot(rank, chunk);
      if (address >= slot && address < slot + Segment::kChunkBytes)
        return fmt::format("slot {}{}, byte {}", chunk, owner, address - slot);
    }
  }
  return fmt::format("byte {}", offset);
}

// Memory as Segment::create leaves it, without asking the kernel each time.
const Descriptor& clean_memory(int ranks) {
  static std::map<int, Descriptor> memories;
  std::byte* const bytes = acc::detail::platform::exchange_memory();
  std::fill_n(bytes, kMemoryBytes, std::byte{});
  Descriptor& memory = memories[ranks];
  if (!memory) memory = Segment::create(ranks);
  const Segment segment(memory, ranks);
  for (int rank = 0; rank < ranks; ++rank) segment.bell(rank).waiting_for = RankBell::kNobody;
  return memory;
}

Outcome execute(const Scenario& scenario, Chooser& chooser, bool traced) {
  const Descriptor& memory = clean_memory(scenario.ranks);
  const Segment names(memory, scenario.ranks);
  Execution execution(chooser, scenario.possibilities,
                      {.bytes = {acc::detail::platform::exchange_memory(), kMemoryBytes},
                       .name_of = [&](std::size_t offset) { return name_in(names, scenario.ranks, offset); }},
                      traced);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(scenario, rank));
    execution.start(rank, std::to_string(rank), [&memory, &one = *ranks.back()] { one.run(memory); });
  }
  Outcome outcome{.failure = execution.run()};
  const std::size_t steps_of_victim =
      ranks[static_cast<std::size_t>(scenario.possibilities.victim)]->operations().size();
  for (int rank = 0; outcome.failure.empty() && rank < scenario.ranks; ++rank) {
    if (!execution.is_lost(rank))
      outcome.failure = wrong_result(scenario, rank, *ranks[static_cast<std::size_t>(rank)], steps_of_victim);
  }
  execution.release_lost_rank();
  outcome.deviations = execution.deviations();
  outcome.trace = execution.trace();
  return outcome;
}

}  // namespace

Execute executions_of(const Scenario& scenario) {
  return [scenario](Chooser& chooser, bool traced) { return execute(scenario, chooser, traced); };
}

}  // namespace exploration

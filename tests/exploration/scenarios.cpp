// SPDX-License-Identifier: Apache-2.0
#include "exploration/scenarios.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>
#include <utility>

#include "exploration/exchange.hpp"

namespace exploration {
namespace {

// More chunks than slots, on three ranks reduced in parts.
const std::vector<Step> kSums = {{Kind::all_reduce, 150}, {Kind::all_reduce, 1}};
const std::vector<Step> kExchanges = {{Kind::all_to_all, 50}, {Kind::all_to_all, 30}};
const std::vector<Step> kMixture = {
    {Kind::barrier}, {Kind::broadcast, 60, 1}, {Kind::all_reduce, 90}, {Kind::all_gather, 1}};

struct Operations {
  std::string_view name;
  std::vector<Step> steps;
};
const std::vector<Operations> kOperations = {
    {"sums", kSums},
    {"broadcasts", {{Kind::broadcast, 100, 0}, {Kind::broadcast, 50, 1}, {Kind::broadcast, 1, 0}}},
    {"gathers", {{Kind::all_gather, 100}, {Kind::all_gather, 10}}},
    {"exchanges", kExchanges},
    {"barriers", {{Kind::barrier}, {Kind::barrier}, {Kind::barrier}}},
    {"mixture", kMixture}};
// In which a rank is lost: between them they have every kind of step.
const std::vector<Operations> kInterrupted = {
    {"sums", kSums}, {"exchanges", kExchanges}, {"mixture", kMixture}};

struct Way {
  std::string_view name;
  Waiting waiting;
};
constexpr Way kWays[] = {{"waits for each", Waiting::for_each},
                         {"is called back", Waiting::callbacks},
                         {"begins in callbacks", Waiting::chained},
                         {"has two threads", Waiting::two_threads},
                         {"waits in vain", Waiting::with_timeout}};

struct Loss {
  std::string_view name;
  Fault fault;
  Promise promise;
  std::chrono::milliseconds timeout;
};
constexpr Loss kLosses[] = {
    {"is killed", Fault::kill, Promise::right_or_failed, std::chrono::minutes(1)},
    {"pauses", Fault::stop_for_a_while, Promise::right, std::chrono::minutes(1)},
    {"stands still", Fault::stop_forever, Promise::right_or_failed, std::chrono::milliseconds(45)}};

using Vary = void (*)(int rank, std::vector<Step>& steps);
struct Difference {
  std::string_view name;
  Vary vary;
};
// Of rank 1. The last step is a barrier, which needs all.
constexpr Difference kDifferences[] = {
    {"root", [](int rank, std::vector<Step>& steps) { steps[0].root = rank == 1 ? 1 : 0; }},
    {"operation",
     [](int rank, std::vector<Step>& steps) {
       if (rank == 1) steps[0].kind = Kind::all_reduce;
     }},
    {"size", [](int rank, std::vector<Step>& steps) {
       if (rank == 1) steps[0].floats += kChunkFloats;
     }}};

class List {
 public:
  std::vector<Exploration> take() { return std::move(explorations_); }

  void add_all(int ranks) {
    for (const auto& [name, steps] : kOperations)
      add(fmt::format("{} ranks, {}", ranks, name), {.ranks = ranks, .steps = steps});
    for (const auto& [name, waiting] : kWays) {
      add(fmt::format("{} ranks, each {}", ranks, name),
          {.ranks = ranks,
           .steps = kMixture,
           .waiting = waiting,
           .possibilities = {.sleeps_time_out = waiting == Waiting::with_timeout},
           .core_for_each = waiting == Waiting::for_each});
      add(fmt::format("{} ranks, each {}, and one leaves", ranks, name),
          {.ranks = ranks,
           .steps = kSums,
           .waiting = waiting,
           .promise = Promise::left,
           .possibilities = {.victim = 1},
           .vary = [](int rank, std::vector<Step>& steps) {
             if (rank == 1) steps.pop_back();
           }});
    }
    for (const auto& [name, vary] : kDifferences) {
      add(fmt::format("{} ranks, another {}", ranks, name),
          {.ranks = ranks,
           .steps = {{Kind::broadcast, 60, 0}, {Kind::barrier}},
           .promise = Promise::last_fails,
           .vary = vary});
    }
    // No operation needs all: it takes as many chunks until each rank has heard of all others.
    add(fmt::format("{} ranks, another root among broadcasts", ranks), {.ranks = ranks,
                                                                        .steps = {{Kind::broadcast, 60},
                                                                                  {Kind::broadcast, 60},
                                                                                  {Kind::broadcast, 60},
                                                                                  {Kind::broadcast, 60}},
                                                                        .promise = Promise::last_fails,
                                                                        .vary = kDifferences[0].vary});
    for (const Loss& loss : kLosses) {
      for (int victim = 0; victim < ranks; ++victim) {
        for (const auto& [name, steps] : kInterrupted)
          add(fmt::format("{} ranks, {}, rank {} {}", ranks, name, victim, loss.name),
              {.ranks = ranks,
               .steps = steps,
               .promise = loss.promise,
               .possibilities = {.fault = loss.fault, .victim = victim},
               .timeout = loss.timeout});
      }
    }
  }

 private:
  void add(std::string name, Scenario scenario) {
    const bool has_fault = scenario.possibilities.fault != Fault::none;
    const int bound = 3 - scenario.ranks + (has_fault ? 0 : 1);
    explorations_.push_back({.name = std::move(name), .execute = executions_of(scenario), .bound = bound});
  }

  std::vector<Exploration> explorations_ = {};
};

// One line for what a fiber does until another one goes on.
std::string story(const std::vector<std::string>& trace) {
  std::string text;
  std::string_view before;
  for (const std::string_view line : trace) {
    const std::string_view fiber = line.substr(0, line.find(':'));
    if (line.starts_with(fiber) && fiber == before && line.size() > fiber.size()) {
      text += fmt::format(";{}", line.substr(fiber.size() + 1));
    } else {
      text += fmt::format("\n{}", line);
    }
    before = fiber;
  }
  return text;
}

}  // namespace

const std::vector<Exploration>& explorations() {
  static const std::vector<Exploration> all = [] {
    List list;
    for (const int ranks : {2, 3}) list.add_all(ranks);
    return list.take();
  }();
  return all;
}

Report explore(const Exploration& exploration, int bound, std::uint64_t walks, std::uint64_t seed) {
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 40U;
  Report searched = search(exploration.execute, bound, kUnlimited);
  if (!searched.failure.empty()) return searched;
  Report walked = walk(exploration.execute, seed, walks);
  walked.executions += searched.executions;
  return walked;
}

Report again(const std::string& text) {
  const std::size_t colon = text.find(": ");
  for (const Exploration& exploration : explorations()) {
    if (colon == std::string::npos || exploration.name != text.substr(0, colon)) continue;
    Report report{.executions = 1, .schedule = text.substr(colon + 2)};
    Outcome outcome = repeat(exploration.execute, report.schedule);
    report.failure = std::move(outcome.failure);
    report.trace = std::move(outcome.trace);
    return report;
  }
  throw std::invalid_argument(fmt::format("'{}' begins with the name of no scenario", text));
}

std::string text_of(const std::string& name, const Report& report) {
  return fmt::format("{}: {}\nseed: {}\nagain: ACC_SCHEDULE='{}: {}'{}", name, report.failure, report.seed,
                     name, report.schedule, story(report.trace));
}

}  // namespace exploration
